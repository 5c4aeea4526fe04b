"""The one exception that means "the input is wrong": what, where, and what to do about it."""

from __future__ import annotations

from pathlib import Path


class InputError(ValueError):
    """Input that cannot be used; its text is shown to the user as it stands, without a traceback.

    >>> print(InputError("the column 'step' is missing", where="steps.csv, row 1", hint="add it"))
    steps.csv, row 1: the column 'step' is missing
      add it
    """

    def __init__(self, what: str, *, where: str | Path | None = None, hint: str | None = None) -> None:
        self.what = what
        self.where = None if where is None else str(where)
        self.hint = hint
        place = "" if self.where is None else f"{_one_line(self.where)}: "
        advice = "" if hint is None else f"\n  {_one_line(hint)}"
        super().__init__(f"{place}{_one_line(what)}{advice}")


class MissingExtraError(InputError):
    """An optional part of msg2 is not installed; the text says which ``pip install`` gives it.

    >>> print(MissingExtraError("reading Parquet", "parquet"))
    reading Parquet needs an optional part of msg2 that is not installed
      pip install 'msg2[parquet]'
    """

    def __init__(self, doing: str, extra: str) -> None:
        super().__init__(
            f"{doing} needs an optional part of msg2 that is not installed",
            hint=f"pip install 'msg2[{extra}]'",
        )


def shortened(text: str, limit: int = 60) -> str:
    """`text` quoted on one line, cut to `limit` characters: names are data and may be very long.

    >>> shortened("boil\\nwater")
    "'boil\\\\nwater'"
    """
    return repr(text if len(text) <= limit else text[: limit - 1] + "…")


def _one_line(text: str, limit: int = 1000) -> str:
    """`text` with what is not printable escaped, and without its middle where names in it are endless."""
    half = limit // 2
    short = text if len(text) <= limit else f"{text[:half]} … {text[-half:]}"
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in short)

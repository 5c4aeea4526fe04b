"""The one exception that means "the input is wrong": what, where, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
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

    def __reduce__(self) -> tuple[object, ...]:
        """Travel from a worker with place and hint; an exception is made anew from its text alone."""
        return _make_again, (type(self), self.what, self.where, self.hint)

    def at(self, where: str | Path, *, hint: str | None = None) -> InputError:
        """Return this error with the place where it happened, unless it names one already.

        Parameters
        ----------
        where : str or Path
            File, row or path to the value.
        hint : str, optional
            What to do about it, instead of the hint that the error has.

        Returns
        -------
        InputError
            A new error; raise it ``from None``.

        >>> print(InputError("is empty").at("steps.csv"))
        steps.csv: is empty
        """
        return InputError(self.what, where=self.where or where, hint=hint or self.hint)


class MissingExtraError(InputError):
    """An optional part of msg2 is not installed; the text says which ``pip install`` gives it.

    >>> print(MissingExtraError("reading Parquet", "parquet"))
    reading Parquet needs an optional part of msg2 that is not installed
      pip install 'msg2[parquet]'
    """

    def __init__(self, doing: str, extra: str) -> None:
        super().__init__(
            f"{doing} needs an optional part of msg2 that is not installed", hint=f"pip install 'msg2[{extra}]'"
        )


def _make_again(kind: type[InputError], what: str, where: str | None, hint: str | None) -> InputError:
    error = kind.__new__(kind)
    InputError.__init__(error, what, where=where, hint=hint)
    return error


@contextmanager
def errors_at(where: str | Path, *, hint: str | None = None) -> Iterator[None]:
    """Put a place on every `InputError` in the ``with`` block that names none; a missing extra has no place.

    Parameters
    ----------
    where, hint
        As in `InputError.at`.

    >>> with errors_at("steps.csv"):
    ...     raise InputError("is empty")
    Traceback (most recent call last):
    msg2.errors.InputError: steps.csv: is empty
    """
    try:
        yield
    except MissingExtraError:
        raise
    except InputError as error:
        raise error.at(where, hint=hint) from None


def _one_line(text: str, limit: int = 1000) -> str:
    """`text` with what is not printable escaped, and without its middle where names in it are endless."""
    half = limit // 2
    short = text if len(text) <= limit else f"{text[:half]} … {text[-half:]}"
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in short)

"""The one exception that means "the input is wrong": what, where, and what to do about it; and checks that raise it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from math import isfinite
from numbers import Real
from pathlib import Path
from typing import TypeGuard


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
        """Keep the place and the hint when an error is pickled; by default only its text survives."""
        return type(self).__new__, (type(self), *self.args), self.__dict__

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
    """An optional part of msg2 is not installed; the text says which ``pip install`` gives it."""

    def __init__(self, doing: str, extra: str) -> None:
        what = f"{doing} needs an optional part of msg2 that is not installed"
        super().__init__(what, hint=f"pip install 'msg2[{extra}]'")


@contextmanager
def errors_at(where: str | Path, *, hint: str | None = None) -> Iterator[None]:
    """Put a place on every `InputError` in the ``with`` block that names none; a missing extra has no place."""
    try:
        yield
    except MissingExtraError:
        raise
    except InputError as error:
        raise error.at(where, hint=hint) from None


def _one_line(text: str, limit: int = 1000) -> str:
    """Escape what is not printable, and cut out the middle of a very long text."""
    half = limit // 2
    short = text if len(text) <= limit else f"{text[:half]} … {text[-half:]}"
    return "".join(character if character.isprintable() else repr(character)[1:-1] for character in short)


@contextmanager
def optional_dependency(doing: str, extra: str) -> Iterator[None]:
    """Turn a failed import in the ``with`` block into an error: what to install, or what the package complains of."""
    try:
        yield
    except (ImportError, OSError) as error:
        package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
        if package == "msg2":
            raise
        if package and find_spec(package) is None:
            raise MissingExtraError(doing, extra) from None
        what = f"{doing} needs a package that is installed but cannot be imported: {type(error).__name__}: {error}"
        raise InputError(what, hint="reinstall that package, or the library that its error names") from error


def require(condition: object, message: str, *, where: str | Path | None = None, hint: str | None = None) -> None:
    """Raise an `InputError` unless a condition holds."""
    if not condition:
        raise InputError(message, where=where, hint=hint)


def require_probability(name: str, value: float) -> None:
    """Raise an `InputError` unless a value is between 0 and 1."""
    require(is_finite(value) and 0 <= value <= 1, f"{name} is {value}, it must be between 0 and 1")


def require_count(name: str, value: int | None) -> None:
    """Raise an `InputError` unless a value is a whole number from 1 up, or None."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    require(value is None or (whole and value >= 1), f"{name} is {value!r}, it must be a whole number from 1 up")


def is_finite(value: object) -> TypeGuard[float]:
    """Whether a value is a number, of NumPy too, and neither infinite nor NaN nor true or false."""
    return type(value) is not bool and isinstance(value, Real) and isfinite(value)

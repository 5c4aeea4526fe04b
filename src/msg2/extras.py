"""Optional dependencies: packages that only some commands need, and which of them is missing or broken."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from msg2.errors import InputError, MissingExtraError


@contextmanager
def optional_dependency(doing: str, extra: str) -> Iterator[None]:
    """Turn a failed import inside the ``with`` block into an error that says what to do.

    A package that is *missing* is named with the ``pip install`` that gives it. A package that is installed but
    *broken*, such as a torch that cannot load its CUDA library, shows its own error instead.

    Parameters
    ----------
    doing : str
        What needs the package, as the beginning of a sentence: "reading Parquet".
    extra : str
        The extra of msg2 that installs it: "parquet".

    Raises
    ------
    MissingExtraError
        Where the package, or one that it needs, is not installed.
    InputError
        Where it is installed and cannot be imported.

    >>> with optional_dependency("reading Parquet", "parquet"):
    ...     import no_such_package
    Traceback (most recent call last):
    msg2.errors.MissingExtraError: reading Parquet needs an optional part of msg2 that is not installed
      pip install 'msg2[parquet]'
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package == "msg2":
            raise
        if not package or find_spec(package) is not None:
            raise _broken(doing, error) from error
        raise MissingExtraError(doing, extra) from None
    except (ImportError, OSError) as error:
        if isinstance(error, InputError):
            raise
        raise _broken(doing, error) from error


def _broken(doing: str, error: Exception) -> InputError:
    return InputError(
        f"{doing} needs a package that is installed but cannot be imported: {type(error).__name__}: {error}",
        hint="reinstall that package, or the library that its error names",
    )

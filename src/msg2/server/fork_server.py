"""What the server of forks imports first, and nobody else: a process that loses its parent while it starts is silent.

Where the app is killed in that moment, the standard library finds nothing to read (`EOFError`), and would print a
traceback into the terminal of somebody who has just ended the app.
"""

from __future__ import annotations

import sys
from types import TracebackType


def _show_error(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if not issubclass(kind, EOFError):
        sys.__excepthook__(kind, error, traceback)


sys.excepthook = _show_error

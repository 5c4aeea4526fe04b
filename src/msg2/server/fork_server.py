"""What the server of forks imports, and nobody else: every task, and silence for a process that loses its parent.

Where the app is killed while a process starts, the standard library finds nothing to read (`EOFError`). It would print
a traceback into the terminal of somebody who has just ended the app.
"""

import sys
from types import TracebackType

from msg2.server import graph_functions  # noqa: F401


def _show_error(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if not issubclass(kind, EOFError):
        sys.__excepthook__(kind, error, traceback)


sys.excepthook = _show_error

"""What the fork server preloads: all functions, and silence (no `EOFError`) for a process that loses its parent."""

import sys
from types import TracebackType

from msg2.server import graph_functions  # noqa: F401


def _show_error(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if not issubclass(kind, EOFError):
        sys.__excepthook__(kind, error, traceback)


sys.excepthook = _show_error

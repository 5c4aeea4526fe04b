"""The command line: the only package that prints, draws progress or exits. Importing this module takes no time."""

import atexit
import os
import signal

__all__ = ["main"]

INTERRUPTED = 130
"""The exit status."""


def main() -> None:
    """Run the command line, see `msg2.cli.app.main`; imported here, so that this too can be interrupted."""
    end_at_once()
    from msg2.cli import app

    app.main()


def end_at_once() -> None:
    """From now on, an interrupt ends the process at once: while Python starts and ends, there is nothing to undo."""
    signal.signal(signal.SIGINT, _end)
    atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)  # Python would restore the default, which kills


def _end(signum: int, frame: object) -> None:
    os.write(2, b"msg2: interrupted\n")
    os._exit(INTERRUPTED)

"""The command line: the only package that prints, draws progress or exits."""

import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line, see `msg2.cli.app.main`; imported here, so that this too can be interrupted."""
    try:
        from msg2.cli import app
    except KeyboardInterrupt:
        sys.stderr.write("msg2: interrupted\n")
        sys.exit(130)
    app.main()

"""The command line: the only package that prints, draws progress or exits."""

from msg2.cli.interruption import end_at_once

__all__ = ["main"]


def main() -> None:
    """Run the command line, see `msg2.cli.app.main`; imported here, so that this too can be interrupted."""
    end_at_once()
    from msg2.cli import app

    app.main()

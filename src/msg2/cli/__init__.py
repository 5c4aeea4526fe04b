"""The command line: the only room that prints, draws progress or exits."""

from msg2.cli.app import main

__all__ = ["main"]

"""Help texts in plain words: `DATA` and `[NAME]`, and neither `{DATA}` nor the types of a programming language."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup


class PlainCommand(TyperCommand):
    """A command whose help is plain; Typer's contexts and parameters have no public types."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The arguments and options, described plainly."""
        return _describe_plainly(super().get_params(ctx), ctx)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What follows the name of the command in its usage."""
        return _usage(self.get_params(ctx))


class PlainGroup(TyperGroup):
    """A group of commands whose help is plain."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options of all commands, described plainly."""
        return _describe_plainly(super().get_params(ctx), ctx)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What follows the name of the program in its usage."""
        return [*_usage(self.get_params(ctx)), "COMMAND"]


def _describe_plainly(parameters: list[Any], context: typer.Context) -> list[Any]:
    for one in parameters:
        if isinstance(one, TyperArgument):
            one.display_type_rich = lambda ctx: None  # type: ignore[method-assign]  # its name says what it is
        elif one.metavar is None and (one.is_flag or one.is_bool_flag):
            one.metavar = ""
        elif one.metavar is None and hasattr(one, "display_type"):
            one.metavar = one.display_type(context).strip("<>")  # the words to choose from
    return parameters


def _usage(parameters: Iterable[Any]) -> list[str]:
    arguments = [one for one in parameters if isinstance(one, TyperArgument)]
    names = [f"{one.metavar}" if one.required else f"[{one.metavar}]" for one in arguments]
    return [
        *(name if one.nargs == 1 else f"{name}..." for name, one in zip(names, arguments, strict=True)),
        "[OPTIONS]",
    ]

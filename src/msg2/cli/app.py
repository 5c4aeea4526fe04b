"""`msg2`: all commands, each imported when you call it, with plain help texts; and what happens when one fails."""

from __future__ import annotations

import os
import signal
import sys
from importlib import import_module
from io import TextIOWrapper
from itertools import pairwise
from threading import Timer
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup
from typer.main import get_command

from msg2.cli import INTERRUPTED, console, end_at_once
from msg2.errors import InputError

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_DATA, _LEARN, _USE = "Data", "Learn a graph", "Use a graph"
_VIDEO, _DRAFT, _STUDY = "From videos to labels", "From words to labels", "Try and measure"
COMMANDS = {
    "demo": _STUDY, "describe": _DATA, "convert": _DATA, "data": _DATA,
    "infer": _LEARN, "sweep": _LEARN, "evaluate": _LEARN, "compare": _LEARN, "benchmark": _STUDY,
    "next": _USE, "plan": _USE, "watch": _USE, "check": _USE, "explain": _USE, "show": _USE, "write": _USE,
    "merge": _USE, "serve": _USE, "mcp": _USE,
    "features": _DATA, "phrases": _DRAFT, "states": _VIDEO, "label": _DRAFT, "run": _VIDEO, "simulate": _STUDY,
}  # fmt: skip
"""Every command, a module of this package, and the panel in which `msg2 --help` lists it."""
_REGISTRIES = {"--method": ("msg2.inference", "METHODS"), "--ranker": ("msg2.assist", "RANKERS")}
"""Options whose choices plug-ins add to: where these are listed."""
_TRACEBACK = "MSG2_TRACEBACK"
"""Variable of the environment: errors that nobody foresaw are shown with their traceback."""


class PlainCommand(TyperCommand):
    """A command whose help is plain; Typer's contexts and parameters have no public types."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The arguments and options, described plainly."""
        return _simplify(super().get_params(ctx), ctx)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """What follows the name of the command in its usage."""
        arguments = [parameter for parameter in self.params if isinstance(parameter, TyperArgument)]
        names = [f"{argument.metavar}" if argument.required else f"[{argument.metavar}]" for argument in arguments]
        dots = ["" if argument.nargs == 1 else "..." for argument in arguments]
        return [*map(str.__add__, names, dots), "[OPTIONS]"]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Show the help, with the methods and rankers of plug-ins."""
        for parameter in cast(list[Any], self.params):
            if parameter.opts[0] in _REGISTRIES:
                module, name = _REGISTRIES[parameter.opts[0]]
                if added := getattr(import_module(module), name).plugins:
                    parameter.help = f"{parameter.help} Plug-ins: {', '.join(added)}."
        super().format_help(ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments; an option of a method that is given as a flag of its own is told how to be set."""
        flags = {flag for parameter in self.params for flag in (*parameter.opts, *parameter.secondary_opts)}
        for argument, following in pairwise([*args, ""]) if "--set" in flags else ():
            flag, equals, value = argument.partition("=")
            name = flag.removeprefix("--").replace("-", "_")
            if flag.startswith("--") and flag not in flags and name in _method_options():
                value = value if equals else "true" if not following or following.startswith("-") else following
                raise typer.BadParameter(f"{flag} is an option of a method: write --set {name}={value}")
        return super().parse_args(ctx, args)


class PlainGroup(TyperGroup):
    """A group of commands whose help is plain."""

    def get_params(self, ctx: Any) -> list[Any]:
        """The options of all commands, described plainly."""
        return _simplify(super().get_params(ctx), ctx)


class Msg2Group(PlainGroup):
    """All commands; each is imported when it is called for."""

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of this name, a function of its module or, in `states`, a group; None where there is none."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"msg2.cli.{cmd_name}")
        group: typer.Typer | None = getattr(module, "app", None)
        if group is None:
            group = typer.Typer(rich_markup_mode="markdown", add_completion=False)
            group.command(cmd_name)(getattr(module, cmd_name))
        for registered in group.registered_commands:
            registered.cls = PlainCommand
        command: Any = get_command(group)
        command.name, command.rich_help_panel = cmd_name, COMMANDS[cmd_name]
        return command


def _method_options() -> set[str]:
    from msg2.cli.flags import list_settings

    return {"names", *(spec.name for _, _, specs in list_settings() for spec in specs)}


def _simplify(parameters: list[Any], context: typer.Context) -> list[Any]:
    """Describe parameters by what people write, without the types of a programming language."""
    for parameter in parameters:
        if isinstance(parameter, TyperArgument):
            parameter.display_type_rich = lambda ctx: None  # type: ignore[method-assign]  # its name says what it is
        elif parameter.metavar is None and (parameter.is_flag or parameter.is_bool_flag):
            parameter.metavar = ""
        elif parameter.metavar is None and hasattr(parameter, "display_type"):
            parameter.metavar = parameter.display_type(context).strip("<>")  # the words to choose from
    return parameters


app = typer.Typer(
    name="msg2",
    cls=Msg2Group,
    subcommand_metavar="COMMAND",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    result_callback=console.finish,
)


def _version(wanted: bool) -> None:
    if wanted:
        import msg2

        console.print_line(f"msg2 {msg2.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    traceback: Annotated[bool, typer.Option("--traceback", help=f"Trace unforeseen errors ({_TRACEBACK}=1).")] = False,
    allow_pickle: Annotated[
        bool, typer.Option("--allow-pickle", help="Also take weights of the hub in pickles (MSG2_ALLOW_PICKLE=1).")
    ] = False,
) -> None:
    """Learn how a task works from many imperfect demonstrations of it.

    Step labels of many videos in, a *subtask graph* with AND/OR preconditions out, with the evidence behind it.

    **See it work:** `msg2 demo`

    **Your own data**, a table with the columns `video`, `step` and, where you have them, `start` and `end` in seconds:

    - `msg2 describe steps.csv`: what is in it, and what looks wrong

    - `msg2 infer steps.csv -o graph.json`, then `msg2 show graph.json -o graph.html`

    **Ask the graph:**

    - `msg2 next graph.json --done "boil water"`: what comes next

    - `msg2 plan graph.json --goal "serve"`: how to get there

    - `msg2 watch graph.json --data steps.csv`: one run, live: events as JSON lines in, answers out

    - `msg2 check graph.json new.csv`: what went wrong

    - `msg2 explain graph.json`: every edge, and how sure it is

    - `msg2 write graph.json -o procedure.html`: a written procedure, to read, print and tick off

    **Which method?** The default, `likelihood`: it is the best or level nearly everywhere, and has no threshold to
    choose. `--method msg2` is the paper's; `always-before` is as good where labels are clean and complete.

    **Other tools:** `msg2 convert labels.eaf -o steps.csv`, and back; `msg2 data crosstask` fetches a public set

    Every command has examples: `msg2 infer --help`
    """
    if traceback:
        os.environ[_TRACEBACK] = "1"
    if allow_pickle:
        from msg2.text_encoders import ALLOW_PICKLE

        os.environ[ALLOW_PICKLE] = "1"
    console.keep_logs()


class Interrupted(BaseException):
    """Ctrl-C; a type of its own, since Typer and others have their own opinion of KeyboardInterrupt."""


class InterruptHandler:
    """From now on, an interrupt raises `Interrupted`; `asked` tells whether one came, if somebody swallows that."""

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGINT, self)
        sys.unraisablehook = self._handle_unraisable

    def __call__(self, signum: int, frame: FrameType | None) -> None:
        """Handle the signal."""
        self.asked = True
        raise Interrupted

    def _handle_unraisable(self, lost: UnraisableHookArgs) -> None:
        """Send an interrupt that Python could not raise, in a finalizer or callback, again; after one, stay silent."""
        if issubclass(lost.exc_type, Interrupted):
            again = Timer(0.01, os.kill, (os.getpid(), signal.SIGINT))
            again.daemon = True
            again.start()
        elif not self.asked:
            sys.__unraisablehook__(lost)


def main(commands: typer.Typer = app, program: str = "msg2") -> None:
    """Run a command line. Exit 0: done; 1: the input is wrong; 2: usage; 130: interrupted."""
    interrupts = InterruptHandler()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # escape characters that its encoding lacks
            stream.reconfigure(errors="backslashreplace")
    try:
        status = _run(commands, program, interrupts)
    except Interrupted:
        status = INTERRUPTED
    finally:
        end_at_once()
    if status == INTERRUPTED:
        console.print_note(f"{program}: interrupted")
    sys.exit(status)


def _run(commands: typer.Typer, program: str, interrupts: InterruptHandler) -> int:
    """The exit status of a command that has failed; one that ends by itself leaves the program."""
    try:
        get_command(commands)(prog_name=program)
    except InputError as error:
        console.print_note(f"{program}: {error}")
    except OSError as error:  # the result cannot be written, to a full disk for one
        console.print_note(f"{program}: {InputError(error.strerror or str(error), where=error.filename)}")
        console.discard_output()
    except Exception as error:
        if interrupts.asked:  # somebody took the interrupt for a failure
            return INTERRUPTED
        if os.environ.get(_TRACEBACK):
            raise
        console.print_note(f"{program}: {_foreseen_by_nobody(error)}")
    return 1


def _foreseen_by_nobody(error: Exception) -> InputError:
    if isinstance(error, MemoryError):
        return InputError("there is not enough memory for this", hint="take less data, or fewer --jobs")
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    hint = "please report it with what `msg2 --traceback` and the rest of the command print"
    return InputError(f"an error that nobody foresaw ({said})", hint=hint)

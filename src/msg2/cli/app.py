"""`msg2`: the commands put together, and what happens when one fails."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer
from typer.main import get_command

from msg2.cli import (
    check,
    compare,
    console,
    convert,
    data,
    demo,
    describe,
    evaluate,
    explain,
    features,
    infer,
    label,
    merge,
    next,
    phrases,
    plan,
    run,
    serve,
    show,
    simulate,
    states,
    sweep,
    watch,
)
from msg2.cli.help_text import PlainCommand, PlainGroup
from msg2.cli.interruption import INTERRUPTED, Interrupted, InterruptHandler, end_at_once
from msg2.errors import InputError

app = typer.Typer(
    name="msg2",
    cls=PlainGroup,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    result_callback=console.finish,
)

_DATA, _LEARN, _USE = "Data", "Learn a graph", "Use a graph"
_VIDEO, _STUDY = "From videos to labels", "Try and measure"
_TRACEBACK = "MSG2_TRACEBACK"
"""Variable of the environment: errors that nobody foresaw are shown with their traceback."""

app.command("demo", rich_help_panel=_STUDY)(demo.demo)
app.command("describe", rich_help_panel=_DATA)(describe.describe)
app.command("convert", rich_help_panel=_DATA)(convert.convert)
app.command("data", rich_help_panel=_DATA)(data.data)
app.command("infer", rich_help_panel=_LEARN)(infer.infer)
app.command("sweep", rich_help_panel=_LEARN)(sweep.sweep)
app.command("evaluate", rich_help_panel=_LEARN)(evaluate.evaluate)
app.command("compare", rich_help_panel=_LEARN)(compare.compare)
app.command("next", rich_help_panel=_USE)(next.next_)
app.command("plan", rich_help_panel=_USE)(plan.plan)
app.command("watch", rich_help_panel=_USE)(watch.watch)
app.command("check", rich_help_panel=_USE)(check.check)
app.command("explain", rich_help_panel=_USE)(explain.explain)
app.command("show", rich_help_panel=_USE)(show.show)
app.command("merge", rich_help_panel=_USE)(merge.merge_)
app.command("serve", rich_help_panel=_USE)(serve.serve)
app.command("features", rich_help_panel=_VIDEO)(features.features)
app.command("phrases", rich_help_panel=_VIDEO)(phrases.phrases)
app.add_typer(states.app, name="states", rich_help_panel=_VIDEO)
app.command("label", rich_help_panel=_VIDEO)(label.label)
app.command("run", rich_help_panel=_VIDEO)(run.run)
app.command("simulate", rich_help_panel=_STUDY)(simulate.simulate)
for _command in (*app.registered_commands, *states.app.registered_commands):
    _command.cls = PlainCommand


def _version(wanted: bool) -> None:
    if wanted:
        import msg2

        console.print_line(f"msg2 {msg2.__version__}")
        raise typer.Exit


def _traceback(wanted: bool) -> None:
    if wanted:
        os.environ[_TRACEBACK] = "1"


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    traceback: Annotated[
        bool,
        typer.Option(
            "--traceback",
            callback=_traceback,
            help=f"Show where in msg2 an unforeseen error came from ({_TRACEBACK}=1).",
        ),
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

    **Which method?** The default, `likelihood`: it is the best or level nearly everywhere, and has no threshold to
    choose. `--method msg2` is the paper's; `always-before` is as good where labels are clean and complete.

    **Other tools:** `msg2 convert labels.eaf -o steps.csv`, and back; `msg2 data crosstask` fetches a public set

    Every command has examples: `msg2 infer --help`
    """
    console.keep_logs()


def main(commands: typer.Typer = app, program: str = "msg2") -> None:
    """Run a command line. Exit 0: done; 1: the input is wrong; 2: usage; 130: interrupted.

    Parameters
    ----------
    commands : typer.Typer
        What is run; by default, the commands of msg2.
    program : str
        The name in front of errors.
    """
    interrupts = InterruptHandler()
    console.accept_any_text()
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
        command = get_command(commands)
        _leave_checks_to_readers(command)
        command()
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


def _leave_checks_to_readers(command: object) -> None:
    """A path that may not be read is wrong input, not wrong usage: whoever reads it says so."""
    for parameter in getattr(command, "params", ()):
        described = getattr(parameter, "type_descriptor", None)  # older versions of Typer have a type of Click's
        kind = getattr(parameter, "type", None) if described is None else described.parameter_info
        if kind is not None and hasattr(kind, "readable"):
            kind.readable = False
    for subcommand in getattr(command, "commands", {}).values():
        _leave_checks_to_readers(subcommand)


def _foreseen_by_nobody(error: Exception) -> InputError:
    if isinstance(error, MemoryError):
        return InputError("there is not enough memory for this", hint="take less data, or fewer --jobs")
    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    hint = "please report it with what `msg2 --traceback` and the rest of the command print"
    return InputError(f"an error that nobody foresaw ({said})", hint=hint)

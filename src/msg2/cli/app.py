"""`msg2`: the commands put together, and what happens when one fails."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import Annotated

import typer

from msg2.cli import console, data, experiment, features, graphs, learning, phrases, run, states, worlds
from msg2.errors import InputError

app = typer.Typer(
    name="msg2",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    result_callback=console.finish,
)

app.command("demo")(worlds.demo)
app.command("describe")(data.describe)
app.command("infer")(learning.infer)
app.command("sweep")(learning.sweep)
app.command("evaluate")(graphs.evaluate)
app.command("next")(graphs.next_)
app.command("check")(graphs.check)
app.command("show")(graphs.show)
app.command("features")(features.features)
app.command("phrases")(phrases.phrases)
app.add_typer(states.app, name="states")
app.command("run")(run.run)
app.command("simulate")(worlds.simulate)
app.command("experiment")(experiment.experiment)


def _version(wanted: bool) -> None:
    if wanted:
        import msg2

        console.say(f"msg2 {msg2.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Learn how a task works from many imperfect demonstrations of it.

    Step labels of many videos in, a *subtask graph* with AND/OR preconditions out, with the evidence behind it.

    **Start here:** `msg2 demo`, then `msg2 describe steps.csv` and `msg2 infer steps.csv -o graph.json` on your own
    data: a table with the columns `video`, `step` and, where you have them, `start` and `end` in seconds.
    """
    console.keep_remarks()


def main() -> None:
    """Run the command line. Exit 0: done; 1: the input is wrong; 2: usage; 130: interrupted."""
    signal.signal(signal.SIGINT, _interrupt)
    console.accept_any_text()
    try:
        app()
    except InputError as error:
        console.tell(f"msg2: {error}")
        sys.exit(1)
    except OSError as error:  # the result cannot be written, to a full disk for one
        console.tell(f"msg2: {InputError(error.strerror or str(error), where=error.filename)}")
        console.drop_output()
        sys.exit(1)
    except _Interrupted:
        console.tell("msg2: interrupted")
        sys.exit(130)


class _Interrupted(BaseException):
    """Ctrl-C; a type of its own, since Typer would turn KeyboardInterrupt into exit 1."""


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise _Interrupted

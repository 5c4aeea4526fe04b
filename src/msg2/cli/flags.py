"""Arguments and options that several commands share: the data and how it is read, the method and its settings."""

import csv
import inspect
import io
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from functools import partial, wraps
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

import typer

from msg2.cli import console
from msg2.errors import require
from msg2.formats import read_all, recorded_reading
from msg2.formats.reading import ReadOptions, choose_task
from msg2.graph import SubtaskGraph
from msg2.options import OptionSpec, OptionValue, option_specs
from msg2.parallel import ENGINES
from msg2.task import Task

if TYPE_CHECKING:
    from msg2.llm import ChatClient

GivenOptions: TypeAlias = Mapping[str, Any]
"""The options of a class that were given, by name; the others keep their defaults."""
READING = "Reading data"
"""The panel of what says how data is read."""


# -- parameters of commands, to be put into `Annotated` ----------------------------------------------------------


def argument(metavar: str, help: str, **settings: Any) -> Any:
    """An argument of a command. Whoever reads a path says so if it may not be read."""
    return typer.Argument(metavar=metavar, help=help, readable=False, **settings)


def option(metavar: str | None, help: str, *names: str, **settings: Any) -> Any:
    """An option with a value; without names, its name is that of the parameter. A choice needs no metavar."""
    return typer.Option(*names, metavar=metavar, help=help, readable=False, **settings)


def output_option(metavar: str, help: str) -> Any:
    """Where the result is written."""
    return option(metavar, help, "--output", "-o")


def switch(name: str, help: str) -> Any:
    """An option that is given or not."""
    return typer.Option(name, help=help)


def _known_engine(name: str) -> str:
    usage_error_if(name not in ENGINES, f"it is {name!r}, it must be one of {', '.join(ENGINES)}")
    return name


DATA_HELP = "A file, folder or archive in any format that msg2 reads; - is stdin."
Data: TypeAlias = Annotated[Path, argument("DATA", DATA_HELP)]
GraphFile: TypeAlias = Annotated[Path, argument("GRAPH", "A graph file.")]
TaskName: TypeAlias = Annotated[str | None, option("NAME", "Only this task of DATA.", "--task")]
Json: TypeAlias = Annotated[bool, switch("--json", "Print one JSON object and nothing else on stdout.")]
Seed: TypeAlias = Annotated[int, option("N", "Seed of everything random (default: 0).", min=0, show_default=False)]
Jobs: TypeAlias = Annotated[int, option("N", "Processes that share the work (default: 1).", min=1, show_default=False)]
_ENGINE = "Processes of this machine (default), or of Ray."
_engine = partial(option, "|".join(ENGINES), _ENGINE, callback=_known_engine, show_default=False)
EngineName: TypeAlias = Annotated[str, _engine()]
RareEngineName: TypeAlias = Annotated[str, _engine(hidden=True)]


_LLM = "An OpenAI-compatible endpoint, with --llm-model NAME."
LlmUrl: TypeAlias = Annotated[str | None, option("URL", _LLM)]
# Their names are told where they are needed, so that the help of a command fits on a screen.
LlmModel: TypeAlias = Annotated[str | None, option("NAME", "The model's name there.", hidden=True)]
LlmDryRun: TypeAlias = Annotated[bool, typer.Option("--llm-dry-run", help="Only say what it would take.", hidden=True)]


def make_client(url: str | None, model: str | None, dry: bool) -> "ChatClient | None":
    """The client of `--llm URL --llm-model NAME`; without a URL there is none."""
    if url is None:
        refuse("--llm", llm_model=model, llm_dry_run=dry)
        return None
    from msg2.llm import ChatClient

    usage_error_if(model is None, "--llm goes with --llm-model NAME")
    with console.usage_errors():
        return ChatClient(url, model or "", dry=dry)


# -- options that are fields of a class -------------------------------------------------------------------------


def takes_fields(
    options: type,
    collected: str,
    names: Iterable[str] = (),
    *,
    make: Callable[..., object] | None = None,
    prefix: str = "",
    panel: str | None = None,
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command so that fields of a class of options become flags; `collected` gets the options."""
    specs = {spec.name: spec for spec in option_specs(options)}
    chosen = [specs[name] for name in tuple(names) or specs]

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(function, eval_str=True)

        @wraps(function)
        def command(**values: object) -> None:
            given = {spec.name: value for spec in chosen if (value := values.pop(spec.name)) is not None}
            with console.usage_errors():
                values[collected] = (make or options)(**given)
            function(**values)

        kept = [parameter for parameter in own.parameters.values() if parameter.name != collected]
        parameters = [*kept, *(_parameter(spec, prefix, panel) for spec in chosen)]
        named = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
        command.__signature__ = own.replace(parameters=named)  # type: ignore[attr-defined]
        command.__annotations__ = {}
        return command

    return decorate


_TYPES = {"number": float, "integer": int, "boolean": bool, "text": str}
_METAVARS = {"number": "X", "integer": "N", "text": "TEXT"}


def _parameter(spec: OptionSpec, prefix: str, panel: str | None) -> inspect.Parameter:
    words = tuple(word for word in spec.words if word != "none")
    kind: Any = Literal[words] if spec.kind == "choice" else _TYPES[spec.kind]
    flags = [f"--{spec.name.replace('_', '-')}"] if spec.kind == "boolean" and spec.default is False else []
    metavar = "P" if "from 0 to 1" in spec.values else _METAVARS.get(spec.kind)
    rare = spec.name in ("object", "strict")  # errors and warnings name them where they help
    described = typer.Option(*flags, metavar=metavar, help=prefix + spec.help, rich_help_panel=panel, hidden=rare)
    annotation = Annotated[kind | None, described]
    return inspect.Parameter(spec.name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)


def reads_data(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Decorate a command so that it takes these fields of `ReadOptions`, and those of all; `reading` gets those given.

    What says how overlaps are ordered goes with what says so of equal instants.
    """
    ties = ["ties"] * ("overlap" in names)
    return takes_fields(
        ReadOptions, "reading", (*names, *ties, "columns", "object", "strict"), make=dict, panel=READING
    )


def usage_error_if(wrong: object, message: str) -> None:
    """Raise a usage error where something true is wrong."""
    if wrong:
        raise typer.BadParameter(message)


def refuse(needed: str, **options: object) -> None:
    """Raise a usage error for an option that is given but means nothing without something else."""
    for name, value in options.items():
        usage_error_if(value, f"--{name.replace('_', '-')} goes with {needed}")


def list_settings() -> Iterable[tuple[str, str, Sequence[OptionSpec]]]:
    """Every method, what it does, and its options."""
    from msg2.inference import METHODS

    return [(name, METHODS[name].summary, option_specs(METHODS[name].options)) for name in METHODS]


def _help_on_settings(context: typer.Context, settings: list[str] | None) -> list[str] | None:
    if "help" not in (settings or ()):
        return settings
    if context.info_name in ("run", "train"):
        from msg2.states.configuration import STATE_OPTIONS

        console.print_line("the state model, its sampling, training and filling:")
        rows = [(f"  {name}={spec.default_text}", spec.values, spec.help) for name, (_, spec) in STATE_OPTIONS.items()]
        console.print_table(["  default", "values", "what it does"], rows, whole=True)
    if context.info_name == "train":
        raise typer.Exit
    for name, summary, specs in list_settings():
        console.print_line(f"{name}: {summary}")
        if specs:
            rows = [(f"  {spec.name}={spec.default_text}", spec.values, spec.help) for spec in specs]
            console.print_table(["  default", "values", "what it does"], rows, whole=True)
    encoder = "names=words, or a sentence encoder by its path or name"
    console.print_line(f"likelihood also reads the names of the steps: {encoder}.")
    raise typer.Exit


def split_state_settings(settings: Sequence[str] | None) -> tuple[dict[str, OptionValue], list[str]]:
    """Parse what `--set` says about state models; the rest is about a method."""
    from msg2.states.configuration import STATE_OPTIONS

    values: dict[str, OptionValue] = {}
    others = []
    for text in settings or ():
        name, value = (part.strip() for part in text.partition("=")[::2])
        if (key := name.replace("-", "_")) in STATE_OPTIONS:
            with console.usage_errors():
                values[key] = STATE_OPTIONS[key][1].parse(value)
        else:
            others.append(text)
    return values, others


def complete_method() -> list[str]:
    """The names of the methods, for the completion of the shell."""
    return [name for name, _, _ in list_settings()]


def complete_ranker() -> list[str]:
    """The names of the rankers, for the completion of the shell."""
    from msg2.assist import RANKERS

    return [*RANKERS]


def _complete_setting() -> list[str]:
    return sorted({f"{spec.name}=" for _, _, specs in list_settings() for spec in specs})


_method = partial(option, "NAME", "Which method? The default: likelihood, nearly always best.", "--method")
_set = partial(option, "NAME=VALUE", "An option of the method; `--set help` lists all.", "--set", is_eager=True)
MethodName: TypeAlias = Annotated[str, _method(show_default=False, autocompletion=complete_method)]
Settings: TypeAlias = Annotated[list[str] | None, _set(callback=_help_on_settings, autocompletion=_complete_setting)]


def parse_settings(method: str, settings: Sequence[str] | None, **flags: OptionValue) -> dict[str, Any]:
    """Parse what `--set` says about a method, and flags of the same meaning; what it cannot use is a usage error."""
    from msg2.inference.registry import make_options, parse_options

    with console.usage_errors():
        values = {name: value for name, value in flags.items() if value is not None}
        values |= parse_options(method, settings or ())
        make_options(method, values)
    return values


def read_tasks(data: Path, task: str | None = None, **options: Any) -> list[Task]:
    """Read the tasks of a file or folder, or only the one of a name."""
    with console.progress_bar("reading"):
        tasks = read_all(data, **options)
    return tasks if task is None else [choose_task(tasks, task, data)]


def read_as_recorded(graph: SubtaskGraph, data: Path, **options: Any) -> Task:
    """Read the task that a graph is about as the graph's own data was read, unless options say otherwise."""
    with console.progress_bar("reading"):
        return recorded_reading.read_as_recorded(graph, data, **options)


def read_if_given(graph: SubtaskGraph, data: Path | None, reading: GivenOptions, **defaults: Any) -> Task | None:
    """Read the task of a graph from `--data`; without it, options of reading are a usage error."""
    if data is None:
        refuse("--data", **reading)
        return None
    return read_as_recorded(graph, data, **{**defaults, **reading})


def refuse_clashes(outputs: Sequence[Path], *inputs: Path | None) -> None:
    """Refuse to write a result over another one, or over what is read."""
    read = {os.path.realpath(path) for path in inputs if path is not None}
    for path, times in Counter(map(os.path.realpath, outputs)).items():
        require(times == 1, "two results are to be written there", where=path, hint="give each a file of its own")
        require(path not in read, "is the data, the result would replace it", where=path, hint="choose another output")


def as_csv(columns: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Write a table as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([columns, *rows])
    return text.getvalue()


def fields_as_csv(kind: type, rows_of_tasks: Iterable[tuple[str, Iterable[object]]]) -> str:
    """Write dataclass instances of one kind as a CSV table, with the name of the task in front."""
    names = [field.name for field in fields(kind)]
    values = attrgetter(*names)
    return as_csv(["task", *names], ((task, *values(row)) for task, rows in rows_of_tasks for row in rows))

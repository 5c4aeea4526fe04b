"""The options of the methods, as commands take them: generated from each method's dataclass, never written twice."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import typer

from msg2.cli import console
from msg2.cli.generated_options import CommandWithOptions, GivenOptions
from msg2.errors import InputError
from msg2.inference import DEFAULT_METHOD, METHODS, find_method, make_options
from msg2.inference.registry import say_who_has_it
from msg2.options import OptionSpec, option_specs

Seed = Annotated[
    int, typer.Option(metavar="N", min=0, help="Seed of the folds with which δ auto is chosen, and of --samples.")
]


_PANEL = "Options of the methods"


def takes_method_options(
    *, without: tuple[str, ...] = (), default: str = DEFAULT_METHOD
) -> Callable[[Callable[..., None]], CommandWithOptions]:
    """Decorate a command so that it takes the options of all methods as `given`."""
    return lambda function: CommandWithOptions(function, "given", lambda: _parameters(without, default))


def _parameters(without: tuple[str, ...], default: str) -> Iterator[inspect.Parameter]:
    ordered = sorted(METHODS.items(), key=lambda item: item[0] != default)
    methods = " ".join(f"{name}: {method.summary}" for name, method in ordered)
    option = typer.Option("--method", metavar="NAME", help=methods, autocompletion=lambda: list(METHODS))
    name = Annotated[str, option]
    yield inspect.Parameter("method", inspect.Parameter.KEYWORD_ONLY, default=default, annotation=name)
    names = (spec.name for method in METHODS.values() for spec in option_specs(method.options))
    yield from (_parameter(name) for name in dict.fromkeys(names) if name not in without)


def _parameter(name: str) -> inspect.Parameter:
    """One option of the command line for all methods that have an option of this name."""
    specs = {
        method: spec
        for method, registered in METHODS.items()
        for spec in option_specs(registered.options)
        if spec.name == name
    }
    first = next(iter(specs.values()))
    helps: dict[str, list[str]] = {}
    for method, spec in specs.items():
        shown = spec.default_text.replace(",", ", ")  # so that lines can break there
        helps.setdefault(f"{spec.help} Default: {shown}.", []).append(method)
    text = " ".join(f"{', '.join(methods)}: {help}" for help, methods in helps.items())
    kind: Any = bool | None if first.kind == "boolean" else str | None
    words = dict.fromkeys(word for spec in specs.values() for word in ("VALUE", *spec.words))
    metavar = None if first.kind == "boolean" else "|".join(words)
    flag = f"--{first.name.replace('_', '-')}"
    if first.kind == "boolean" and any(spec.default for spec in specs.values()):
        flag += f"/--no-{flag.removeprefix('--')}"  # else it could not be switched off
    choices = list(dict.fromkeys(word for spec in specs.values() for word in spec.words))
    option = typer.Option(
        flag, metavar=metavar, help=text, rich_help_panel=_PANEL, show_default=False, autocompletion=lambda: choices
    )
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option])


def parse_method_options(method: str, given: GivenOptions) -> dict[str, Any]:
    """Parse the options that were given; what the method does not have or cannot use is a usage error."""
    with console.usage_errors():
        specs = {name: find_option(method, name) for name in given}
        values = {name: text if isinstance(text, bool) else specs[name].parse(text) for name, text in given.items()}
        make_options(method, values)
    return values


def find_option(method: str, name: str) -> OptionSpec:
    """Return the option of a method by its name."""
    specs = {spec.name: spec for spec in option_specs(find_method(method).options)}
    if name not in specs:
        takes = ", ".join(specs) or "none"
        hint = say_who_has_it(name, "--method {}") or f"it takes {takes}"
        raise InputError(f"the method {method!r} has no option {name!r}", hint=hint)
    return specs[name]

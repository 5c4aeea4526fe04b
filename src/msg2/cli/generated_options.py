"""Commands whose options are generated from dataclasses, so that none is written twice."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer

from msg2.options import option_specs

GivenOptions: TypeAlias = Mapping[str, Any]
"""The generated options that the user gave, by name; the others are not in it."""


class CommandWithOptions:
    """A command that takes generated options, beside those in the signature of its function.

    The function has a parameter for all of them together, a `GivenOptions`. A generated option that is in its signature
    as well is an argument of its own. The signature is made anew whenever Typer asks for it: options may join later.
    """

    def __init__(
        self, function: Callable[..., None], collected: str, options: Callable[[], Iterable[inspect.Parameter]]
    ) -> None:
        self._function, self._collected, self._options = function, collected, options
        self.__name__, self.__doc__, self.__annotations__ = function.__name__, function.__doc__, {}

    @property
    def __signature__(self) -> inspect.Signature:
        own = inspect.signature(self._function, eval_str=True)
        parameters = {one.name: one for one in (*own.parameters.values(), *self._options())}
        del parameters[self._collected]
        keyword_only = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in parameters.values()]
        return own.replace(parameters=keyword_only)

    def __call__(self, **values: Any) -> None:
        """Call the function with its own arguments, and with the generated options that were given."""
        own = inspect.signature(self._function).parameters
        given = {name: value for name, value in values.items() if name not in own and value is not None}
        self._function(**{name: values[name] for name in values if name in own}, **{self._collected: given})


def takes_fields(
    options: type, collected: str, metavars: Mapping[str, str | None], prefix: str = ""
) -> Callable[[Callable[..., None]], CommandWithOptions]:
    """Decorate a command so that it takes fields of a dataclass as options; their help is the docs of the fields."""

    def parameter(name: str) -> inspect.Parameter:
        (spec,) = (spec for spec in option_specs(options) if spec.name == name)  # read once: that is slow
        option = typer.Option(metavar=metavars[name], help=prefix + spec.help)
        kind: Any = get_type_hints(options)[name] | None
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, option])

    return lambda function: CommandWithOptions(function, collected, lambda: map(parameter, metavars))


def refuse_given(given: GivenOptions, needed: str) -> None:
    """Raise a usage error for an option that means nothing without something else."""
    for name in given:
        raise typer.BadParameter(f"--{name.replace('_', '-')} goes with {needed}")

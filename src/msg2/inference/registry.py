"""The methods that learn a graph, by name. To add one, write a module with options and `learn`, and one line here;
or a plug-in with an entry point of the group `msg2.methods`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from msg2.errors import InputError, require
from msg2.inference import baselines, msg2
from msg2.inference.likelihood import LikelihoodOptions
from msg2.inference.likelihood import learn as learn_by_likelihood
from msg2.inference.result import LearnedPreconditions
from msg2.options import make, option_specs
from msg2.plugins import Registry

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

MethodOptions: TypeAlias = "DataclassInstance"
"""A frozen dataclass: what a method can be told."""


@dataclass(frozen=True, slots=True)
class Method:
    """A way to learn a graph."""

    options: type[MethodOptions]
    learn: Callable[..., LearnedPreconditions]
    """`learn(sequences, options)`; with `encoder=` as well where it reads names."""
    summary: str
    """What it does, in a sentence."""
    reads_names: bool = False
    """Whether `learn` takes an `encoder` of the names of the steps."""
    reads_statements: bool = False
    """Whether it takes `statements` on the order of the steps, from texts, models or other graphs."""
    compares_purity: bool = False
    """Whether δ is compared with transition purities, and used for nothing else: between two of them, all δ are one."""
    tells_progress: bool = False
    """Whether `learn` takes a `progress`, which is told how far it is."""


def _accept_plugin(name: str, value: object) -> Mapping[str, Method]:
    require(isinstance(value, Method), "it is no msg2.inference.Method")
    return {name: _checked(name, cast(Method, value))}


def _checked(name: str, method: Method) -> Method:
    """Return the method; options with the name of an argument of `msg2.infer` are refused."""
    for spec in option_specs(method.options):
        if spec.name in RESERVED:
            raise InputError(f"the method {name!r} cannot have an option {spec.name!r}, which `msg2.infer` has itself")
    return method


RESERVED = (
    "data", "method", "task", "seed", "constraints", "samples", "confidence", "names", "text", "statements", "jobs",
    "progress",
)  # fmt: skip
"""Arguments of `msg2.infer`, which no option of a method can be called."""
METHODS: Registry[Method] = Registry("msg2.methods", _accept_plugin, {
    "msg2": Method(
        msg2.Msg2Options, msg2.learn,
        "The paper's search: the precondition of highest precision, layer by layer.", compares_purity=True,
    ),
    "msgi": Method(baselines.MsgiOptions, baselines.learn_msgi, "A decision tree on eligibility for every step."),
    "msgi+": Method(
        baselines.MsgiOptions, baselines.learn_msgi_plus, "As msgi, with eligibility inferred layer by layer.",
    ),
    "always-before": Method(
        baselines.AlwaysBeforeOptions, baselines.learn_always_before,
        "A step needs what comes before it in every video.", compares_purity=True,
    ),
    "likelihood": Method(
        LikelihoodOptions, learn_by_likelihood,
        "The partial order under which noisy videos are most probable; there is no threshold to choose.",
        reads_names=True, reads_statements=True, tells_progress=True,
    ),
})  # fmt: skip
"""All methods by name, those of plug-ins included."""
DEFAULT_METHOD = "likelihood"


def register(name: str, method: Method) -> None:
    """Add a method of your own: to `msg2.infer`, to the command line and to the web app.

    Parameters
    ----------
    name : str
        How users call it.
    method : Method
        Its options, its function and a sentence about it.

    Raises
    ------
    InputError
        Where another method has that name, or an option has the name of an argument of `msg2.infer`.
    """
    require(METHODS.setdefault(name, _checked(name, method)) is method, f"there is a method {name!r} already")


def find_method(name: str) -> Method:
    """Return the method of this name; an unknown one is an `InputError` that names them all."""
    try:
        return METHODS[name]
    except KeyError:
        raise InputError(f"there is no method {name!r}", hint=f"the methods are {', '.join(METHODS)}") from None


def make_options(name: str, values: Mapping[str, object]) -> MethodOptions:
    """Make the options of a method from keyword arguments; one that it does not have, or a bad value, is refused."""
    method = find_method(name)
    known = [spec.name for spec in option_specs(method.options)]
    for option in values:
        if option not in known:
            takes = f"it takes {', '.join(known)}" if known else "it takes none"
            raise InputError(f"the method {name!r} has no option {option!r}", hint=say_who_has_it(option) or takes)
    return make(method.options, values)


def parse_options(name: str, texts: Iterable[str]) -> dict[str, Any]:
    """Read options of a method from texts such as delta=0.8; what it does not have, or a bad value, is refused."""
    specs = {spec.name: spec for spec in option_specs(find_method(name).options)}
    values: dict[str, Any] = {}
    for text in texts:
        option, equals, value = text.partition("=")
        option = option.strip().replace("-", "_")
        require(equals, f"the option {text!r} is not of the form NAME=VALUE", hint="`--set help` lists the options")
        values[option] = specs[option].parse(value.strip()) if option in specs else value
    make_options(name, values)
    return values


def say_who_has_it(option: str) -> str | None:
    """Name the methods that have an option, for somebody who gave it to another one."""
    names = [name for name, method in METHODS.items() if option in {spec.name for spec in option_specs(method.options)}]
    if not names:
        return None
    return f"{' and '.join(names)} {'have' if len(names) > 1 else 'has'} it"

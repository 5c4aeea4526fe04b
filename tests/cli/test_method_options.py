"""The options of methods on the command line: generated from their dataclasses, also those of one that joined later."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest
from typer.main import get_command

import msg2 as package
from msg2.cli.app import app
from msg2.errors import InputError, require
from msg2.graph import Formula, step
from msg2.inference import METHODS, Method, register
from msg2.inference.result import LearnedPreconditions
from msg2.options import option_specs
from msg2.sequences import Sequences
from tests.cli.conftest import Msg2

HELP = "How many steps a step needs, at most, counted from the first by name."


@dataclass(frozen=True)
class ToyOptions:
    """Of a method that only this test knows."""

    toy_option: int = 1
    """How many steps a step needs, at most,
    counted from the first by name."""
    mood: Literal["good", "bad"] = "good"
    """It changes nothing."""
    shy: bool = True
    """It changes nothing either."""
    proud: bool = False
    """Nor does this."""

    def __post_init__(self) -> None:
        require(self.toy_option >= 0, f"toy_option is {self.toy_option}, it must not be negative")


def learn(sequences: Sequences, options: ToyOptions) -> LearnedPreconditions:
    """Every step needs the one before it by name, for as many steps as it is told."""
    names = sequences.steps
    needed: dict[str, Formula] = {
        after: step(before) for before, after in list(itertools.pairwise(names))[: options.toy_option]
    }
    return LearnedPreconditions(needed, {})


@pytest.fixture
def toy() -> Iterator[str]:
    """The name of a method that is registered for the time of a test."""
    register("toy", Method(ToyOptions, learn, "Learns the alphabet."))
    yield "toy"
    del METHODS["toy"]


def words(text: str) -> str:
    """Help without the borders and line ends of its panels."""
    return " ".join(text.replace("│", " ").split())


# -- a method that joins later ----------------------------------------------------------------------------------


def test_it_is_in_the_help(msg2: Msg2, toy: str) -> None:
    shown = words(msg2("infer", "--help").out)
    assert "--toy-option" in shown
    assert f"toy: {HELP} Default: 1." in shown
    assert "toy: Learns the alphabet." in shown
    assert "good|bad" in shown


def test_it_is_used_with_its_option(msg2: Msg2, toy: str, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "g.json"
    assert msg2("infer", table, "-o", out, "--method", toy, "--toy-option", 3).code == 0
    graph = package.infer(package.read(table), method="toy", toy_option=3)
    assert out.read_text() == graph.dumps()
    assert graph.edge_pairs() == {("dip", "fry"), ("fry", "heat"), ("heat", "whisk")}
    assert json.loads(out.read_text())["method"]["options"] == {
        "toy_option": 3, "mood": "good", "shy": True, "proud": False,
    }  # fmt: skip
    assert msg2("infer", table, "-o", out, "--method", toy).code == 0
    assert len(package.load(out).edge_pairs()) == 1, "by default, there is one"


def test_switches_go_both_ways_where_the_default_is_on(msg2: Msg2, toy: str, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "g.json"
    assert msg2("infer", table, "-o", out, "--method", toy, "--no-shy", "--proud", "--mood", "bad").code == 0
    options = json.loads(out.read_text())["method"]["options"]
    assert (options["shy"], options["proud"], options["mood"]) == (False, True, "bad")


def test_other_commands_take_it_too(msg2: Msg2, toy: str, many: Path) -> None:
    evaluate = ("next", many, "--evaluate", "--splits", 1, "--task", "Make Coffee", "--method", toy, "--json")
    found = msg2(*evaluate, "--toy-option", 2).json
    assert found["method"] == "toy"
    task = package.read(many, task="Make Coffee")
    expected = package.evaluate_next_step(task, method="toy", splits=1, toy_option=2)
    assert found["accuracy"] == expected.accuracy
    for name in ("next", "run", "sweep"):
        assert "--toy-option" in words(msg2(name, "--help").out)


@pytest.mark.parametrize("value", ["x", "1.5", "none", "-1", ""])
def test_a_value_that_it_cannot_use_is_a_usage_error(
    msg2: Msg2, toy: str, table: Path, tmp_path: Path, value: str
) -> None:
    ran = msg2("infer", table, "-o", tmp_path / "g.json", "--method", toy, f"--toy-option={value}")
    assert (ran.code, ran.out) == (2, "")
    assert "toy-option is" in ran.err or "toy_option is" in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["toast.csv"]


def test_it_is_gone_with_its_options(msg2: Msg2, table: Path, tmp_path: Path) -> None:
    assert "--toy-option" not in msg2("infer", "--help").out
    ran = msg2("infer", table, "-o", tmp_path / "g.json", "--method", "toy")
    assert ran.code == 2
    assert "there is no method 'toy'" in ran.err


def test_a_name_is_taken_once(toy: str) -> None:
    with pytest.raises(InputError, match="there is a method 'msg2' already"):
        register("msg2", METHODS[toy])


# -- all methods ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["infer", "next", "run", "sweep"])
def test_every_option_of_every_method_is_in_the_help(msg2: Msg2, command: str) -> None:
    shown = words(msg2(command, "--help").out)
    for method in METHODS.values():
        assert method.summary in shown
        for spec in option_specs(method.options):
            if command == "sweep" and spec.name == "delta":
                continue
            assert f" {spec.flag} " in shown
            assert f"{words(spec.help)} Default: {spec.default_text.replace(',', ', ')}." in shown


def test_the_default_is_likelihood_but_where_a_delta_is_swept(msg2: Msg2) -> None:
    for command, default in {"infer": "likelihood", "next": "likelihood", "run": "likelihood", "sweep": "msg2"}.items():
        assert f"[default: {default}]" in words(msg2(command, "--help").out)


def test_a_sweep_has_no_delta(msg2: Msg2, table: Path, tmp_path: Path) -> None:
    sweep = get_command(app).commands["sweep"]  # type: ignore[attr-defined]
    assert "--delta" not in {flag for parameter in sweep.params for flag in parameter.opts}
    assert msg2("sweep", table, "-o", tmp_path / "s.csv", "--delta", 0.5).code == 2


OF_OTHERS = [
    (method, spec)
    for method in METHODS
    for spec in {spec.name: spec for one in METHODS.values() for spec in option_specs(one.options)}.values()
    if spec.name not in {own.name for own in option_specs(METHODS[method].options)}
]


@pytest.mark.parametrize(("method", "spec"), OF_OTHERS, ids=[f"{method} {spec.name}" for method, spec in OF_OTHERS])
def test_an_option_of_another_method_is_a_usage_error(msg2: Msg2, table: Path, tmp_path: Path, method, spec) -> None:
    value = [] if spec.kind == "boolean" else [spec.default_text]
    ran = msg2("infer", table, "-o", tmp_path / "g.json", "--method", method, spec.flag, *value)
    assert (ran.code, ran.out) == (2, "")
    assert f"the method '{method}' has no option '{spec.name}'" in words(ran.err)
    assert [path.name for path in tmp_path.iterdir()] == ["toast.csv"]


def test_options_are_refused_where_no_graph_is_learned(msg2: Msg2, graph: Path, table: Path) -> None:
    ran = msg2("next", graph, "--levels", "0.1,0.2")
    assert (ran.code, "--levels goes with --evaluate" in words(ran.err)) == (2, True)
    ran = msg2("next", table, "--evaluate", "--ranker", "bigram", "--alpha", 0.1)
    assert (ran.code, "--alpha goes with a ranker that uses a graph" in words(ran.err)) == (2, True)


def test_an_option_cannot_be_called_as_an_argument_of_infer() -> None:
    @dataclass(frozen=True, slots=True)
    class SeededOptions:
        seed: int = 0

    with pytest.raises(InputError, match="cannot have an option 'seed'"):
        register("seeded", Method(SeededOptions, learn, "Learns the alphabet."))
    assert "seeded" not in METHODS

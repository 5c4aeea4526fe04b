"""The options of methods on the command line, also those of a method that joined later: --set NAME=VALUE."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

import msg2 as package
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


def test_it_is_listed_with_its_options(msg2: Msg2, toy: str) -> None:
    shown = words(msg2("infer", "--set", "help").out)
    assert "toy: Learns the alphabet." in shown
    assert f"toy_option=1 a whole number {HELP}" in shown
    assert "mood=good 'good' or 'bad'" in shown


def test_it_is_used_with_its_option(msg2: Msg2, toy: str, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "g.json"
    options = ("--set", "toy-option=3", "--set", "shy=false", "--set", "proud = true", "--set", "mood=bad")
    assert msg2("infer", table, "-o", out, "--method", toy, *options).code == 0
    graph = package.infer(package.read(table), method="toy", toy_option=3, shy=False, proud=True, mood="bad")
    assert out.read_text() == graph.dumps()
    assert graph.edge_pairs() == {("dip", "fry"), ("fry", "heat"), ("heat", "whisk")}
    assert json.loads(out.read_text())["method"]["options"] == {
        "toy_option": 3, "mood": "bad", "shy": False, "proud": True,
    }  # fmt: skip
    assert msg2("infer", table, "-o", out, "--method", toy).code == 0
    assert len(package.load(out).edge_pairs()) == 1, "by default, there is one"


def test_other_commands_take_it_too(msg2: Msg2, toy: str, many: Path) -> None:
    evaluate = ("next", many, "--evaluate", "--splits", 1, "--task", "Make Coffee", "--method", toy, "--json")
    found = msg2(*evaluate, "--set", "toy_option=2").json
    assert found["method"] == "toy"
    task = package.read(many, task="Make Coffee", repeats="keep")
    expected = package.evaluate_next_step(task, method="toy", splits=1, toy_option=2)
    assert found["accuracy"] == expected.accuracy
    for name in ("next", "run", "sweep"):
        assert "toy_option=1" in words(msg2(name, "--set", "help").out)


@pytest.mark.parametrize("value", ["x", "1.5", "none", "-1", ""])
def test_a_value_that_it_cannot_use_is_a_usage_error(
    msg2: Msg2, toy: str, table: Path, tmp_path: Path, value: str
) -> None:
    ran = msg2("infer", table, "-o", tmp_path / "g.json", "--method", toy, "--set", f"toy_option={value}")
    assert (ran.code, ran.out) == (2, "")
    assert "toy_option is" in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["toast.csv"]


def test_it_is_gone_with_its_options(msg2: Msg2, table: Path, tmp_path: Path) -> None:
    assert "toy_option" not in msg2("infer", "--set", "help").out
    ran = msg2("infer", table, "-o", tmp_path / "g.json", "--method", "toy")
    assert ran.code == 2
    assert "there is no method 'toy'" in ran.err


def test_a_name_is_taken_once(toy: str) -> None:
    with pytest.raises(InputError, match="there is a method 'msg2' already"):
        register("msg2", METHODS[toy])


# -- all methods ------------------------------------------------------------------------------------------------


def test_every_option_of_every_method_is_listed(msg2: Msg2) -> None:
    shown = words(msg2("infer", "--set", "help").out)
    for method in METHODS.values():
        assert method.summary in shown
        for spec in option_specs(method.options):
            assert words(f"{spec.name}={spec.default_text} {spec.values} {spec.help}") in shown


def test_a_sweep_has_no_delta(msg2: Msg2, table: Path, tmp_path: Path) -> None:
    ran = msg2("sweep", table, "-o", tmp_path / "s.csv", "--set", "delta=0.5")
    assert (ran.code, "every delta is tried" in words(ran.err)) == (2, True)
    ran = msg2("sweep", table, "-o", tmp_path / "s.csv", "--method", "likelihood")
    assert (ran.code, "the method 'likelihood' has no option 'delta'" in words(ran.err)) == (2, True)


@pytest.mark.parametrize(
    ("flag", "setting"),
    [
        (["--delta", "0.8"], "--set delta=0.8"), (["--max-literals=none"], "--set max_literals=none"),
        (["--exclude-relatives"], "--set exclude_relatives=true"), (["--names", "words"], "--set names=words"),
    ],
)  # fmt: skip
def test_a_flag_of_earlier_versions_is_told_how_to_be_set(
    msg2: Msg2, table: Path, tmp_path: Path, flag: list[str], setting: str
) -> None:
    ran = msg2("infer", table, "-o", tmp_path / "g.json", *flag, "--method", "msg2")
    assert (ran.code, ran.out) == (2, "")
    assert setting in words(ran.err)


def test_options_are_refused_where_no_graph_is_learned(msg2: Msg2, graph: Path, table: Path) -> None:
    ran = msg2("next", graph, "--set", "levels=0.1,0.2")
    assert (ran.code, "--set goes with --evaluate" in words(ran.err)) == (2, True)
    ran = msg2("next", table, "--evaluate", "--ranker", "bigram", "--set", "alpha=0.1")
    assert (ran.code, "--set goes with a ranker that uses a graph" in words(ran.err)) == (2, True)


def test_an_option_cannot_be_called_as_an_argument_of_infer() -> None:
    @dataclass(frozen=True, slots=True)
    class SeededOptions:
        seed: int = 0

    with pytest.raises(InputError, match="cannot have an option 'seed'"):
        register("seeded", Method(SeededOptions, learn, "Learns the alphabet."))
    assert "seeded" not in METHODS

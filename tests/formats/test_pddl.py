"""The PDDL of a graph is solved by a planner, and its plans are orders in which the graph allows the steps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from unified_planning.engines import CompilationKind, PlanGenerationResultStatus
from unified_planning.io import PDDLReader
from unified_planning.shortcuts import Compiler, OneshotPlanner, get_environment

from msg2.errors import InputError
from msg2.formats.pddl import pddl_identifiers, problem_path
from msg2.graph import SubtaskGraph, all_of, any_of, negation, step
from msg2.simulation import household_worlds, random_world
from msg2.simulation.worlds import RandomWorldOptions


@pytest.fixture
def cpr() -> SubtaskGraph:
    return SubtaskGraph(
        "perform CPR",
        ["check breathing", "check pulse", "check response", "open airway", "call emergency", "give breath", "stop"],
        {
            "call emergency": any_of([step("check breathing"), step("check pulse"), step("check response")]),
            "open airway": all_of([step("check breathing"), step("check response")]),
            "give breath": all_of([step("open airway"), any_of([step("check pulse"), step("call emergency")])]),
            "stop": all_of([step("call emergency"), negation(step("give breath"))]),
        },
    )


@pytest.fixture(autouse=True)
def _without_credits() -> None:
    get_environment().credits_stream = None


def plan(graph: SubtaskGraph, folder: Path) -> list[str] | None:
    """The steps of a plan, or None where there is none.

    The planner knows conjunctions only, so that "or" and "not" are first compiled away, by the same library.
    """
    domain = graph.show(folder / "graph.pddl")
    problem = PDDLReader().parse_problem(str(domain), str(problem_path(domain)))
    back = []
    for kind in (CompilationKind.DISJUNCTIVE_CONDITIONS_REMOVING, CompilationKind.NEGATIVE_CONDITIONS_REMOVING):
        with Compiler(problem_kind=problem.kind, compilation_kind=kind) as compiler:
            compiled = compiler.compile(problem, kind)
        problem = compiled.problem
        back.append(compiled.map_back_action_instance)
    with OneshotPlanner(name="pyperplan") as planner:
        result = planner.solve(problem)
    if result.plan is None:
        assert result.status == PlanGenerationResultStatus.UNSOLVABLE_INCOMPLETELY
        return None
    found = result.plan
    for map_back in reversed(back):
        found = found.replace_action_instances(map_back)
    names = {name: one for one, name in pddl_identifiers(graph.steps).items()}
    return [names[instance.action.name] for instance in found.actions]


def assert_solves(graph: SubtaskGraph, steps: list[str]) -> None:
    done: set[str] = set()
    for one in steps:
        assert one in graph.eligible(done)
        done.add(one)
    assert {name for name, end in graph.edge_pairs(ends=True) if end == "END"} <= done


def test_plans_of_worlds_are_allowed_orders(tmp_path: Path) -> None:
    options = RandomWorldOptions(steps=12, depth=3, or_rate=0.5)
    graphs = [one.graph for one in (*household_worlds()[:6], *(random_world(options, seed) for seed in range(4)))]
    assert any("any" in formula.kinds for graph in graphs for formula in graph.preconditions.values())
    for number, graph in enumerate(graphs):
        found = plan(graph, tmp_path / str(number))
        assert found is not None
        assert_solves(graph, found)


def test_alternatives_and_negations(cpr: SubtaskGraph, tmp_path: Path) -> None:
    found = plan(cpr, tmp_path)
    assert found is not None
    assert_solves(cpr, found)
    assert len(found) == 3  # one check is enough to call, and stopping needs no breath
    never = SubtaskGraph("t", "abc", {"b": step("a"), "c": all_of([step("b"), negation(step("a"))])})
    assert plan(never, tmp_path / "never") is None


def test_hostile_names_are_solved_too(tmp_path: Path) -> None:
    names = ["(:goal", "boil; water", "Boil, Water", "and", "水", "油", "½ cup"]
    graph = SubtaskGraph("(define (domain", names, {"水": any_of([step("and"), step("油")]), "½ cup": step("水")})
    found = plan(graph, tmp_path)
    assert found is not None
    assert_solves(graph, found)


def test_small_graphs(tmp_path: Path) -> None:
    assert plan(SubtaskGraph("t", ["only"], {}), tmp_path) == ["only"]


def test_domain_and_problem_are_written_together_or_not_at_all(cpr: SubtaskGraph, tmp_path: Path) -> None:
    (tmp_path / "g-problem.pddl").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        cpr.show(tmp_path / "g.pddl")
    assert [path.name for path in tmp_path.iterdir()] == ["g-problem.pddl"]


def test_a_planner_alone_solves_what_needs_no_more_than_it_knows(tmp_path: Path) -> None:
    graph = SubtaskGraph("tea", ["boil", "pour", "drink"], {"pour": step("boil"), "drink": step("pour")})
    domain = graph.show(tmp_path / "tea.pddl")
    command = [sys.executable, "-m", "pyperplan", str(domain), str(problem_path(domain))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    solution = (tmp_path / "tea-problem.pddl.soln").read_text().split()
    assert [name.strip("()") for name in solution] == ["boil", "pour", "drink"]

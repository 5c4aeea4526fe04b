"""The PDDL of a graph is solved by a planner, and its plans are orders in which the graph allows the steps."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from unified_planning.engines import CompilationKind, PlanGenerationResultStatus
from unified_planning.io import PDDLReader
from unified_planning.shortcuts import Compiler, OneshotPlanner, get_environment

from msg2.errors import InputError
from msg2.formats.graph_reader import pddl_identifiers, problem_path, to_pddl, to_pddl_problem
from msg2.graph import SubtaskGraph, all_of, any_of, negation, step
from msg2.simulation import RandomWorldOptions, household_worlds, random_world


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
    assert {
        name for name in graph.required if not any(name in graph.parents(other) for other in graph.required)
    } <= done
    assert all(done & set(group) for group in graph.exclusive if graph.optional.isdisjoint(group))


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


def plan_with_strips_only(graph: SubtaskGraph, folder: Path) -> list[str]:
    """The steps of a plan by a planner that knows neither "or" nor "not" in a precondition."""
    domain = graph.show(folder / "graph.pddl")
    command = [sys.executable, "-m", "pyperplan", str(domain), str(problem_path(domain))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    solution = (folder / "graph-problem.pddl.soln").read_text().split()
    names = {name: one for one, name in pddl_identifiers(graph.steps).items()}
    return [names[name.strip("()")] for name in solution]


def test_a_planner_alone_solves_what_needs_no_more_than_it_knows(tmp_path: Path) -> None:
    graph = SubtaskGraph("tea", ["boil", "pour", "drink"], {"pour": step("boil"), "drink": step("pour")})
    assert plan_with_strips_only(graph, tmp_path) == ["boil", "pour", "drink"]


def test_a_planner_alone_solves_order_and_exclusive_groups(tmp_path: Path) -> None:
    needs = {"pour": step("boil"), "milk": step("pour"), "drink": step("pour"), "a": step("boil")}
    order = [("sieve", "pour"), ("cool", "drink"), ("drink", "boast"), ("z", "a")]
    steps = ["boil", "pour", "milk", "drink", "sieve", "cool", "boast", "a", "z"]
    groups = [["sieve", "milk"], ["a", "z"]]
    graph = SubtaskGraph("tea", steps, needs, order=order, exclusive=groups, optional=["milk", "sieve", "boast"])
    found = plan_with_strips_only(graph, tmp_path)
    assert_solves(graph, found)
    assert {"boil", "pour", "drink", "cool"} < set(found) < set(steps)
    assert not {"milk", "sieve", "boast"} & set(found)
    assert found.index("cool") < found.index("drink")
    assert len({"a", "z"} & set(found)) == 1


def test_order_and_choice_with_alternatives(tmp_path: Path) -> None:
    needs = {"pour": all_of([step("boil"), any_of([step("grind"), step("open")])]), "stir": step("pour")}
    steps = ["boil", "grind", "open", "pour", "sugar", "stir", "warm"]
    graph = SubtaskGraph(
        "coffee", steps, needs, order=[("sugar", "stir"), ("warm", "boil")], exclusive=[["grind", "open"]],
        optional=["sugar"],
    )  # fmt: skip
    found = plan(graph, tmp_path)
    assert found is not None
    assert_solves(graph, found)
    assert len(found) == 5
    assert "sugar" not in found
    both = SubtaskGraph("t", "abc", {"c": all_of([step("a"), step("b")])}, exclusive=["ab"])
    assert plan(both, tmp_path / "both") is None


def test_what_must_be_done_is_in_the_goal() -> None:
    """A step that only an optional one needs, or one branch of an "any", would else be left out."""
    needs = {"b": step("a"), "d": any_of([step("c"), step("e")])}
    graph = SubtaskGraph("t", "abcde", needs, optional="be")
    goal = to_pddl_problem(graph).split("(:goal ")[1]
    assert set(re.findall(r"\(done-(.)\)", goal)) == {"a", "c", "d"}
    unsaid = SubtaskGraph("t", "abcde", needs)
    assert set(re.findall(r"\(done-(.)\)", to_pddl_problem(unsaid).split("(:goal ")[1])) == {"b", "d"}


def test_the_text_of_a_small_graph() -> None:
    tea = SubtaskGraph("tea", ["boil water", "pour"], {"pour": step("boil water")})
    assert (
        to_pddl(tea)
        == """; tea
(define (domain tea)
  (:requirements :strips)
  (:predicates
    (done-boil-water)
    (done-pour))

  ; boil water
  (:action boil-water
    :parameters ()
    :precondition (and)
    :effect (done-boil-water))

  ; pour
  (:action pour
    :parameters ()
    :precondition (done-boil-water)
    :effect (done-pour)))
"""
    )
    assert (
        to_pddl_problem(tea)
        == """; tea
(define (problem do-tea)
  (:domain tea)
  (:init)
  (:goal (and (done-pour))))
"""
    )

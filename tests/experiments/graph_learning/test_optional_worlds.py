"""Worlds with optional steps: kinds against many demonstrations, labels dropped at their rate."""

from __future__ import annotations

from itertools import chain, combinations, permutations

import pytest

from experiments.graph_learning import optional_worlds
from experiments.graph_learning.kind_suite import BOTH_BRANCHES, DEVELOPMENT, household_log, suite_world, world_log
from experiments.graph_learning.optional_worlds import (
    OptionalWorld,
    household_kinds,
    optional_world_kinds,
    simulate_household,
    simulate_world,
)
from msg2.simulation import household_worlds
from tests.experiments.graph_learning.test_process_trees import kinds_by_definition


def language(world: OptionalWorld) -> set[tuple[str, ...]]:
    """All faultless demonstrations, by trying every order of every set of steps."""
    optional = list(world.rates)
    required = [name for name in world.steps if name not in world.rates]
    found = set()
    for extra in chain.from_iterable(combinations(optional, size) for size in range(len(optional) + 1)):
        if all(world.needs.get(name, name) in extra for name in extra):
            for order in permutations([*required, *extra]):
                if all(
                    order[i] not in world.before[order[j]] for j in range(len(order)) for i in range(j + 1, len(order))
                ):
                    found.add(order)
    return found


@pytest.mark.parametrize("seed", range(5))
def test_kinds_are_those_of_the_language(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optional_worlds, "STEPS", (5, 6))
    monkeypatch.setattr(optional_worlds, "OPTIONAL_SHARE", 0.6)
    world = suite_world(seed)
    assert optional_world_kinds(world) == kinds_by_definition(language(world), world.steps)
    assert set(simulate_world(world, 300, 0.0, seed)) <= language(world)


def test_some_steps_need_others_that_are_optional() -> None:
    worlds = [suite_world(seed) for seed in DEVELOPMENT.worlds]
    assert sum(bool(world.needs) for world in worlds) >= 10
    for world in worlds:
        assert set(world.needs) | set(world.needs.values()) <= set(world.rates)
        assert set(world.needs).isdisjoint(world.needs.values())
        assert all(other in world.before[name] for name, other in world.needs.items())


def test_labels_are_dropped_at_their_rate_from_the_same_demonstrations() -> None:
    complete, half = world_log(3, 500, 0.0), world_log(3, 500, 0.4)
    labels = [sum(map(len, log.traces)) for log in (complete, half)]
    assert labels[1] / labels[0] == pytest.approx(0.6, abs=0.03)
    for whole, part in zip(complete.traces, half.traces, strict=True):
        assert tuple(name for name in whole if name in part) == part
    assert world_log(3, 20, 0.4).traces == half.traces[:20]
    assert complete.kinds == half.kinds


@pytest.mark.parametrize("place", [0, *(pytest.param(place, marks=pytest.mark.slow) for place in range(1, 12))])
def test_kinds_of_household_worlds_are_those_of_many_demonstrations(place: int) -> None:
    world = household_worlds()[place]
    for both in (0.0, 0.5):
        seen = kinds_by_definition(set(simulate_household(world, 2000, 0.0, both, seed=1)), world.graph.steps)
        kinds = household_kinds(world, both_branches=both > 0)
        different = {pair for pair in kinds if kinds[pair] != seen[pair]}
        if both:  # what is possible may be too rare to be seen
            assert all(kinds[pair] == "free" and seen[pair] == "after" for pair in different)
            assert len(different) <= 0.05 * len(kinds)
        else:
            assert different == set()


def test_household_worlds_with_one_branch_have_exclusive_steps() -> None:
    one, several = (household_log(9, 5, 0.0, both, 0).kinds for both in (0.0, BOTH_BRANCHES))
    pair = ("grind beans", "open ground coffee")
    assert (one[pair], several[pair]) == ("exclusive", "free")
    assert one["grind beans", "add coffee to filter"] == "after"

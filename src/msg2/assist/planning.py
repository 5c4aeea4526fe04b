"""Plans: the most probable sequences of steps that respect the graph, from what is done to a goal.

With a ranker p, of the sequences s that end with the goal and whose every step is eligible when it comes,

    score(s) = Π_i p(s_i | done, s_1 … s_{i−1}),        P(s | the goal is reached) = score(s) / Σ_plans score

The search is uniform-cost on −log p, which proves the k best where few enough paths have to be followed, and else a
beam. Without a ranker it is A* on the number of steps: a plan then has only what the goal needs.
"""

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, field
from heapq import heappop, heappush, nsmallest
from itertools import chain

from msg2.assist.following import unknown_step_error
from msg2.assist.rankers import Ranker
from msg2.errors import InputError, require
from msg2.graph import Formula, SubtaskGraph
from msg2.task import Step
from msg2.text import short_repr

MAX_EXPANDED = 2000
"""Paths that are continued before an exact search gives way to a beam, and those that the beam then continues."""
LEAST_PROBABILITY = 1e-12
"""Of a step that the graph allows and the ranker deems impossible: it is planned only where nothing else will do."""
NEGLIGIBLE = 1e-6
"""Probability of all open paths together at which no more plans are listed to normalise by."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A sequence of steps that leads to a goal."""

    steps: tuple[Step, ...]
    """What is still to do, in order; the last one is the goal."""
    probability: float | None
    """That a run which reaches the goal (in as many steps as were asked for) goes exactly this way; None without a
    ranker. Where there were too many plans to list, the paths left open count as if they reached the goal as often as
    those that were followed."""
    exact: bool
    """Whether it is certain that no plan is better but those before it in the list; False for what a beam found."""

    @property
    def reason(self) -> str:
        """Why this plan, in words."""
        share = "" if self.probability is None else f"; {100 * self.probability:.0f} % of the runs that get there go so"
        search = "" if self.exact else "; not all ways were tried"
        number = f"{len(self.steps)} step{'s' * (len(self.steps) != 1)}"
        return f"{number} to '{self.steps[-1]}', each possible when it comes{share}{search}"

    def to_json(self) -> dict[str, object]:
        """Plain values for one JSON object."""
        return {**asdict(self), "steps": list(self.steps), "reason": self.reason}


def plan_steps(
    graph: SubtaskGraph,
    done: Sequence[Step],
    goal: Step,
    *,
    ranker: Ranker | None = None,
    length: int | None = None,
    k: int = 1,
) -> list[Plan]:
    """Find the k best ways to a goal; of equals the shorter, then in the order of the graph.

    Without a ranker, the shortest plans come first. Their steps are then *due* when they come, where that is possible
    (a plan does not rule out a step that is not optional), and unless a length is asked for, none could be left out.
    """
    require(k >= 1, f"k is {k}, it must be 1 or more")
    require(length is None or length >= 1, f"length is {length}, it must be 1 or more")
    for name in (*done, goal):
        if name not in graph.steps:
            raise unknown_step_error(name, graph)
    left = ", ".join(short_repr(name) for name in graph.steps if name not in done)
    hint = f"steps that are left: {left}" if left else "all steps are done"
    require(goal not in done, f"{short_repr(goal)} is already done", hint=hint)
    for due in (True, False) if ranker is None else (False,):
        if plans := _PlanSearch(graph, done, goal, length, ranker, due=due).best_plans(k):
            return plans
    raise _out_of_reach_error(graph, done, goal, length)


@dataclass(frozen=True, slots=True)
class _PlannedPath:
    """Steps from what is done, and what they cost: −log score, or their number.

    Paths are followed by rank: the least that a plan can cost which begins so, then the number and the places of steps.
    """

    steps: tuple[Step, ...] = ()
    cost: float = 0.0
    rank: tuple[float, int, tuple[int, ...]] = (0.0, 0, ())

    @property
    def score(self) -> float:
        """Π p."""
        return math.exp(-self.cost)


@dataclass(slots=True)
class _SearchResult:
    """The `plans` that a search found, the best first, and where the probability went."""

    plans: list[_PlannedPath] = field(default_factory=list)
    exhausted: bool = False  # whether there are no others
    reached: float = 0.0  # score of all plans that it came across, be they among the k best or not
    left_open: float = 1.0  # score of the paths that it did not follow to their end


class _PlanSearch:
    """One question about plans; what a set of completed steps allows is looked up once."""

    def __init__(
        self,
        graph: SubtaskGraph,
        done: Sequence[Step],
        goal: Step,
        length: int | None = None,
        ranker: Ranker | None = None,
        *,
        due: bool,
    ) -> None:
        self.graph, self.done, self.goal, self.length, self.ranker, self.due = graph, done, goal, length, ranker, due
        self._completed = frozenset(done)
        self._only_needed = ranker is None and length is None
        relevant = self._relevant_steps()
        self._candidates = relevant if self._only_needed else frozenset(graph.steps)
        self._decisive = relevant.union(*map(graph.ruled_out_by, relevant))
        self._open_steps: dict[frozenset[Step], tuple[Step, ...]] = {}
        self._least_lengths: dict[frozenset[Step], float] = {}

    def best_plans(self, k: int) -> list[Plan]:
        """The k best plans; none where the goal is out of reach."""
        most = len(self.graph.steps) - len(self._completed)
        if not self._least_length(self._completed) <= (self.length or most) <= most:
            return []
        result = self._search_exactly(k)
        proven = len(result.plans)
        if proven < k and not result.exhausted:
            result = _merge_results(result, self._search_beam(k), k)
        share = (1.0 - result.left_open) / max(result.reached, sum(path.score for path in result.plans), 1e-300)
        return [
            Plan(path.steps, None if self.ranker is None else path.score * share, number < proven)
            for number, path in enumerate(result.plans)
        ]

    def _search_exactly(self, k: int) -> _SearchResult:
        """Uniform-cost search (A* without a ranker): what is taken from the queue is the best that is left."""
        result, queue, expanded = _SearchResult(), [(_PlannedPath().rank, _PlannedPath())], 0
        while queue and expanded < MAX_EXPANDED:
            if len(result.plans) == k and (self.ranker is None or result.left_open < NEGLIGIBLE):
                break
            _, path = heappop(queue)
            if self._is_plan(path):
                if len(result.plans) < k and self._has_no_spare_step(path):
                    result.plans.append(path)
                continue
            expanded += 1
            result.left_open -= path.score
            for longer in self._continuations(path):
                if self._is_plan(longer):
                    result.reached += longer.score
                else:
                    result.left_open += longer.score
                heappush(queue, (longer.rank, longer))
        result.exhausted = not queue
        result.left_open = max(result.left_open, 0.0) if queue else 0.0  # but for rounding
        return result

    def _search_beam(self, k: int) -> _SearchResult:
        """The best paths of each length, so many that `MAX_EXPANDED` are continued in all."""
        depth = len(self.graph.steps) - len(self._completed) if self.length is None else self.length
        width = max(1, MAX_EXPANDED // depth)
        result, beam = _SearchResult(left_open=0.0), [_PlannedPath()]
        for _ in range(depth):
            longer = sorted(chain.from_iterable(map(self._continuations, beam)), key=lambda path: path.rank)
            plans = [path for path in longer if self._is_plan(path)]
            result.reached += sum(path.score for path in plans)
            candidates = [*result.plans, *filter(self._has_no_spare_step, plans)]
            result.plans = nsmallest(k, candidates, key=lambda path: path.rank)
            paths = [path for path in longer if not self._is_plan(path)]
            beam, cut = paths[:width], paths[width:]
            result.left_open += sum(path.score for path in cut)
        return result

    def _continuations(self, path: _PlannedPath) -> Iterator[_PlannedPath]:
        """`path` with each step that may follow and from which the goal can still be reached."""
        completed = self._completed.union(path.steps)
        names = self._steps_after(completed)
        probabilities = self._probabilities(path, names)
        is_last = self.length is not None and len(path.steps) + 1 == self.length
        for name in names:
            if self.length is not None and (name == self.goal) != is_last:
                continue
            least = 0.0 if name == self.goal else self._least_length(completed | {name})
            taken = len(path.steps) + 1
            if math.isinf(least) or (self.length is not None and taken + least > self.length):
                continue
            places = (*path.rank[2], self.graph.index[name])
            if self.ranker is not None:
                cost = path.cost - math.log(probabilities[name])
                rank = round(cost, 9), taken, places  # costs that differ by rounding are equal
            else:  # plans of a given length are all equal
                cost = taken
                rank = max(path.rank[0], taken + least) if self.length is None else 0.0, 0, places
            yield _PlannedPath((*path.steps, name), cost, rank)

    def _probabilities(self, path: _PlannedPath, names: Sequence[Step]) -> Mapping[Step, float]:
        """Of each of the next steps `names`; where the ranker deems all of them impossible, they are equal."""
        if self.ranker is None or not names:
            return {}
        ranked = self.ranker((*self.done, *path.steps))
        weights = {name: ranked.get(name, 0.0) for name in names}
        total = sum(weights.values())
        return {name: max(weight / total if total else 1 / len(names), LEAST_PROBABILITY)
                for name, weight in weights.items()}  # fmt: skip

    def _steps_after(self, completed: frozenset[Step]) -> tuple[Step, ...]:
        """The steps that may come next."""
        if completed not in self._open_steps:
            allowed = self.graph.eligible(completed) & self._candidates - completed
            self._open_steps[completed] = tuple(
                name for name in self.graph.steps if name in allowed and not self._must_wait(name, completed)
            )
        return self._open_steps[completed]

    def _least_length(self, completed: frozenset[Step]) -> float:
        """The goal takes no fewer steps than these; infinite where it cannot be reached."""
        decisive = completed & self._decisive  # what else is done makes no difference
        if decisive not in self._least_lengths:
            needed = self._needed_steps(self.goal, decisive)
            self._least_lengths[decisive] = math.inf if needed is None else len(needed)
        return self._least_lengths[decisive]

    def _is_plan(self, path: _PlannedPath) -> bool:
        return bool(path.steps) and path.steps[-1] == self.goal

    def _has_no_spare_step(self, path: _PlannedPath) -> bool:
        """Whether no step before the goal can be left out (asked only where plans have what is needed and no more)."""
        if not self._only_needed:
            return True
        shorter = ((*path.steps[:place], *path.steps[place + 1 :]) for place in range(len(path.steps) - 1))
        return not any(
            all(name in self._steps_after(self._completed.union(steps[:place])) for place, name in enumerate(steps))
            for steps in shorter
        )

    def _relevant_steps(self) -> frozenset[Step]:
        """The steps that a plan to the goal can have a use for, itself included."""
        graph, relevant, unseen = self.graph, {self.goal}, [self.goal]
        while unseen:
            name = unseen.pop()
            uses = set(graph.parents(name))
            if self.due:
                for before in graph.order_predecessors(name) - graph.optional:
                    uses |= {before} | graph.partners(before)
            unseen.extend(uses - relevant)
            relevant |= uses
        return frozenset(relevant)

    def _must_wait(self, name: Step, completed: Set[Step]) -> bool:
        """Whether a step should be due, and something that should precede it can still come."""
        awaited = self.graph.awaited(name, completed) if self.due else ()
        return any(self._needed_steps(before, completed) is not None for before in awaited)

    def _needed_steps(
        self, name: Step, completed: Set[Step], known: dict[Step, frozenset[Step] | None] | None = None
    ) -> frozenset[Step] | None:
        """Steps that every plan to a step has, itself included (alternatives left out); None if out of reach."""
        graph, known = self.graph, {} if known is None else known
        if name in completed:
            return frozenset()
        if name not in known:
            ruled_out = not completed.isdisjoint(graph.ruled_out_by(name))
            before = None if ruled_out else self._needed_by_formula(graph.precondition(name), completed, known)
            if before is not None and self.due:
                awaited = [other for other in graph.awaited(name, completed) if not graph.partners(other)]
                before = before.union(*(self._needed_steps(other, completed, known) or () for other in awaited))
            known[name] = None if before is None else before | {name}
        return known[name]

    def _needed_by_formula(
        self, formula: Formula, completed: Set[Step], known: dict[Step, frozenset[Step] | None]
    ) -> frozenset[Step] | None:
        if formula.evaluate(completed):
            return frozenset()
        if formula.kind == "step":
            return self._needed_steps(formula.name, completed, known)
        if formula.kind == "not":  # what is done stays done; whether an inner negation can help is not asked
            return frozenset() if "not" in formula.operands[0].kinds else None
        parts = [self._needed_by_formula(operand, completed, known) for operand in formula.operands]
        possible = [part for part in parts if part is not None]
        if not possible or (formula.kind == "all" and len(possible) < len(parts)):
            return None
        return frozenset.union(*possible) if formula.kind == "all" else frozenset.intersection(*possible)


def _merge_results(exact: _SearchResult, beam: _SearchResult, k: int) -> _SearchResult:
    """The best of both; the probability is that of the search which left less of it open."""
    known = {path.steps for path in exact.plans}
    others = sorted((path for path in beam.plans if path.steps not in known), key=lambda path: path.rank)
    fuller = min(exact, beam, key=lambda result: result.left_open)
    return _SearchResult([*exact.plans, *others][:k], False, fuller.reached, fuller.left_open)


def _out_of_reach_error(graph: SubtaskGraph, done: Sequence[Step], goal: Step, length: int | None) -> InputError:
    """Why there is no plan, and what to do about it."""
    completed = frozenset(done)
    if length is not None:
        for due in (True, False):
            if shortest := _PlanSearch(graph, done, goal, due=due).best_plans(1):
                what = f"no plan to {short_repr(goal)} has exactly {length} steps"
                fewest = len(shortest[0].steps)
                return InputError(what, hint=f"the shortest plan has {fewest}; leave the length out for any number")
    what = f"{short_repr(goal)} cannot be reached any more"
    for name in sorted(graph.ancestors(goal) - completed | {goal}, key=lambda other: (other != goal, other)):
        partners, after = completed & graph.partners(name), completed & graph.order_successors(name)
        itself = "it" if name == goal else f"{short_repr(name)}, which it needs,"
        if partners:
            return InputError(what, hint=f"{short_repr(min(partners))} is done, and {itself} is never done as well")
        if after:
            return InputError(what, hint=f"{short_repr(min(after))} is done, and {itself} comes only before that")
    needs = graph.precondition(goal).to_english()
    return InputError(f"no way to {short_repr(goal)} was found", hint=f"it needs {needs}")

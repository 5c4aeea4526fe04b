"""What a graph says, as a whole and about one step, and its evidence, in plain words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from msg2.graph.formula import TRUE, Formula
from msg2.task import Step, demonstrations_noun

if TYPE_CHECKING:
    from msg2.graph.graph import SubtaskGraph

NAMED_VIDEOS = 8  # videos that are named one by one; of the others only the number is given


def demonstrations(graph: SubtaskGraph) -> str:
    """What the graph was learned from: "runs" of an event log, else "videos"."""
    options = graph.method.get("options")
    return demonstrations_noun(options.get("absent") if isinstance(options, Mapping) else None)


def rules(graph: SubtaskGraph) -> Iterator[str]:
    """Put all rules of a graph into words, each with the percentage of the bootstrap samples that agree."""
    for name, formula in graph.preconditions.items():
        yield f"{name}  needs  {formula.to_english()}{_percent(graph.step_evidence(name).confidence)}"
    for name in graph.steps:
        support = graph.step_evidence(name).edges
        earlier = [
            f"'{before}'{_percent(support[before].probability if before in support else None)}"
            for before in sorted(graph.order_predecessors(name) - graph.parents(name))
        ]
        if earlier:
            yield f"{name}  comes after  {' and '.join(earlier)}, if done"
    for group in graph.exclusive:
        shares = [graph.step_evidence(a).exclusive_probability.get(b) for a, b in combinations(group, 2)]
        least = min((share for share in shares if share is not None), default=None)
        yield f"only one of  {' and '.join(map(repr, group))}  is done{_percent(least)}"
    if graph.optional:
        yield f"may be left out:  {', '.join(name for name in graph.steps if name in graph.optional)}"


def _percent(share: float | None) -> str:
    return "" if share is None else f" ({100 * share:.0f} %)"


def sentences(graph: SubtaskGraph, step: Step) -> Iterator[str]:
    """Say what a step needs, what it comes after, and what the videos say about it."""
    precondition, evidence, videos = graph.precondition(step), graph.step_evidence(step), demonstrations(graph)
    yield f"'{step}' needs {_in_words(precondition)}."
    if earlier := graph.order_predecessors(step):
        those = "that is" if len(earlier) == 1 else "those are"
        yield f"It comes after {_name_steps(earlier)}, where {those} done at all."
    if partners := graph.partners(step):
        yield f"A run does it or {_name_steps(partners, 'or')}, never both."
    elif evidence.instead:
        yield f"{videos.capitalize()} show it or {' or '.join(map(repr, evidence.instead))}, hardly ever both."
    if evidence.optional is not None:
        without, every = evidence.optional.without, evidence.optional.videos
        needed = "" if step in graph.optional else ", and no step needs it"
        yield f"It is optional: {without} of {every} {videos} do without it{needed}."
    elif step in graph.optional:
        yield "It is optional: a run may leave it out."
    if step in graph.repeats:
        yield f"{100 * graph.repeats[step]:.0f} % of the runs that do it do it again."
    if precondition == TRUE:
        if evidence.videos == 0:
            yield f"None of the {videos} shows this step."
        return
    if evidence.confidence is not None:
        yield f"So say {round(100 * evidence.confidence)} % of the samples of the {videos}."
    if evidence.videos and evidence.holds is not None:
        share = round(100 * evidence.holds / evidence.videos)
        yield f"It held in {evidence.holds} of the {evidence.videos} {videos} with this step ({share} %)."
    if evidence.examples:
        yield f"It held, for instance, in: {name_some(evidence.examples)}."
    if evidence.violations:
        yield f"It did not hold in: {name_some(evidence.violations)}."
    for before, support in sorted(evidence.edges.items()):
        if support.weak and support.together is not None:
            yield f"Little support: '{before}' and '{step}' are ordered in only {support.together} {videos}."
    second = evidence.runner_up
    if second is not None and second.score is not None and evidence.score is not None:
        scores = f"score {second.score:.3f} against {evidence.score:.3f}"
        yield f"Next best: {_in_words(second.precondition)} ({scores})."


def name_some(videos: Sequence[str]) -> str:
    """Name the first few videos, and say how many more there are."""
    more = f" and {len(videos) - NAMED_VIDEOS} more" if len(videos) > NAMED_VIDEOS else ""
    return ", ".join(videos[:NAMED_VIDEOS]) + more


def _name_steps(steps: Iterable[Step], joint: str = "and") -> str:
    *others, last = (f"'{name}'" for name in sorted(steps))
    return f"{', '.join(others)} {joint} {last}" if others else last


def _in_words(formula: Formula) -> str:
    return "nothing before it" if formula == TRUE else formula.to_english()

"""What a graph says, as a whole and about one step, and its evidence, in plain words.

Only here do rules become English: what commands print, and what pages and the app show, comes from here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, TypeAlias

from msg2.graph.evidence import Backing, demonstrations, edge_backing, exclusive_support, is_weak, together_pairs
from msg2.graph.formula import TRUE, Formula
from msg2.task import Step

if TYPE_CHECKING:
    from msg2.graph.graph import SubtaskGraph
    from msg2.graph.graph_file import Loop

NAMED_VIDEOS = 8  # videos that are named one by one; of the others only the number is given
Naming: TypeAlias = Callable[[Step], str]
"""How a step is written: in quotes, or as a link."""


def _clause_backing(graph: SubtaskGraph, name: Step, clause: Formula) -> Backing:
    if clause.kind == "step":
        return edge_backing(graph, clause.name, name)
    for entry in graph.step_evidence(name).alternatives:
        if entry.clause == clause:
            return Backing(entry.held, entry.videos, is_weak(entry.held, entry.videos), entry.confidence)
    alternative = graph.support(min(clause.steps), name)
    said_by = (alternative.said_by if alternative is not None else None) or ()
    return Backing(share=graph.step_evidence(name).confidence, said_by=said_by)


def response_backing(graph: SubtaskGraph, name: Step, formula: Formula) -> Backing:
    """Count for and against what must follow a step."""
    for entry in graph.step_evidence(name).responses:
        if entry.follows == formula:  # in a video, what never comes may only lack its label
            videos = entry.videos - (0 if demonstrations(graph) == "runs" else entry.lacking or 0)
            return Backing(entry.held, videos, is_weak(entry.held, videos), entry.confidence)
    return Backing()


def _exclusive_backing(graph: SubtaskGraph, group: Iterable[Step]) -> Backing:
    """That of the pair with the smallest share."""
    supports = [exclusive_support(graph, *pair) for pair in combinations(sorted(group), 2)]
    known = sorted((each.share, *each.counts) for each in supports if each.share is not None)
    samples = [each.probability for each in supports if each.probability is not None]
    for _, held, against in known[:1]:
        return Backing(held, held + against, is_weak(held, held + against), min(samples, default=None))
    return Backing()


_Parts: TypeAlias = Sequence[tuple[str, Backing]]


def _with_counts(parts: _Parts, noun: str) -> list[str]:
    """Give each part its counts, the last one with the noun: "'a' (5 of 6)", "'b' (7 of 7 videos)"."""
    counts = [sure.words(noun if number == len(parts) else "") for number, (_, sure) in enumerate(parts, start=1)]
    return [f"{words} ({count})" if count else words for (words, _), count in zip(parts, counts, strict=True)]


# -- a whole graph -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RuleInWords:
    """Something that a graph says, in words, and whether it is weak."""

    text: str
    weak: bool = False
    of_pair: bool = True
    """Whether `related_pairs` has it too."""


def rules(graph: SubtaskGraph) -> Iterator[str]:
    """Put all rules of a graph into words, each with its counts; the weak ones below a heading of their own.

    With bootstrap samples, a percentage says how many of them agree.
    """
    every = list(all_rules(graph))
    yield from (rule.text for rule in every if not rule.weak)
    if weak := [f"  {rule.text}" for rule in every if rule.weak]:
        yield f"weak: few {demonstrations(graph)} tell, or a quarter of them contradict"
        yield from weak


def all_rules(graph: SubtaskGraph) -> Iterator[RuleInWords]:
    """Put all rules of a graph into words: what is needed, what comes after what, and the rest."""
    noun = demonstrations(graph)

    def split(start: str, parts: _Parts, end: str = "", of_pair: bool = True) -> Iterator[RuleInWords]:
        """A rule of the strong parts, and one of the weak ones."""
        for weak in (False, True):
            if chosen := [part for part in parts if part[1].weak == weak]:
                yield RuleInWords(f"{start}  {' and '.join(_with_counts(chosen, noun))}{end}", weak, of_pair)

    for name in graph.preconditions:
        yield from split(f"{name}  needs", _needs(graph, name))
    for name in graph.steps:
        earlier = graph.order_predecessors(name) - graph.parents(name)
        yield from split(f"{name}  comes after", _after(graph, name, earlier), ", if done")
    for group in graph.exclusive:
        backing = _exclusive_backing(graph, group)
        (told,) = _with_counts([("is done", backing)], noun)
        yield RuleInWords(f"only one of  {' and '.join(map(_quoted, group))}  {told}", backing.weak)
    for name in graph.steps:
        yield from split(f"{name}  is followed by", _following(graph, name), of_pair=False)
    for first, second, support in together_pairs(graph):
        at_once = support.simultaneous or 0
        (told,) = _with_counts([(_quoted(first), Backing(at_once, at_once + (support.together or 0)))], noun)
        yield RuleInWords(f"{second}  happens with  {told}")
    in_loops = {name for loop in graph.loops for name in (*loop.steps, *loop.back)}
    for text in (*(loop_in_words(graph, loop) for loop in graph.loops), *(
        f"{_quoted(name)} is done again in {100 * share:.0f} % of the {noun} with it"
        for name, share in graph.repeats.items() if name not in in_loops
    )):  # fmt: skip
        yield RuleInWords(text, of_pair=False)
    if left_out := [(name, _omission(graph, name)) for name in graph.steps if name in graph.optional]:
        yield RuleInWords(f"may be left out:  {', '.join(_with_counts(left_out, noun))}", of_pair=False)


def _needs(graph: SubtaskGraph, name: Step) -> _Parts:
    clauses = graph.precondition(name).clauses()
    parts = []
    for clause in clauses:
        words = clause.to_english()
        in_brackets = len(clauses) > 1 and clause.kind != "step"
        parts.append((f"({words})" if in_brackets else words, _clause_backing(graph, name, clause)))
    return parts


def _after(graph: SubtaskGraph, name: Step, earlier: Iterable[Step], named: Naming | None = None) -> _Parts:
    return [((named or _quoted)(before), edge_backing(graph, before, name)) for before in sorted(earlier)]


def _following(graph: SubtaskGraph, name: Step, named: Naming | None = None) -> _Parts:
    return [
        (formula.text(" and ", " or ", "not ", named or _quoted), response_backing(graph, name, formula))
        for before, formula in graph.responses
        if before == name
    ]


def _omission(graph: SubtaskGraph, name: Step) -> Backing:
    """The videos that leave out a step."""
    evidence, videos = graph.step_evidence(name), graph.method.get("videos")
    if evidence.optional is not None:
        return Backing(evidence.optional.without, evidence.optional.videos)
    if evidence.videos is None or not isinstance(videos, list) or evidence.videos > len(videos):
        return Backing()
    return Backing(len(videos) - evidence.videos, len(videos))


def loop_in_words(graph: SubtaskGraph, loop: Loop, named: Naming | None = None) -> str:
    """Say which part is done again, and how often."""
    steps = [(named or _quoted)(name) for name in loop.steps]
    back = f", after {_join(map(named or _quoted, loop.back), 'or')}" if loop.back else ""
    are, them = ("is", "it") if len(steps) == 1 else ("are", "them")
    share = f"{100 * loop.share:.0f} % of the {demonstrations(graph)} with {them}"
    return f"{_join(steps)} {are} done again in {share}{back}"


# -- one step ----------------------------------------------------------------------------------------------------------


def sentences(graph: SubtaskGraph, step: Step) -> Iterator[str]:
    """Say what a step needs, how else it is related to others, and what the videos say about it."""
    precondition, evidence, videos = graph.precondition(step), graph.step_evidence(step), demonstrations(graph)
    needed = " and ".join(_with_counts(_needs(graph, step), videos)) or "nothing before it"
    yield f"'{step}' needs {needed}."
    yield from (*comes_after(graph, step), *relations(graph, step))
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
    second = evidence.runner_up
    if second is not None and second.score is not None and evidence.score is not None:
        scores = f"score {second.score:.3f} against {evidence.score:.3f}"
        yield f"Next best: {_in_words(second.precondition)} ({scores})."


def comes_after(graph: SubtaskGraph, step: Step, named: Naming | None = None) -> Iterator[str]:
    """Say what a step comes after, if that is done, with its counts."""
    if earlier := _after(graph, step, graph.order_predecessors(step), named):
        those = "that is" if len(earlier) == 1 else "those are"
        yield f"It comes after {_join(_with_counts(earlier, demonstrations(graph)))}, where {those} done at all."


def relations(graph: SubtaskGraph, step: Step, named: Naming | None = None) -> Iterator[str]:
    """Say how else a step is related to others, each with its counts; pages name steps by links."""
    evidence, noun, name = graph.step_evidence(step), demonstrations(graph), named or _quoted
    if partners := sorted(graph.partners(step)):
        either = [(name(partner), _exclusive_backing(graph, (step, partner))) for partner in partners]
        yield f"A run does it or {_join(_with_counts(either, noun), 'or')}, never both."
    elif others := [name(other) for other in evidence.instead or () if other in graph.index]:
        yield f"{noun.capitalize()} show it or {' or '.join(others)}, hardly ever both."
    if following := _following(graph, step, named):
        yield f"It is followed, sooner or later, by {_join(_with_counts(following, noun))}."
    for first, second, support in together_pairs(graph):
        if step in (first, second):
            ordered, before = support.together or 0, support.before or 0
            other, before = (second, before) if step == first else (first, ordered - before)
            at_once = Backing(support.simultaneous or 0, ordered + (support.simultaneous or 0)).words(noun)
            sides = f"before it in {before}, after it in {ordered - before}"
            yield f"It happens with {name(other)}: at the same time in {at_once}, {sides}."
    for loop in graph.loops:
        if step in (*loop.steps, *loop.back):
            yield f"{loop_in_words(graph, loop, named)}."
    omission = _omission(graph, step)
    if step in graph.optional or evidence.optional is not None:
        needed = "" if step in graph.optional else ", and no step needs it"
        told = f"{omission.held} of {omission.videos} {noun} do without it{needed}"
        yield f"It is optional: {'a run may leave it out' if omission.held is None else told}."
    if step in graph.repeats and not any(loop.steps == [step] for loop in graph.loops):
        yield f"It is done again in {100 * graph.repeats[step]:.0f} % of the {noun} with it."


def name_some(videos: Sequence[str]) -> str:
    """Name the first few videos, and say how many more there are."""
    more = f" and {len(videos) - NAMED_VIDEOS} more" if len(videos) > NAMED_VIDEOS else ""
    return ", ".join(videos[:NAMED_VIDEOS]) + more


def _quoted(name: Step) -> str:
    return f"'{name}'"


def _join(texts: Iterable[str], joint: str = "and") -> str:
    *others, last = texts
    return f"{', '.join(others)} {joint} {last}" if others else last


def _in_words(formula: Formula) -> str:
    return "nothing before it" if formula == TRUE else formula.to_english()

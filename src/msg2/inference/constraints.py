"""What you know beforehand: texts such as "A<B" and files of such rules, and learning that obeys them exactly.

a<b: b needs a, maybe through others; a<<b: a comes first where both are done. Hints are softer: n extra videos that
show nothing but a, then b.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError, require
from msg2.formats.source import Source
from msg2.formats.tables import read_rows
from msg2.graph import Formula, SubtaskGraph, all_of, step
from msg2.graph.closure import Relation, clique_cover, reduce_order, required_steps, transitive_closure
from msg2.graph.graph_file import StatedRule
from msg2.inference.result import LearnedPreconditions, keep_clauses, replace_preconditions
from msg2.progress import Progress
from msg2.sequences import Sequences
from msg2.task import Segment, Step, Task, Video
from msg2.text import short_repr

StepPair: TypeAlias = tuple[Step, Step]
"""(before, after)."""


@dataclass(frozen=True, slots=True)
class Constraints:
    """Pairs (before, after) that are `required` or `forbidden`, and `hints` (before, after, videos).

    `required` and `forbidden` speak of what `after` needs; `required_order` and `forbidden_order` of which comes first
    where both are done. What contradicts itself is refused, and the contradiction is named.

    >>> Constraints(required=[("boil", "pour"), ("pour", "drink")], forbidden=[("boil", "drink")])
    Traceback (most recent call last):
    msg2.errors.InputError: boil<drink is forbidden, but it follows from what is required: boil<pour, pour<drink
    """

    required: frozenset[StepPair]
    forbidden: frozenset[StepPair]
    hints: frozenset[tuple[Step, Step, int]]
    required_order: frozenset[StepPair]
    forbidden_order: frozenset[StepPair]

    def __init__(
        self,
        required: Iterable[StepPair] = (),
        forbidden: Iterable[StepPair] = (),
        hints: Iterable[tuple[Step, Step, int]] = (),
        *,
        required_order: Iterable[StepPair] = (),
        forbidden_order: Iterable[StepPair] = (),
    ) -> None:
        values = (required, forbidden, hints, required_order, forbidden_order)
        for field, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, field.name, frozenset(value))
        for before, after in sorted(self.pairs):
            require(before != after, f"{self._format(before, after)} speaks of one step only")
        for before, after, videos in sorted(self.hints):
            rule = self._format(before, after)
            require(videos >= 1, f"{rule} has the weight {videos}, it must be 1 or more videos")
        first = self.required | self.required_order
        for before, after in sorted(first):
            if back := _shortest_path(first, after, before):
                raise InputError(f"what is required runs in a circle: {self._format(before, *back)}")
        for pairs, sign, known in ((self.forbidden, "<", self.required), (self.forbidden_order, "<<", first)):
            for before, after in sorted(pairs):
                if way := _shortest_path(known, before, after):
                    what = f"{before}{sign}{after} is forbidden, but it follows from what is required"
                    raise InputError(f"{what}: {self._format(*way)}")

    def _format(self, *path: Step) -> str:
        """The pairs of a path: a<b, or a<<b where only the order is spoken of."""
        orders = (self.required_order | self.forbidden_order) - self.required
        return ", ".join(f"{a}{'<<' if (a, b) in orders else '<'}{b}" for a, b in pairwise(path))

    @property
    def pairs(self) -> frozenset[StepPair]:
        """All pairs that it speaks of."""
        hinted = {(before, after) for before, after, _ in self.hints}
        return self.required | self.forbidden | self.required_order | self.forbidden_order | hinted

    def about(self, steps: Iterable[Step]) -> Constraints:
        """The part that speaks of these steps only."""
        known, kinds = frozenset(steps), [field.name for field in fields(self)]
        return Constraints(**{
            kind: [rule for rule in getattr(self, kind) if known.issuperset(rule[:2])] for kind in kinds
        })  # fmt: skip

    def as_rules(self) -> tuple[StatedRule, ...]:
        """What is required, as the rules of a graph."""
        needs = [StatedRule(before=before, after=after) for before, after in sorted(self.required)]
        order = sorted(self.required_order - self.required)
        return (*needs, *(StatedRule(before=before, after=after, kind="after") for before, after in order))

    def check(self, steps: Iterable[Step], task: str) -> None:
        """Refuse constraints about steps that the task of this name does not have."""
        for name in sorted({name for pair in self.pairs for name in pair}.difference(steps)):
            raise InputError(f"{short_repr(name)} is required, forbidden or hinted at, but no step of {task!r}")

    def to_json(self) -> dict[str, list[list[Step | int]]]:
        """As it stands in a graph file; kinds without any pair are left out.

        >>> Constraints(required=[("boil", "pour")]).to_json()
        {'required': [['boil', 'pour']]}
        """
        kinds = {field.name: sorted(getattr(self, field.name)) for field in fields(self)}
        return {kind: [list(rule) for rule in rules] for kind, rules in kinds.items() if rules}


_KINDS = {
    "require": "required", "required": "required", "forbid": "forbidden", "forbidden": "forbidden",
    "require-order": "required_order", "forbid-order": "forbidden_order",
}  # fmt: skip
_SIGNS = {"<<": "_order", "<": ""}
"""Between two steps, and what it adds to the kind of the constraint; the longer one is tried first."""
_FORM = "a row is kind,before,after and maybe weight; kind is require, forbid, require-order or forbid-order"
_JSON_FORM = 'as in a graph file: {"required": [["A", "B"]], "forbidden_order": [["C", "D"]], "hints": [["E", "F", 3]]}'
_Rule: TypeAlias = tuple[str, Step, Step, int | None, str]
"""(kind, before, after, weight, where) of a rule in a text or a file."""


def read_constraints(
    tasks: Sequence[Task | Sequences],
    *,
    require: Sequence[str] = (),
    forbid: Sequence[str] = (),
    file: Path | None = None,
) -> Constraints:
    """Read rules from texts, "A<B" (B needs A) or "A<<B" (A comes first where both are done), and from a file.

    The file is a table of kind, before, after and, for hints, weight; or the JSON that graph files record.

    >>> tea = Task("tea", ["boil", "pour", "stir"], [])
    >>> read_constraints([tea], require=["boil<pour", "pour<<stir"]).to_json()
    {'required': [['boil', 'pour']], 'required_order': [['pour', 'stir']]}
    """
    rules = [_parse_text(text, "--require", "required", tasks) for text in require]
    rules += [_parse_text(text, "--forbid", "forbidden", tasks) for text in forbid]
    if file is not None:
        source = Source.at(file)
        if source.is_folder:
            raise InputError("is a folder, not a file of relations", where=source.path)
        rules += _json_rows(source.document, source.path) if source.kind.startswith("JSON") else _csv_rows(source)
    pairs: dict[str, list[StepPair]] = {kind: [] for kind in _KINDS.values()}
    hints = Counter[StepPair]()
    for kind, before, after, weight, where in rules:
        if not any({before, after} <= set(task.steps) for task in tasks):
            for name in (before, after):
                if not any(name in task.steps for task in tasks):
                    hint = "`msg2 describe DATA` lists the steps"
                    raise InputError(f"{short_repr(name)} is no step of the data", where=where, hint=hint)
            raise InputError("its two steps belong to different tasks", where=where)
        if weight is None:
            pairs[kind].append((before, after))
        else:
            hints[(before, after) if kind.startswith("required") else (after, before)] += weight
    return Constraints(hints=[(*pair, weight) for pair, weight in hints.items()], **pairs)


def _parse_text(text: str, option: str, kind: str, tasks: Sequence[Task | Sequences]) -> _Rule:
    """The rule of "A<<B" or "A<B"; a "<" in a name is no matter where only one way to split it gives two steps."""
    where = f"{option} {short_repr(text)}"
    for sign, suffix in _SIGNS.items():
        places = [place for place in range(len(text)) if text.startswith(sign, place)]
        sides = [(text[:place], text[place + len(sign) :]) for place in places]
        sides += [(before.strip(), after.strip()) for before, after in sides]
        fitting = [pair for pair in dict.fromkeys(sides) if any(set(pair) <= set(task.steps) for task in tasks)]
        hint = "write it into a file, see --knowledge"
        require(len(fitting) < 2, f"{where} can be read in {len(fitting)} ways", hint=hint)
        if fitting:
            return kind + suffix, *fitting[0], None, where
    sign = next((sign for sign in _SIGNS if sign in text), "")
    require(sign, f"{option} is {text!r}, it must be two steps with a '<' or '<<' in between")
    before, _, after = text.partition(sign)
    return kind, before.strip(), after.strip(), None, where  # no steps, as the caller will say


def _csv_rows(source: Source) -> Iterator[_Rule]:
    """The rules of a table."""
    rows = read_rows(source, ",", 0)
    line, header = next(rows, (0, []))
    require(header, "is empty", where=source.path, hint=_FORM)
    fits = ",".join(map(str.strip, header)) in ("kind,before,after", "kind,before,after,weight")
    require(fits, "the columns are not kind,before,after or kind,before,after,weight", where=source.row(line))
    for line, (kind, before, after, *weight) in ((line, cells) for line, cells in rows if any(cells)):
        where = source.row(line)
        require(kind.strip() in _KINDS, "is no relation", where=where, hint=_FORM)
        videos = _parse_weight(weight[0], where) if weight and weight[0].strip() else None
        yield _KINDS[kind.strip()], before, after, videos, where


def _json_rows(document: object, path: Path) -> Iterator[_Rule]:
    """The rules of a JSON object as `Constraints.to_json` gives it."""
    if not isinstance(document, dict) or not document.keys() <= {*_KINDS.values(), "hints"}:
        what = "is not an object of required, forbidden, required_order, forbidden_order and hints"
        raise InputError(what, where=path, hint=_JSON_FORM)
    for kind, pairs in document.items():
        for number, pair in enumerate(pairs if isinstance(pairs, list) else [None]):
            where = f"{path}, {kind}, entry {number + 1}"
            match pair:
                case [str(before), str(after), weight] if kind == "hints":
                    yield "required", before, after, _parse_weight(weight, where), where
                case [str(before), str(after)] if kind != "hints":
                    yield kind, before, after, None, where
                case _:
                    raise InputError("is no relation", where=where)


def _parse_weight(value: object, where: str) -> int:
    """How many videos a hint is worth."""
    if isinstance(value, int | str):
        with suppress(ValueError):
            if (weight := int(value)) >= 1:
                return weight
    raise InputError(f"the weight is {short_repr(str(value))}, it must be a whole number of videos", where=where)


def learn_with_constraints(
    sequences: Sequences,
    options: object,
    learn: Callable[..., LearnedPreconditions],
    constraints: Constraints,
    **told: Progress,
) -> LearnedPreconditions:
    """Learn by a method that obeys: from the hints as well, and what it has learned is repaired."""
    # The videos of the hints: each shows one step, then another.
    hinted = [
        Video(f"{number}.{copy}", [Segment(before), Segment(after)])
        for number, (before, after, videos) in enumerate(sorted(constraints.hints))
        for copy in range(videos)
    ]
    hints = Sequences.from_task(Task("hints", sequences.steps, hinted))
    learnt = learn(sequences.concatenate(hints) if hinted else sequences, options, **told)
    obeying = apply_constraints(sequences.steps, learnt, constraints, sequences.before)
    if not constraints.hints and learnt.relearn:
        return replace(obeying, relearn=partial(_relearn, relearn=learnt.relearn, constraints=constraints))
    if not (learnt.model and constraints.hints):
        return obeying
    # The videos of hints leave out all other steps, which must not look optional for that.
    plain = learn(sequences, options)
    settled = _settle_hints(constraints, plain.graph(sequences.steps), obeying.graph(sequences.steps))
    return replace(apply_constraints(sequences.steps, plain, settled, sequences.before), relearn=None)


def _relearn(
    sequences: Sequences, relearn: Callable[[Sequences], LearnedPreconditions], constraints: Constraints
) -> LearnedPreconditions:
    return apply_constraints(sequences.steps, relearn(sequences), constraints, sequences.before)


def apply_constraints(
    steps: tuple[Step, ...], learnt: LearnedPreconditions, constraints: Constraints, before: NDArray[np.int64]
) -> LearnedPreconditions:
    """Repair what was learned so that it obeys constraints: drop only what contradicts them, and add what is required.

    If the method tells needs from orders, a need that has to go stays as an order where it may.
    """
    graph, by_name = learnt.graph(steps), SubtaskGraph("", steps, {})
    tells_kinds = bool(learnt.model or graph.order or graph.exclusive or graph.optional)
    index, relation = by_name.index, by_name.relation
    required, in_order = relation(constraints.required), relation(constraints.required_order)
    known = _StepRelations(transitive_closure(required), transitive_closure(required | in_order))
    said = graph.pair_kinds.among(steps) if tells_kinds else np.zeros_like(required)
    forbidden = _StepRelations(
        relation(constraints.forbidden | constraints.forbidden_order),
        relation(constraints.forbidden_order) | np.eye(len(steps), dtype=np.bool_),
    )
    learnt_relations = _StepRelations(graph.ancestor_matrix_in_order(steps), relation(graph.edge_pairs()) | said)
    kept = _largest_consistent_relations(learnt_relations, known, forbidden, before, tells_kinds)

    def allowed(name: Step, clause: Formula) -> bool:
        column, rows = index[name], [index[earlier] for earlier in clause.steps]
        # Neither "never", nor a NOT of something that must come first, says what comes before a step.
        hopeless = "not" in clause.kinds and known.order[rows or slice(None), column].any()
        return bool(kept.needs[rows, column].all()) and not hopeless

    formulas = keep_clauses(graph, allowed)
    needed: dict[Step, frozenset[Step]] = {}
    for name in sorted(steps, key=lambda name: (kept.needs[:, index[name]].sum(), name)):  # in that order, or like it
        missing = {one for one, other in constraints.required if other == name} - required_steps(formulas[name], needed)
        formulas[name] = all_of([formulas[name], *map(step, sorted(missing))])
        needed[name] = required_steps(formulas[name], needed)
    result = replace_preconditions(learnt, steps, formulas)
    if not tells_kinds and not constraints.required_order:
        return result

    still = [(a, b) for a, b in graph.order if kept.order[index[a], index[b]]]
    repaired = replace(result, order=still).graph(steps)
    repaired = replace(repaired, exclusive=_possible_groups(repaired, constraints))
    repaired = replace(repaired, optional=_optional_steps(repaired, constraints, needed))
    # What was kept for the sake of an OR that had to go as a whole no longer stands in the way of the others.
    order, agreed = transitive_closure(known.order | relation(repaired.edge_pairs())), before - before.T
    more = [pair for pair in sorted(constraints.required_order) if repaired.kind(*pair) == "free"]
    for a, b in sorted(np.argwhere(said).tolist(), key=lambda pair: (-agreed[*pair], pair)):
        implied = _pairs_through(order, a, b)
        if repaired.kind(steps[a], steps[b]) == "free" and not (implied & (forbidden.order | order.T)).any():
            order |= implied
            more.append((steps[a], steps[b]))
    if more:
        repaired = replace(repaired, order=(*repaired.order, *more))
        repaired = replace(repaired, order=reduce_order(repaired))
    return replace(result, order=repaired.order, exclusive=repaired.exclusive, optional=sorted(repaired.optional))


@dataclass(frozen=True, slots=True)
class _StepRelations:
    """What steps need, and what comes before them (needs included): two relations of shape (steps, steps)."""

    needs: Relation
    order: Relation


def _largest_consistent_relations(
    learnt: _StepRelations,
    known: _StepRelations,
    forbidden: _StepRelations,
    before: NDArray[np.int64],
    need_may_become_order: bool,
) -> _StepRelations:
    """Strict orders with all that is `known`, nothing `forbidden`, and as many `learnt` pairs as possible."""
    # Undisputed pairs come first. The others join one by one, best supported first, unless they contradict the rest.
    as_need = _disputed(learnt.needs, known.needs, forbidden.needs)
    as_order = _disputed(learnt.order, known.order, forbidden.order)
    needs = transitive_closure(known.needs | (learnt.needs & ~as_need & ~as_order))
    sure = learnt.order & ~as_order if need_may_become_order else needs
    order = transitive_closure(known.order | needs | sure)
    agreed = before - before.T
    disputed = (learnt.needs & (as_need | as_order)) | (learnt.order & as_order)
    # What is written comes first; what only follows from it, maybe through a branch of an OR, stands in nobody's way.
    ranked = sorted(np.argwhere(disputed).tolist(), key=lambda pair: (not learnt.order[*pair], -agreed[*pair], pair))
    for a, b in ranked:
        implied = _pairs_through(order, a, b)
        if (implied & (forbidden.order | order.T)).any():
            continue
        needed = _pairs_through(needs, a, b)
        if learnt.needs[a, b] and not (needed & forbidden.needs).any():
            needs |= needed
            order |= implied
        elif need_may_become_order and learnt.order[a, b]:
            order |= implied
    return _StepRelations(needs, order)


def _pairs_through(order: Relation, a: int, b: int) -> Relation:
    """The pairs that come into a transitive relation with [a, b]: whatever comes up to a is before all from b on."""
    above, below = order[:, a].copy(), order[b].copy()
    above[a] = below[b] = True
    return np.outer(above, below)


def _disputed(learnt: Relation, known: Relation, forbidden: Relation) -> Relation:
    """Find the pairs on a forbidden path: [a, b] with x ≤ a and b ≤ y for a forbidden pair (x, y)."""
    everything = transitive_closure(learnt | known)
    reach = (everything | np.eye(len(learnt), dtype=np.bool_)).astype(np.float32)
    return np.asarray(reach.T @ (everything & forbidden).astype(np.float32) @ reach.T > 0)


def _possible_groups(graph: SubtaskGraph, constraints: Constraints) -> tuple[tuple[Step, ...], ...]:
    """The exclusive groups without the pairs that make a step impossible, or that exclude what must be in order."""
    while True:
        needed = {(before, name) for name, earlier in graph.necessary.items() for before in earlier}
        wrong = [pair for pair in sorted(constraints.required_order | needed) if graph.kind(*pair) == "exclusive"]
        if not wrong:
            return graph.exclusive
        behind = {name: {name, *graph.ancestors(name)} for pair in wrong for name in pair}
        dropped = {frozenset(pair) for one, other in wrong for pair in product(behind[one], behind[other])}
        pairs = {pair for group in graph.exclusive for pair in combinations(group, 2) if frozenset(pair) not in dropped}
        graph = replace(graph, exclusive=clique_cover(pairs))


def _optional_steps(
    graph: SubtaskGraph, constraints: Constraints, needed: Mapping[Step, frozenset[Step]]
) -> frozenset[Step]:
    """The optional steps without those that must be done since a required step is said to need them."""
    optional, before = graph.optional, None
    while optional != before:
        before = optional
        always = replace(graph, optional=optional).required
        must = {before for before, after in constraints.required if after in always}
        optional -= must.union(*(needed[name] for name in must))
    return optional


def _settle_hints(constraints: Constraints, without: SubtaskGraph, with_hints: SubtaskGraph) -> Constraints:
    """The constraints, and the order of hinted steps where hints have changed it."""
    ordered, ways = ("needs", "after"), with_hints.edge_pairs()
    hinted = sorted({(before, after) for before, after, _ in constraints.hints})
    gained = {pair for pair in hinted if with_hints.kind(*pair) in ordered and without.kind(*pair) not in ordered}
    lost = {(b, a) for a, b in hinted if without.kind(b, a) in ordered and not _shortest_path(ways, b, a)}
    return Constraints(
        constraints.required, constraints.forbidden,
        required_order=constraints.required_order | gained, forbidden_order=constraints.forbidden_order | lost,
    )  # fmt: skip


def _shortest_path(pairs: frozenset[StepPair], start: Step, end: Step) -> list[Step]:
    """Find the shortest path through the pairs, by name among equals; empty if there is none."""
    ways = {start: [start]}
    for here in (queue := [start]):
        for _, there in sorted(pair for pair in pairs if pair[0] == here):
            if there not in ways:
                ways[there] = [*ways[here], there]
                queue.append(there)
    return ways.get(end, [])

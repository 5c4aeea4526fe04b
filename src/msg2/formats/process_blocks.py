"""A graph as nested blocks: partially ordered parts, choices, parts that may be left out, and loops; and as POWL.

Blocks are found by splitting a set of steps where all of one part exclude all of another (a choice), have no order with
them (in parallel) or come before them (one after the other). What cannot be split so becomes a partial order of its
loops, its exclusive steps and single steps. Blocks allow every run of the graph; `unsaid_rules` lists what they do not
say. POWL is the text form of partially ordered workflow models that pm4py reads.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product
from typing import Literal, TypeAlias

from msg2.graph import Formula, SubtaskGraph
from msg2.task import Step
from msg2.text import escape_control_characters, one_line, truncate

LEAST_REPEATED = 0.02
"""A single step is a loop of its own where at least this share of the runs with it does it again."""
_EACH_TIME = 0.9
"""A step of a loop is done each time where, of the runs that do some of the loop again, so many do it again."""
_StepSet: TypeAlias = frozenset[Step]
_log = logging.getLogger("msg2")


@dataclass(frozen=True)
class Block:
    """A step; parts in a partial order; one of several; something or nothing; or a part, and what leads back to it.

    `order` has pairs of places among `parts`, without those that follow from others. The second part of a loop, if
    there is one, is done between one time and the next.
    """

    kind: Literal["step", "order", "choice", "optional", "loop"]
    parts: tuple[Block, ...] = ()
    name: Step = ""
    order: tuple[tuple[int, int], ...] = ()
    steps: _StepSet = field(default=frozenset(), compare=False)


def to_blocks(graph: SubtaskGraph) -> Block:
    """Find the blocks of a graph."""
    finder, steps = _BlockFinder(graph), frozenset(graph.steps)
    root = finder.find(steps)
    is_certain = not steps or any(group <= steps for group in finder.certain)
    return root if is_certain else Block("optional", (root,), steps=steps)


class _BlockFinder:
    def __init__(self, graph: SubtaskGraph) -> None:
        self.graph, self.kinds = graph, graph.pair_kinds
        self.certain = [frozenset(group) for group in graph.exclusive if graph.optional.isdisjoint(group)]
        self.certain += [frozenset({name}) for name in graph.required]
        self._implied: dict[Step, list[_StepSet]] = {name: [] for name in graph.steps}
        for name, formula in [*graph.preconditions.items(), *graph.responses]:
            self._implied[name] += [clause for part in formula.clauses() if (clause := _options(part))]
        taken: set[Step] = set()
        self.loops: list[tuple[_StepSet, _StepSet]] = []
        self.left_out: set[Step] = set()  # in loops: what a run need not do again each time
        for loop in graph.loops:
            done = frozenset(loop.steps) - taken
            back = frozenset(loop.back) - taken - done
            self.loops += [(done, back)] if done else []
            taken |= done | back
            self.left_out |= {name for name in done if graph.repeats.get(name, 1) < _EACH_TIME * loop.share}
        again = [name for name, share in graph.repeats.items() if share >= LEAST_REPEATED]
        self.loops += [(frozenset({name}), frozenset()) for name in again if name not in taken]

    def find(self, steps: _StepSet, inside: _StepSet | None = None) -> Block:
        """The block of some steps; `inside` is the loop whose steps they are."""
        for done, back in self.loops:
            if done | back == steps and inside != done:
                again = (Block("optional", (self.find(back, done),), steps=back),) if back else ()
                return Block("loop", (self.find(done, done), *again), steps=steps)
        if len(steps) < 2:
            return self._step(next(iter(steps))) if steps else Block("order")
        whole = [done | back for done, back in self.loops if done | back < steps]
        parts = self._components(steps, lambda a, b: not self._are_exclusive(a, b), whole)
        if len(parts) > 1:
            return Block("choice", tuple(self.find(part) for part in parts), steps=steps)
        parts = self._components(steps, lambda a, b: self._are_ordered(a, b) or self._are_exclusive(a, b), whole)
        if len(parts) == 1:
            parts = self._components(steps, lambda a, b: not self._are_ordered(a, b), whole)
        if len(parts) == 1:
            parts = self._components(steps, self._are_exclusive, whole)
        if len(parts) == 1:  # they exclude each other, but not in one way: only some groups are a choice
            parts = whole
            for group in [*map(frozenset, self.graph.exclusive), *(frozenset({name}) for name in sorted(steps))]:
                parts += [group] if group <= steps and all(group.isdisjoint(part) for part in parts) else []
        return self._order(parts, steps)

    def _step(self, name: Step) -> Block:
        block = Block("step", (), name, (), frozenset({name}))
        return Block("optional", (block,), steps=block.steps) if name in self.left_out else block

    def _order(self, parts: list[_StepSet], steps: _StepSet) -> Block:
        """The partial order of parts, of which those that imply each other are left out together."""
        parts = self._group(parts, steps)
        ordered = self._sure_order(parts)
        blocks = [self.find(part) for part in parts]
        blocks = [
            block
            if block.kind == "optional" or self._is_always_done(part, steps)
            else Block("optional", (block,), steps=part)
            for block, part in zip(blocks, parts, strict=True)
        ]
        return Block("order", tuple(blocks), "", tuple(ordered), steps)

    def _group(self, parts: list[_StepSet], steps: _StepSet) -> list[_StepSet]:
        """Join parts that may only be left out together, where that makes no order weaker."""
        for part in [] if len(parts) < 3 else sorted(parts, key=self._place):
            if self._is_always_done(part, steps):
                continue
            others = [other for other in parts if other != part and self._implies(other, part)]
            group = [part, *(other for other in others if not self._is_always_done(other, steps))]
            rest = [other for other in parts if other not in group]
            # Everything else has to be before all of them, after all, or in no order with any.
            fits = all(len({self._relation(other, own) for own in group}) == 1 for other in rest)
            if len(group) > 1 and rest and fits:
                return self._group([*rest, frozenset().union(*group)], steps)
        return parts

    def _sure_order(self, parts: list[_StepSet]) -> list[tuple[int, int]]:
        """The order of parts; a part passes its turn on even where it was left out, so that all which follows holds."""
        parts.sort(key=self._place)
        ordered = {(a, b) for a, b in product(range(len(parts)), repeat=2) if self._relation(parts[a], parts[b]) > 0}
        before: dict[int, set[int]] = {place: set() for place in range(len(parts))}
        for first, second in sorted(ordered, key=lambda pair: (not self._needs(parts[pair[0]], parts[pair[1]]), pair)):
            after = [place for place in before if second in before[place]]
            gained = list(product({first, *before[first]}, [second, *after]))
            if ordered.issuperset(gained):
                for earlier, later in gained:
                    before[later].add(earlier)
        return sorted(
            (earlier, later)
            for later, all_before in before.items()
            for earlier in all_before.difference(*(before[other] for other in all_before))
        )

    def _place(self, part: _StepSet) -> int:
        return min(self.graph.index[name] for name in part)

    def _relation(self, first: _StepSet, second: _StepSet) -> int:
        """1 if one part comes before another, -1 if after it, 0 if neither can be said."""
        if first & second:
            return 0
        index = self.graph.index
        pairs = [(index[a], index[b]) for a, b in product(first, second)]
        for sign, before in ((1, self.kinds.before), (-1, self.kinds.before.T)):
            fits = all(before[pair] or self.kinds.exclusive[pair] for pair in pairs)
            if fits and any(before[pair] for pair in pairs):
                return sign
        return 0

    def _needs(self, first: _StepSet, second: _StepSet) -> bool:
        return any(self.kinds.needs[self.graph.index[a], self.graph.index[b]] for a, b in product(first, second))

    def _are_exclusive(self, a: Step, b: Step) -> bool:
        return bool(self.kinds.exclusive[self.graph.index[a], self.graph.index[b]])

    def _are_ordered(self, a: Step, b: Step) -> bool:
        pair = self.graph.index[a], self.graph.index[b]
        return bool(self.kinds.before[pair] or self.kinds.before.T[pair])

    def _components(
        self, steps: _StepSet, linked: Callable[[Step, Step], bool], whole: Sequence[_StepSet]
    ) -> list[_StepSet]:
        """The parts of some steps between which nothing is linked; what is a whole stays together."""
        parts: list[_StepSet] = []
        for unit in [*whole, *(frozenset({name}) for name in steps.difference(*whole))]:
            near = [part for part in parts if any(linked(a, b) for a, b in product(part, unit))]
            parts = [*(part for part in parts if part not in near), unit.union(*near)]
        return sorted(parts, key=self._place)

    def _is_always_done(self, part: _StepSet, steps: _StepSet) -> bool:
        """Whether some step of a part is in every run that has any of `steps`."""
        return any(group <= part for group in self.certain) or self._implies(steps - part, part)

    def _implies(self, first: _StepSet, second: _StepSet) -> bool:
        """Whether every run with any step of one part has some step of another."""
        for name in first:
            groups = [group for other in self._sure[name] for group in self._implied[other]]
            groups += [group.difference(self.graph.partners(name)) for group in self.certain]
            if second.isdisjoint(self._sure[name]) and not any(
                group and all(not second.isdisjoint(self._sure[other]) for other in group) for group in groups
            ):
                return False
        return True

    @cached_property
    def _sure(self) -> dict[Step, set[Step]]:
        """For every step all that each run with it has."""
        import networkx

        single = ((name, *group) for name, groups in self._implied.items() for group in groups if len(group) == 1)
        implied = networkx.DiGraph([*single, *((name, name) for name in self.graph.steps)])
        return {name: {name, *networkx.descendants(implied, name)} for name in self.graph.steps}


def _options(clause: Formula) -> _StepSet:
    """The steps of which a clause asks for one; none where it asks for something else."""
    parts = [clause] if clause.kind == "step" else clause.operands if clause.kind == "any" else ()
    names = frozenset(part.name for part in parts if part.kind == "step")
    return names if len(names) == len(parts) else frozenset()


# -- what blocks say --------------------------------------------------------------------------------------------


def unsaid_rules(graph: SubtaskGraph, root: Block) -> dict[Step, list[str]]:
    """What blocks do not say of each step, in words."""
    rules: dict[Step, list[str]] = {}
    for name in graph.steps:
        before, after, apart = _surroundings(root, name)
        own = rules.setdefault(name, [])
        for clause in graph.precondition(name).clauses():
            names = _options(clause)
            if not names or not any(_surely_has(block, names) for block in before):
                own.append(f"needs {_in_words(clause)}")
        for other in sorted(graph.order_predecessors(name)):
            if not any(other in block.steps for block in (*before, *apart)):
                own.append(f"after {one_line(other)}, if done")
        for other in sorted(graph.partners(name)):
            if not any(other in block.steps for block in apart):
                own.append(f"never together with {one_line(other)}")
        for first, formula in graph.responses:
            for clause in formula.clauses() if first == name else ():
                if not any(_surely_has(block, _options(clause)) for block in after):
                    own.append(f"followed by {_in_words(clause)}, sooner or later")
        if name in graph.required and not _surely_has(root, frozenset({name})):
            own.append("always done")
        for group in graph.exclusive:
            if group[0] == name and graph.optional.isdisjoint(group) and not _surely_has(root, frozenset(group)):
                own.append(f"one of these is always done: {', '.join(map(one_line, group))}")
    return {name: own for name, own in rules.items() if own}


def _in_words(clause: Formula) -> str:
    return clause.text(" and ", " or ", "not ", one_line)


def _surely_has(block: Block, names: _StepSet) -> bool:
    """Whether one of some steps is done whenever a block is."""
    if block.kind in ("step", "optional"):
        return block.name in names
    has = (_surely_has(part, names) for part in (block.parts[:1] if block.kind == "loop" else block.parts))
    return all(has) if block.kind == "choice" else any(has)


def _surroundings(root: Block, name: Step) -> tuple[list[Block], list[Block], list[Block]]:
    """The blocks that come before a step, after it, and in its place."""
    before: list[Block] = []
    after: list[Block] = []
    apart: list[Block] = []
    block = root
    while block.kind != "step":
        place = next(place for place, part in enumerate(block.parts) if name in part.steps)
        if block.kind == "choice":
            apart += [part for part in block.parts if name not in part.steps]
        for ways, found in ((block.order, after), ([(b, a) for a, b in block.order], before)):
            reached = [place]
            for here in reached:
                reached += [b for a, b in ways if a == here and b not in reached]
            found += [block.parts[other] for other in reached[1:]]
        block = block.parts[place]
    return before, after, apart


# -- POWL -------------------------------------------------------------------------------------------------------

_POWL_NAMES = str.maketrans("(){},'", "[][];\u2019")


def to_powl(graph: SubtaskGraph) -> str:
    """The POWL text of `graph`; pm4py's reader takes brackets, commas and quotes in names for its own."""
    names: dict[Step, str] = {}
    for name in graph.steps:
        text = truncate(escape_control_characters(one_line(name)).translate(_POWL_NAMES), 2000)
        while text in names.values():
            text += "\u2032"
        names[name] = text
    root = to_blocks(graph)
    if rules := sum(map(len, unsaid_rules(graph, root).values())):
        _log.warning("POWL cannot express %d of the rules", rules)

    def write(block: Block) -> str:
        parts = [write(part) for part in block.parts]
        if block.kind == "step":
            return f"'{names[block.name]}'"
        if block.kind == "order":
            order = ", ".join(f"{parts[a]}-->{parts[b]}" for a, b in block.order)
            return f"PO=(nodes={{ {', '.join(parts)} }}, order={{ {order} }})" if parts else "tau"
        if block.kind == "optional" or len(parts) == 1:
            parts.append("tau")
        return f"{'*' if block.kind == 'loop' else 'X'} ( {', '.join(parts)} )"

    return write(root) + "\n"

"""What was learned: a subtask graph G = (f_1, …, f_N), one Boolean precondition per step (Sec. 2), and more.

Beyond what a step *needs*, a graph may say which step comes *after* another if both are done (`order`), which are never
both done (`exclusive`), which may be left out (`optional`), and which are often done again (`repeats`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import astuple, dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError, errors_at, optional_dependency
from msg2.graph import explanation, reduction
from msg2.graph.closure import transitive_closure, transitive_reduction
from msg2.graph.evidence import Edge, PairKind, StepEvidence, Support, edge_pairs_with_support
from msg2.graph.formula import TRUE, Formula, formula_from_json
from msg2.graph.pair_kinds import PairKinds, pair_kinds
from msg2.task import Step
from msg2.text import name_fault, short_repr

if TYPE_CHECKING:
    import networkx
    import pandas  # type: ignore[import-untyped]

FORMAT = "msg2.graph/2"
OLD_FORMAT = "msg2.graph/1"
"""Files of this format have preconditions only; they are read as such."""
START, END = "START", "END"
"""The virtual steps before every first and after every last step, in edge scores."""


@dataclass(frozen=True, eq=False)
class SubtaskGraph:
    """Steps with their preconditions; a step that is absent from `preconditions` has none.

    `order` has pairs (a, b): where a run does both, a comes first. `exclusive` has groups of steps of which a run does
    at most one, `optional` the steps that a faultless run may leave out, `repeats` the share of runs that do a step
    again. `method` says how the graph was learned (name, options, videos) and `evidence` what supports it. Steps are
    kept sorted by layer, then name. A cycle of preconditions and order is rejected.

    >>> from msg2.graph.formula import any_of, step
    >>> g = SubtaskGraph("coffee", ["pour", "grind", "open"], {"pour": any_of([step("grind"), step("open")])})
    >>> g.steps, sorted(g.eligible({"open"}))
    (('grind', 'open', 'pour'), ['grind', 'open', 'pour'])
    >>> sugar = SubtaskGraph("tea", ["pour", "sugar", "stir"], {"stir": step("pour")}, order=[("sugar", "stir")])
    >>> sorted(sugar.eligible({"pour", "stir"})), sugar.kind("sugar", "stir")
    (['pour', 'stir'], 'after')
    """

    task: str
    steps: tuple[Step, ...]
    preconditions: Mapping[Step, Formula]
    method: Mapping[str, Any] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)
    order: tuple[tuple[Step, Step], ...] = ()
    exclusive: tuple[tuple[Step, ...], ...] = ()
    optional: frozenset[Step] = frozenset()
    repeats: Mapping[Step, float] = field(default_factory=dict)

    def __init__(
        self,
        task: str,
        steps: Iterable[Step],
        preconditions: Mapping[Step, Formula],
        method: Mapping[str, Any] | None = None,
        evidence: Mapping[str, Any] | None = None,
        *,
        order: Iterable[Sequence[Step]] = (),
        exclusive: Iterable[Iterable[Step]] = (),
        optional: Iterable[Step] = (),
        repeats: Mapping[Step, float] | None = None,
    ) -> None:
        names = list(steps)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"the graph has the step {short_repr(twice)} twice")
        for name, formula in preconditions.items():
            for used in ({name} | formula.steps) - set(names):
                raise InputError(f"{short_repr(used)} is in a precondition but not among the steps of the graph")
        pairs = sorted({(before, after) for before, after in order})
        groups = sorted({tuple(sorted(set(group))) for group in exclusive})
        left_out, again = frozenset(optional), dict(repeats or {})
        _check_relations(set(names), pairs, groups, left_out, again)
        needed = {name: f for name, f in preconditions.items() if f != TRUE}
        layers = _layers(names, needed, pairs)
        ordered = tuple(sorted(names, key=lambda name: (layers[name], name)))
        object.__setattr__(self, "task", task)
        object.__setattr__(self, "steps", ordered)
        object.__setattr__(self, "preconditions", MappingProxyType({n: needed[n] for n in ordered if n in needed}))
        object.__setattr__(self, "method", MappingProxyType(dict(method or {})))
        object.__setattr__(self, "evidence", MappingProxyType(dict(evidence or {})))
        object.__setattr__(self, "order", tuple(pairs))
        object.__setattr__(self, "exclusive", tuple(groups))
        object.__setattr__(self, "optional", left_out)
        object.__setattr__(self, "repeats", MappingProxyType({n: again[n] for n in ordered if n in again}))

    # -- questions ----------------------------------------------------------------------------------------------

    def precondition(self, step: Step) -> Formula:
        """f_n of the step."""
        self._position(step)
        return self.preconditions.get(step, TRUE)

    def eligible(self, completed: Iterable[Step]) -> frozenset[Step]:
        """e = f_G(c): the steps that may be done now, completed ones included (Sec. 2).

        The precondition holds, no exclusive partner is done, and no step that comes after it, if done, is done already.
        """
        done = frozenset(completed)
        for name in sorted(done):
            self._position(name)
        return frozenset(
            name
            for name in self.steps
            if self.precondition(name).evaluate(done)
            and done.isdisjoint(self.partners(name))
            and done.isdisjoint(self.order_successors(name))
        )

    def due(self, completed: Iterable[Step]) -> frozenset[Step]:
        """The steps that are eligible, not completed, and wait for nothing: see `awaited`.

        >>> graph = SubtaskGraph("tea", ["sugar", "milk", "stir"], {}, order=[("sugar", "stir")], optional=["milk"])
        >>> sorted(graph.due(())), sorted(graph.due({"sugar"}))
        (['milk', 'sugar'], ['milk', 'stir'])
        """
        done = frozenset(completed)
        return frozenset(name for name in self.eligible(done) - done if not self.awaited(name, done))

    def awaited(self, step: Step, completed: Set[Step]) -> frozenset[Step]:
        """Find what should come before a step, if done, and is still to come: not optional, and not ruled out.

        Parameters
        ----------
        step : str
            A step.
        completed : set of str
            What is done.

        Returns
        -------
        frozenset of str
        """
        open_steps = self.order_predecessors(step) - completed - self.optional
        return frozenset(name for name in open_steps if completed.isdisjoint(self.partners(name)))

    def partners(self, step: Step) -> frozenset[Step]:
        """The steps that are never done in the same run as `step`, as the exclusive groups say."""
        return self._relations["partners"].get(step, frozenset())

    def order_predecessors(self, step: Step) -> frozenset[Step]:
        """The steps that come before `step` where both are done, as `order` says."""
        return self._relations["predecessors"].get(step, frozenset())

    def order_successors(self, step: Step) -> frozenset[Step]:
        """The steps that come after `step` where both are done, as `order` says."""
        return self._relations["successors"].get(step, frozenset())

    @cached_property
    def _relations(self) -> Mapping[str, Mapping[Step, frozenset[Step]]]:
        found: dict[str, dict[Step, set[Step]]] = {"partners": {}, "predecessors": {}, "successors": {}}
        for before, after in self.order:
            found["successors"].setdefault(before, set()).add(after)
            found["predecessors"].setdefault(after, set()).add(before)
        for group in self.exclusive:
            for name in group:
                found["partners"].setdefault(name, set()).update(other for other in group if other != name)
        return {kind: {name: frozenset(others) for name, others in by.items()} for kind, by in found.items()}

    @cached_property
    def required(self) -> frozenset[Step]:
        """The steps of every faultless run: neither optional nor in an exclusive group."""
        return frozenset(self.steps).difference(self.optional, *self.exclusive)

    @cached_property
    def pair_kinds(self) -> PairKinds:
        """What the graph says about every pair of steps."""
        return pair_kinds(self)

    def kind(self, before: Step, after: Step) -> PairKind:
        """Say how two steps are related: see `msg2.graph.pair_kinds`.

        Parameters
        ----------
        before, after : str
            Two steps.

        Returns
        -------
        PairKind
            "needs" where `after` needs `before`, "after" where it comes after it if both are done, "exclusive" where a
            run never does both, else "free".
        """
        return self.pair_kinds.kind(before, after)

    def parents(self, step: Step) -> frozenset[Step]:
        """The steps in the step's precondition."""
        return self.precondition(step).steps

    def ancestors(self, step: Step) -> frozenset[Step]:
        """The steps from which `step` is reachable through any AND/OR node."""
        column = self.ancestor_matrix[:, self._position(step)]
        return frozenset(name for name, is_ancestor in zip(self.steps, column, strict=True) if is_ancestor)

    @cached_property
    def layer(self) -> Mapping[Step, int]:
        """Depth of each step: the longest path to it; a step that comes after nothing is in layer 0."""
        return MappingProxyType(_layers(self.steps, self.preconditions, self.order))

    @cached_property
    def ancestor_matrix(self) -> NDArray[np.bool_]:
        """R_G, shape (steps, steps): [a, b] is True when a is an ancestor of b (Eq. graphmetric)."""
        relation = np.zeros((len(self.steps), len(self.steps)), dtype=np.bool_)
        for column, name in enumerate(self.steps):
            relation[[self._index[parent] for parent in self.parents(name)], column] = True
        return transitive_closure(relation)

    @cached_property
    def _edge_matrix(self) -> NDArray[np.bool_]:
        """The edges of both kinds, shape (steps, steps)."""
        relation = np.zeros((len(self.steps), len(self.steps)), dtype=np.bool_)
        for before, after in self.edge_pairs():
            relation[self._index[before], self._index[after]] = True
        return relation

    def ancestor_matrix_in_order(self, steps: Iterable[Step]) -> NDArray[np.bool_]:
        """R_G with the steps in another order."""
        places = [self._index[name] for name in steps]
        return self.ancestor_matrix[np.ix_(places, places)]

    @cached_property
    def _index(self) -> Mapping[Step, int]:
        return {name: position for position, name in enumerate(self.steps)}

    def _position(self, step: Step) -> int:
        if step not in self._index:
            raise InputError(f"{short_repr(step)} is not a step of the graph")
        return self._index[step]

    def edges(self) -> tuple[Edge, ...]:
        """Every edge with its kind and support: what a step needs, and what it comes after if both are done.

        They are sorted by the place of `after` in `steps`, then by the name of `before`.

        >>> from msg2.graph.formula import step
        >>> evidence = {"pour": {"edges": {"boil": {"before": 9, "together": 10}}}}
        >>> (edge,) = SubtaskGraph("tea", ["boil", "pour"], {"pour": step("boil")}, evidence=evidence).edges()
        >>> edge.before, edge.after, edge.kind, edge.support.share
        ('boil', 'pour', 'needs', 0.9)
        """
        return tuple(
            Edge(before, after, self.support(before, after), "needs" if before in self.parents(after) else "after")
            for after in self.steps
            for before in sorted(self.parents(after) | self.order_predecessors(after))
        )

    def support(self, before: Step, after: Step) -> Support | None:
        """Look up the videos that have one step before another.

        Parameters
        ----------
        before, after : str
            Two steps, the first of them in the precondition of the second, or before it in the order.

        Returns
        -------
        Support or None
            None where the graph has no evidence of this edge.
        """
        counts: Any = self.evidence
        for key in (after, "edges", before):
            counts = counts.get(key) if isinstance(counts, Mapping) else None
        return Support.from_json(counts) if isinstance(counts, Mapping) else None

    def step_evidence(self, step: Step) -> StepEvidence:
        """What the videos say about the precondition of the step."""
        if step not in self._parsed_evidence:
            self._parsed_evidence[step] = StepEvidence.from_json(self.evidence.get(step))
        return self._parsed_evidence[step]

    @cached_property
    def _parsed_evidence(self) -> dict[Step, StepEvidence]:
        """Of the steps that were asked about: evidence is parsed once."""
        return {}

    def edge_pairs(self, ends: bool = False) -> frozenset[tuple[Step, Step]]:
        """The pairs (before, after) of the edges of both kinds, without their support.

        With `ends`, also ("START", step) for steps that come after nothing and (step, "END") for those before nothing.
        """
        inner = frozenset((edge.before, edge.after) for edge in self.edges())
        return inner | self._end_pairs(inner) if ends else inner

    def reduced_edge_pairs(self, ends: bool = False) -> frozenset[tuple[Step, Step]]:
        """The plain transitive reduction of the edges of both kinds: a pair with a way round through others is dropped.

        Unlike `transitive_reduction` it asks neither for ORs nor for optional steps: human task graphs do not tell
        them apart, and edge scores compare with those.
        """
        kept = transitive_reduction(self._edge_matrix)
        inner = frozenset((self.steps[a], self.steps[b]) for a, b in np.argwhere(kept).tolist())
        return inner | self._end_pairs(inner) if ends else inner

    def _end_pairs(self, inner: frozenset[tuple[Step, Step]]) -> frozenset[tuple[Step, Step]]:
        after, before = {name for _, name in inner}, {name for name, _ in inner}
        starts = {(START, name) for name in self.steps if name not in after}
        return frozenset(starts | {(name, END) for name in self.steps if name not in before})

    # -- other graphs -------------------------------------------------------------------------------------------

    def transitive_reduction(self) -> SubtaskGraph:
        """The transitive reduction: what the other conditions already imply is dropped.

        It keeps the reachable states (what can be done in which order), not the function on all 2^N vectors.

        >>> from msg2.graph.formula import all_of, step
        >>> g = SubtaskGraph("t", "abc", {"b": step("a"), "c": all_of([step("a"), step("b")])})
        >>> sorted(g.transitive_reduction().edge_pairs())
        [('a', 'b'), ('b', 'c')]
        """
        reduced = replace(self, preconditions=reduction.transitive_reduction(self.steps, self.preconditions))
        return replace(reduced, order=reduction.reduce_order(reduced)) if self.order else reduced

    def rename_steps(self, names: Mapping[Step, Step]) -> SubtaskGraph:
        """The same graph with other step names; steps not in `names` keep theirs."""

        def formula(value: Any) -> Any:
            if isinstance(value, str):
                return names.get(value, value)
            if isinstance(value, dict):
                return {kind: formula(inner) for kind, inner in value.items()}
            return [formula(item) for item in value] if isinstance(value, list) else value

        def entry(value: Any) -> Any:
            if not isinstance(value, dict):
                return value
            changed = dict(value)
            for key in ("edges", "exclusive", "exclusive_probability"):
                if isinstance(value.get(key), dict):
                    changed[key] = {names.get(name, name): counts for name, counts in value[key].items()}
            if isinstance(value.get("instead"), list):
                changed["instead"] = formula(value["instead"])
            if isinstance(value.get("clauses"), list):
                changed["clauses"] = [formula(clause) for clause in value["clauses"]]
            if isinstance(value.get("runner_up"), dict):
                second = value["runner_up"]
                changed["runner_up"] = {**second, "precondition": formula(second.get("precondition"))}
            return changed

        formulas = {names.get(n, n): formula_from_json(formula(f.to_json())) for n, f in self.preconditions.items()}
        evidence = {names.get(name, name): entry(value) for name, value in self.evidence.items()}
        return SubtaskGraph(
            self.task,
            (names.get(n, n) for n in self.steps),
            formulas,
            self.method,
            evidence,
            order=[(names.get(before, before), names.get(after, after)) for before, after in self.order],
            exclusive=[[names.get(n, n) for n in group] for group in self.exclusive],
            optional=[names.get(n, n) for n in self.optional],
            repeats={names.get(n, n): share for n, share in self.repeats.items()},
        )

    def to_networkx(self) -> networkx.DiGraph:
        """A `networkx.DiGraph` of steps and operators; see `msg2.graph.node_link.node_link_graph`.

        Nodes have `kind`, `label` and `layer`, steps also `optional`; edges have `kind` ("needs" or "after"), `weak`
        and `support`, the share of the videos with both steps that have this order (None where there is no evidence).
        The exclusive groups are the graph's attribute `exclusive`.
        """
        import networkx

        from msg2.graph.node_link import node_link_graph

        nodes, links = node_link_graph(self)
        graph = networkx.DiGraph(task=self.task, exclusive=[list(group) for group in self.exclusive])
        for node in nodes:
            role = {"optional": node.label in self.optional} if node.kind == "step" else {}
            graph.add_node(node.id, kind=node.kind, label=node.label, layer=node.layer, **role)
        for link in links:
            support = link.support
            graph.add_edge(link.source, link.target, kind=link.kind, weak=support.weak, support=support.share)
        return graph

    def to_dataframe(self) -> pandas.DataFrame:
        """A `pandas.DataFrame` of the edges, with the fields of `RelatedPair` as columns.

        What the evidence does not say is missing (NA).
        """
        with optional_dependency("a table of edges", "pandas"):
            import pandas

        types = {
            "before": str, "after": str, "kind": str, "together": "Int64", "share": "float64", "supporting": "Int64",
            "opposing": "Int64", "weak": "bool", "probability": "float64", "confidence": "float64",
        }  # fmt: skip
        rows = [astuple(row) for row in edge_pairs_with_support(self)]
        return pandas.DataFrame(rows, columns=list(types)).astype(types)

    # -- words and diagrams -------------------------------------------------------------------------------------

    def explain(self, step: Step | None = None) -> str:
        """Say in plain words what the step needs and comes after, and which videos say so; without a step, all rules.

        See `msg2.graph.explanation`.
        """
        return "\n".join(explanation.rules(self)) if step is None else explanation.explain(self, step)

    def show(self, path: str | Path, compare: SubtaskGraph | None = None, **options: Any) -> Path:
        """Draw the graph into a file.

        Parameters
        ----------
        path : str or Path
            Its suffix decides the format, as for ``msg2 show``: .html .svg .png .pdf .dot .mmd and others.
        compare : SubtaskGraph, optional
            The true graph, with the same step names; differences are coloured.
        **options
            Those of `msg2.drawing.PictureOptions`, such as ``direction="TB"`` or ``width="8.4cm"``.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InputError
            Where the suffix is no format or has no such option, or the file cannot be written.
        """
        from msg2 import drawing

        return drawing.show(self, Path(path), compare=compare, picture=drawing.PictureOptions(**options))

    def _repr_svg_(self) -> str:
        from msg2 import drawing

        return drawing.svg(self)

    _repr_html_ = _repr_svg_

    def __repr__(self) -> str:
        return f"<SubtaskGraph {self.task!r}: {len(self.steps)} steps, {len(self.edges())} edges>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SubtaskGraph) and self.to_json() == other.to_json()

    def __reduce__(self) -> tuple[Any, ...]:
        return SubtaskGraph.from_json, (self.to_json(),)

    def __hash__(self) -> int:
        return hash((self.task, self.steps, tuple(self.preconditions.items()), self.order, self.exclusive))

    # -- JSON ---------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """The content of a graph file; `order` and the like are there where they say anything."""
        relations = {
            "order": [list(pair) for pair in self.order],
            "exclusive": [list(group) for group in self.exclusive],
            "optional": [name for name in self.steps if name in self.optional],
            "repeats": dict(self.repeats),
        }
        return {
            "format": FORMAT,
            "task": self.task,
            "steps": list(self.steps),
            "preconditions": {name: formula.to_json() for name, formula in self.preconditions.items()},
            **{key: value for key, value in relations.items() if value},
            "method": dict(self.method),
            "evidence": dict(self.evidence),
        }

    def dumps(self) -> str:
        """The text of a graph file: the same graph gives the same bytes."""
        return json.dumps(self.to_json(), ensure_ascii=False, indent=2, allow_nan=False) + "\n"

    def save(self, path: str | Path) -> Path:
        """Write the graph file; `msg2.load` reads it. The file appears whole or not at all."""
        from msg2.files import write_whole

        target = Path(path)
        write_whole(target, self.dumps())
        return target

    @staticmethod
    def from_json(value: object) -> SubtaskGraph:
        """Read the content of a graph file; a malformed one is rejected with the place of the offending value."""
        try:
            return SubtaskGraph._read(value)
        except InputError as error:
            raise InputError(error.what, where=_place_in_words(error.where), hint=error.hint) from None

    @staticmethod
    def _read(value: object) -> SubtaskGraph:
        if not isinstance(value, dict):
            raise InputError("is not a JSON object", where="$")
        if value.get("format") not in (FORMAT, OLD_FORMAT):
            problem = "is missing" if "format" not in value else f"is {short_repr(str(value['format']))}"
            raise InputError(f"{problem}, this version of msg2 reads {FORMAT!r} and {OLD_FORMAT!r}", where="$.format")
        keys = ("format", "task", "steps", "preconditions", "method", "evidence")
        relations = ("order", "exclusive", "optional", "repeats")
        for key in value:
            if key not in keys and not (key in relations and value["format"] == FORMAT):
                hint = f"only files of the format {FORMAT!r} have it" if key in relations else None
                raise InputError("is not a key of a graph file", where=f"$.{key}", hint=hint)
        task = _expect(value, "task", str, "a text")
        steps = _expect(value, "steps", list, "a list of step names")
        for position, name in enumerate(steps):
            if not isinstance(name, str) or name_fault(name):
                raise InputError("is not a step name", where=f"$.steps[{position}]")
            if steps.index(name) < position:
                raise InputError(f"{short_repr(name)} is there twice", where=f"$.steps[{position}]")
        formulas = _expect(value, "preconditions", dict, "an object of step: formula")
        known = set(steps)
        for name in formulas:
            if name not in known:
                raise InputError(
                    f"{short_repr(name)} is not among the steps of the graph", where=f"$.preconditions.{name}"
                )
        preconditions = {n: formula_from_json(f, f"$.preconditions.{n}", known) for n, f in formulas.items()}
        method = _expect(value, "method", dict, "an object") if "method" in value else {}
        evidence = _expect(value, "evidence", dict, "an object") if "evidence" in value else {}
        order = _step_lists(value, "order", known, 2, 2)
        exclusive = _step_lists(value, "exclusive", known, 2)
        optional = _expect(value, "optional", list, "a list of step names") if "optional" in value else []
        for position, name in enumerate(optional):
            _expect_step(name, known, f"$.optional[{position}]")
        repeats = _expect(value, "repeats", dict, "an object of step: share") if "repeats" in value else {}
        for name, share in repeats.items():
            _expect_step(name, known, f"$.repeats.{name}")
            if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
                raise InputError("is not a share from 0 to 1", where=f"$.repeats.{name}")
        with errors_at("$.order" if order else "$.preconditions"):
            return SubtaskGraph(
                task, steps, preconditions, method, evidence,
                order=order, exclusive=exclusive, optional=optional, repeats=repeats,
            )  # fmt: skip


def _place_in_words(path: str | None) -> str | None:
    """The place of a value in a graph file, for people: which list or which step, and not where in a formula.

    >>> _place_in_words("$.preconditions.stir.all[1].any[0]"), _place_in_words("$.order[2]")
    ("preconditions of 'stir'", 'order, entry 3')
    """
    key, _, name = (path or "").removeprefix("$").removeprefix(".").partition(".")
    if name:
        return f"{key} of '{_IN_FORMULA.sub('', name)}'"
    entry = _ENTRY.fullmatch(key)
    return f"{entry[1]}, entry {int(entry[2]) + 1}" if entry else key or None


_IN_FORMULA = re.compile(r"(\.(all|any|not)(\[\d+\])?)+$")
_ENTRY = re.compile(r"(\w+)\[(\d+)\](?:\[\d+\])?")


def _expect(value: dict[str, Any], key: str, kind: type, words: str) -> Any:
    if not isinstance(value.get(key), kind):
        raise InputError("is missing" if key not in value else f"is not {words}", where=f"$.{key}")
    return value[key]


def _expect_step(name: object, known: set[Step], where: str) -> None:
    if not isinstance(name, str):
        raise InputError("is not a step name", where=where)
    if name not in known:
        raise InputError(f"{short_repr(name)} is not among the steps of the graph", where=where)


def _step_lists(
    value: dict[str, Any], key: str, known: set[Step], least: int, most: int | None = None
) -> list[list[Step]]:
    """The lists of so many different steps under a key; none where it is absent."""
    lists = _expect(value, key, list, "a list of lists of steps") if key in value else []
    for position, names in enumerate(lists):
        where = f"$.{key}[{position}]"
        if not isinstance(names, list) or not least <= len(names) <= (most or len(names)):
            raise InputError(f"is not a list of {least}{'' if most else ' or more'} steps", where=where)
        for place, name in enumerate(names):
            _expect_step(name, known, f"{where}[{place}]")
            if name in names[:place]:
                raise InputError(f"{short_repr(name)} is there twice", where=f"{where}[{place}]")
    return list(lists)


def _check_relations(
    known: set[Step],
    order: list[tuple[Step, Step]],
    exclusive: list[tuple[Step, ...]],
    optional: frozenset[Step],
    repeats: Mapping[Step, float],
) -> None:
    """Refuse names that are no steps, a pair or group of one step, and shares that are none."""
    named = {"order": [n for pair in order for n in pair], "exclusive": [n for group in exclusive for n in group]}
    for where, names in {**named, "optional": sorted(optional), "repeats": list(repeats)}.items():
        for name in names:
            if name not in known:
                raise InputError(f"{short_repr(name)} is in '{where}' but not among the steps of the graph")
    for group in (*order, *exclusive):
        if len(set(group)) < 2:
            raise InputError(f"{short_repr(group[0] if group else '')} is related to itself: two steps are needed")
    for name, share in repeats.items():
        if not 0 <= share <= 1:
            raise InputError(f"{short_repr(name)} is repeated in a share {share} of the runs, it must be 0 to 1")


def _layers(
    steps: Iterable[Step], preconditions: Mapping[Step, Formula], order: Iterable[tuple[Step, Step]]
) -> dict[Step, int]:
    """Longest path to every step; a cycle is an error that names it. Iterative: graphs may be deep."""
    earlier: dict[Step, set[Step]] = {name: set(formula.steps) for name, formula in preconditions.items()}
    for before, after in order:
        earlier.setdefault(after, set()).add(before)
    layers: dict[Step, int] = {}
    for root in steps:
        path: list[Step] = [root]
        while path:
            name = path[-1]
            parents = sorted(earlier.get(name, ()))
            open_parents = [parent for parent in parents if parent not in layers]
            if name in layers or not open_parents:
                layers.setdefault(name, 1 + max((layers[parent] for parent in parents), default=-1))
                path.pop()
            elif open_parents[0] in path:
                cycle = [*path[path.index(open_parents[0]) :], open_parents[0]]
                raise InputError(_describe_cycle(cycle, preconditions))
            else:
                path.append(open_parents[0])
    return layers


def _describe_cycle(cycle: list[Step], preconditions: Mapping[Step, Formula]) -> str:
    needs = [a in preconditions and b in preconditions[a].steps for a, b in pairwise(cycle)]
    words = [
        f"{' needs ' if need else ' comes after '}{short_repr(b)}" for need, b in zip(needs, cycle[1:], strict=True)
    ]
    what = "the preconditions form" if all(needs) else "the preconditions and the order form"
    return f"{what} a cycle: {short_repr(cycle[0])}{''.join(words)}"

"""What was learned: a subtask graph G = (f_1, …, f_N), one Boolean precondition per step (Sec. 2), and more.

Beyond what a step *needs*, a graph may say which step comes *after* another if both are done (`order`), which are never
both done (`exclusive`), which may be left out (`optional`), and which are often done again (`repeats`).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import astuple, dataclass, fields, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from itertools import compress, pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from msg2.errors import InputError, errors_at, optional_dependency, require
from msg2.files import write_whole
from msg2.graph import closure
from msg2.graph.closure import Relation
from msg2.graph.evidence import Edge, PairKind, StepEvidence, Support, edge_pairs_with_support, node_link_graph
from msg2.graph.explanation import rules, sentences
from msg2.graph.formula import TRUE, Formula, all_of, step
from msg2.graph.graph_file import FORMAT, NO_TEXTS, Loop, ProcedureTexts, StatedRule, read_graph_file
from msg2.task import Step
from msg2.text import short_repr

if TYPE_CHECKING:
    import networkx
    import pandas  # type: ignore[import-untyped]

    from msg2.drawing.procedure import Still
    from msg2.formats.conversion import Demonstrations

START, END = "START", "END"
"""The virtual steps before every first and after every last step, in edge scores."""


@dataclass(frozen=True, eq=False)
class SubtaskGraph:
    """Steps with their preconditions; a step that is absent from `preconditions` has none.

    `order` has pairs (a, b): where a run does both, a comes first. `exclusive` has groups of steps of which a run does
    at most one, `optional` the steps that a faultless run may leave out, `repeats` the share of runs that do a step
    again. `responses` has pairs (a, F): once a was done, F follows sooner or later. `loops` are parts that are done
    again. `rules` are what a person stated: to break one is a mistake for certain. `texts` are those of the written
    procedure. `method` says how the graph was learned (name, options, videos) and `evidence` what supports it. Steps
    are kept sorted by layer, then name. A cycle of preconditions and order is rejected.

    >>> from msg2.graph.formula import any_of, step
    >>> g = SubtaskGraph("coffee", ["pour", "grind", "open"], {"pour": any_of([step("grind"), step("open")])})
    >>> g.steps, sorted(g.eligible({"open"}))
    (('grind', 'open', 'pour'), ['grind', 'open', 'pour'])
    """

    task: str
    steps: tuple[Step, ...]
    preconditions: Mapping[Step, Formula]
    order: tuple[tuple[Step, Step], ...]
    exclusive: tuple[tuple[Step, ...], ...]
    optional: frozenset[Step]
    repeats: Mapping[Step, float]
    responses: tuple[tuple[Step, Formula], ...]
    loops: tuple[Loop, ...]
    rules: tuple[StatedRule, ...]
    texts: ProcedureTexts
    method: Mapping[str, Any]
    evidence: Mapping[Step, object]

    def __init__(
        self,
        task: str,
        steps: Iterable[Step],
        preconditions: Mapping[Step, Formula],
        method: Mapping[str, Any] | None = None,
        evidence: Mapping[Step, object] | None = None,
        *,
        order: Iterable[Sequence[Step]] = (),
        exclusive: Iterable[Iterable[Step]] = (),
        optional: Iterable[Step] = (),
        repeats: Mapping[Step, float] | None = None,
        responses: Iterable[tuple[Step, Formula]] = (),
        loops: Iterable[Loop] = (),
        rules: Iterable[StatedRule] = (),
        texts: ProcedureTexts = NO_TEXTS,
    ) -> None:
        names, left_out, again, stated = list(steps), list(optional), dict(repeats or {}), tuple(rules)
        following, parts = sorted(set(responses), key=lambda pair: (pair[0], str(pair[1]))), tuple(loops)
        pairs, groups = [(before, after) for before, after in order], [tuple(group) for group in exclusive]
        mentions: dict[str, Sequence[Sequence[Step]]] = {
            "order": pairs,
            "exclusive": groups,
            "rules": [(rule.before, rule.after) for rule in stated],
            "responses": [(before, *sorted(formula.steps)) for before, formula in following],
            "optional": [[name] for name in left_out],
            "loops": [[*loop.steps, *loop.back] for loop in parts],
            "descriptions": [[*texts.descriptions]],
            "warnings": [[caution.step] for caution in texts.warnings if caution.step is not None],
        }
        _check_names(names, preconditions, mentions, again)
        needed = {name: formula for name, formula in preconditions.items() if formula != TRUE}
        layers = _layers(names, needed, pairs)
        ordered = tuple(sorted(names, key=lambda name: (layers[name], name)))
        self.__dict__.update(
            task=task,
            steps=ordered,
            preconditions=MappingProxyType({name: needed[name] for name in ordered if name in needed}),
            order=tuple(sorted(set(pairs))),
            exclusive=tuple(sorted({tuple(sorted(set(group))) for group in groups})),
            optional=frozenset(left_out),
            repeats=MappingProxyType({name: again[name] for name in ordered if name in again}),
            responses=tuple(following),
            loops=parts,
            rules=stated,
            texts=texts,
            method=MappingProxyType(dict(method or {})),
            evidence=MappingProxyType(dict(evidence or {})),
        )

    # -- questions ----------------------------------------------------------------------------------------------

    def precondition(self, step: Step) -> Formula:
        """f_n of the step."""
        if step not in self.index:
            raise InputError(f"{short_repr(step)} is not a step of the graph")
        return self.preconditions.get(step, TRUE)

    def eligible(self, completed: Iterable[Step]) -> frozenset[Step]:
        """e = f_G(c): the steps that may be done now, completed ones included (Sec. 2).

        The precondition holds, no exclusive partner is done, and no step that comes after it, if done, is done already.
        """
        done = frozenset(completed)
        for name in sorted(done):
            self.precondition(name)  # refuses what is no step
        return frozenset(
            name
            for name in self.steps
            if self.precondition(name).evaluate(done) and done.isdisjoint(self.ruled_out_by(name))
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
        return self._related["partners", step]

    def order_predecessors(self, step: Step) -> frozenset[Step]:
        """The steps that come before `step` where both are done, as `order` says."""
        return self._related["before", step]

    def order_successors(self, step: Step) -> frozenset[Step]:
        """The steps that come after `step` where both are done, as `order` says."""
        return self._related["after", step]

    def ruled_out_by(self, step: Step) -> frozenset[Step]:
        """The steps after which `step` may not be done any more: exclusive partners, and what comes after it."""
        return self.partners(step) | self.order_successors(step)

    @cached_property
    def _related(self) -> Mapping[tuple[str, Step], frozenset[Step]]:
        """By relation and step, the steps that are so related to it."""
        related = defaultdict[tuple[str, Step], frozenset[Step]](frozenset)
        for group in self.exclusive:
            for name in group:
                related["partners", name] |= frozenset(group) - {name}
        for before, after in self.order:
            related["before", after] |= {before}
            related["after", before] |= {after}
        return related

    @cached_property
    def necessary(self) -> Mapping[Step, frozenset[Step]]:
        """For every step those that must come first, whichever way is taken."""
        needed: dict[Step, frozenset[Step]] = {}
        for name in self.steps:
            needed[name] = closure.required_steps(self.preconditions.get(name, TRUE), needed)
        return needed

    @cached_property
    def required(self) -> frozenset[Step]:
        """The steps of every faultless run: neither optional nor in an exclusive group, or needed by a stated rule."""
        required = frozenset(self.steps).difference(self.optional, *self.exclusive)
        while needed := {r.before for r in self.rules if r.kind == "needs" and r.after in required} - required:
            required |= needed
        return required

    @cached_property
    def stated(self) -> frozenset[tuple[Step, Step]]:
        """The pairs (before, after) that a person stated."""
        return frozenset((rule.before, rule.after) for rule in self.rules)

    pair_kinds = cached_property(closure.find_pair_kinds)

    def kind(self, before: Step, after: Step) -> PairKind:
        """Say how two steps are related: see `msg2.graph.closure.PairKinds`.

        Parameters
        ----------
        before, after : str
            Two steps.

        Returns
        -------
        PairKind
            "needs", "after", "exclusive", "together" or "free".
        """
        pair, kinds = (self.steps.index(before), self.steps.index(after)), self.pair_kinds
        if kinds.exclusive[pair]:
            return "exclusive"
        if kinds.before[pair]:
            return "needs" if kinds.needs[pair] else "after"
        return "together" if before in self.step_evidence(after).together and not kinds.before.T[pair] else "free"

    def parents(self, step: Step) -> frozenset[Step]:
        """The steps in the step's precondition."""
        return self.precondition(step).steps

    def ancestors(self, step: Step) -> frozenset[Step]:
        """The steps from which `step` is reachable through any AND/OR node."""
        self.precondition(step)  # refuses what is no step
        return frozenset(compress(self.steps, self.ancestor_matrix[:, self.index[step]]))

    @cached_property
    def layer(self) -> Mapping[Step, int]:
        """Depth of each step: the longest path to it; a step that comes after nothing is in layer 0."""
        return MappingProxyType(_layers(self.steps, self.preconditions, self.order))

    @cached_property
    def ancestor_matrix(self) -> Relation:
        """R_G, shape (steps, steps): [a, b] is True when a is an ancestor of b (Eq. graphmetric)."""
        needs = self.relation((before, after) for after in self.steps for before in self.parents(after))
        return closure.transitive_closure(needs)

    def relation(self, pairs: Iterable[tuple[Step, Step]]) -> Relation:
        """Pairs of steps as a matrix of shape (steps, steps)."""
        relation = np.zeros((len(self.steps), len(self.steps)), dtype=np.bool_)
        for before, after in pairs:
            relation[self.index[before], self.index[after]] = True
        return relation

    def ancestor_matrix_in_order(self, steps: Iterable[Step]) -> Relation:
        """R_G with the steps in another order."""
        places = [self.index[name] for name in steps]
        return self.ancestor_matrix[np.ix_(places, places)]

    @cached_property
    def index(self) -> Mapping[Step, int]:
        """The place of each step among `steps`."""
        return {name: position for position, name in enumerate(self.steps)}

    def edges(self) -> tuple[Edge, ...]:
        """Every edge with its kind and support: what a step needs, and what it comes after if both are done.

        They are sorted by the place of `after` in `steps`, then by the name of `before`.
        """
        edges = []
        for after in self.steps:
            needed, supports = self.precondition(after).steps, self.step_evidence(after).edges
            for before in sorted(needed | self.order_predecessors(after)):
                edges.append(Edge(before, after, supports.get(before), "needs" if before in needed else "after"))
        return tuple(edges)

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
        return self.step_evidence(after).edges.get(before)

    def step_evidence(self, step: Step) -> StepEvidence:
        """What the videos say about the precondition of the step."""
        parsed: dict[Step, StepEvidence] = self.__dict__.setdefault("_parsed_evidence", {})  # each entry once
        if step not in parsed:
            parsed[step] = StepEvidence.from_json(self.evidence.get(step))
        return parsed[step]

    def edge_pairs(self, ends: bool = False) -> frozenset[tuple[Step, Step]]:
        """The pairs (before, after) of the edges of both kinds, without their support.

        With `ends`, also ("START", step) for steps that come after nothing and (step, "END") for those before nothing.
        """
        inner = frozenset((edge.before, edge.after) for edge in self.edges())
        return inner | self._end_pairs(inner) if ends else inner

    @cached_property
    def edge_matrix(self) -> Relation:
        """[a, b]: whether there is an edge of either kind from step a to step b."""
        return self.relation(self.edge_pairs())

    def reduced_edge_pairs(self, ends: bool = False) -> frozenset[tuple[Step, Step]]:
        """The plain transitive reduction of the edges of both kinds: a pair with a way round through others is dropped.

        Unlike `transitive_reduction` it asks neither for ORs nor for optional steps: human task graphs do not tell
        them apart, and edge scores compare with those.
        """
        kept = np.argwhere(closure.transitive_reduction(self.edge_matrix))
        inner = frozenset((self.steps[before], self.steps[after]) for before, after in kept.tolist())
        return inner | self._end_pairs(inner) if ends else inner

    def _end_pairs(self, inner: frozenset[tuple[Step, Step]]) -> frozenset[tuple[Step, Step]]:
        after, before = {name for _, name in inner}, {name for name, _ in inner}
        starts = {(START, name) for name in self.steps if name not in after}
        return frozenset(starts | {(name, END) for name in self.steps if name not in before})

    # -- other graphs -------------------------------------------------------------------------------------------

    def transitive_reduction(self) -> SubtaskGraph:
        """The transitive reduction: what the other conditions already imply is dropped.

        It keeps the reachable states (what can be done in which order), not the function on all 2^N vectors.
        """
        formulas = {name: closure.drop_implied(formula, self.necessary) for name, formula in self.preconditions.items()}
        reduced = replace(self, preconditions=formulas)
        return replace(reduced, order=closure.reduce_order(reduced)) if self.order else reduced

    def rename_steps(self, names: Mapping[Step, Step]) -> SubtaskGraph:
        """The same graph with other step names; steps not in `names` keep theirs."""

        def new(value: Any) -> Any:
            """A name, or what names stand in: lists, formulas and loops."""
            if isinstance(value, list):
                return [new(item) for item in value]
            if isinstance(value, dict):
                return {key: new(inner) for key, inner in value.items()}
            return names.get(value, value) if isinstance(value, str) else value

        file = self.to_json()
        for key in file.keys() & {"steps", "preconditions", "order", "exclusive", "optional", "responses", "loops"}:
            file[key] = new(file[key])
        for key in file.keys() & {"preconditions", "repeats", "descriptions"}:
            file[key] = {new(name): value for name, value in file[key].items()}
        for entry in (*file.get("rules", ()), *file.get("warnings", ())):
            entry |= {key: new(entry[key]) for key in entry.keys() & {"before", "after", "step"}}
        evidence = {new(name): _rename_in_evidence(entry, names) for name, entry in self.evidence.items()}
        return SubtaskGraph.from_json({**file, "evidence": evidence})

    def with_texts(self, texts: ProcedureTexts) -> SubtaskGraph:
        """The same graph with other texts of its written procedure.

        >>> from msg2.graph.graph_file import ProcedureTexts
        >>> texts = ProcedureTexts(descriptions={"boil": "Boil half a litre of water."})
        >>> SubtaskGraph("tea", ["boil"], {}).with_texts(texts).texts.descriptions
        {'boil': 'Boil half a litre of water.'}
        """
        rest = {key: value for key, value in self.to_json().items() if key not in ProcedureTexts.model_fields}
        return SubtaskGraph.from_json({**rest, **texts.model_dump(exclude_none=True)})

    def to_networkx(self) -> networkx.DiGraph:
        """A `networkx.DiGraph` of steps and operators; see `msg2.graph.evidence.node_link_graph`.

        Nodes have `kind`, `label` and `layer`, steps also `optional`; edges have `kind` ("needs" or "after"), `weak`
        and `support`, the share of the videos with both steps that have this order (None where there is no evidence).
        The exclusive groups are the graph's attribute `exclusive`.
        """
        import networkx

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
        """A `pandas.DataFrame` of the edges, then the pairs that happen together, with the fields of `RelatedPair`.

        What the evidence does not say is missing (NA).
        """
        with optional_dependency("a table of edges", "pandas"):
            import pandas

        types = {
            "before": str, "after": str, "kind": str, "together": "Int64", "share": "float64", "supporting": "Int64",
            "opposing": "Int64", "weak": "bool", "probability": "float64", "confidence": "float64",
            "simultaneous": "Int64",
        }  # fmt: skip
        rows = [astuple(row) for row in edge_pairs_with_support(self)]
        return pandas.DataFrame(rows, columns=list(types)).astype(types)

    # -- words and diagrams -------------------------------------------------------------------------------------

    def explain(self, step: Step | None = None) -> str:
        """Say in plain words what the step needs and comes after, and which videos say so; without a step, all rules.

        See `msg2.graph.explanation`.
        """
        return "\n".join(rules(self) if step is None else sentences(self, step))

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

    def write(
        self, path: str | Path, data: Demonstrations | None = None, stills: Mapping[Step, Still] | None = None
    ) -> Path:
        """Write the graph as a procedure for people: numbered steps, what each needs, and the evidence.

        Parameters
        ----------
        path : str or Path
            Its suffix decides the format: .html, .md, .docx or .pdf.
        data : Task or anything that `msg2.infer` takes, optional
            Recordings: they decide between the orders that the graph allows, and tell how long steps take.
        stills : mapping from str to Still, optional
            Pictures of steps, as `msg2.media.stills.find_stills` takes them from the videos.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InputError
            Where the suffix is no format, a library is missing, or the file cannot be written.
        """
        from msg2 import drawing

        return drawing.write_procedure(self, Path(path), data, stills)

    def _repr_svg_(self) -> str:
        from msg2 import drawing

        return drawing.svg(self)

    _repr_html_ = _repr_svg_

    def __repr__(self) -> str:
        return f"<SubtaskGraph {self.task!r}: {len(self.steps)} steps, {len(self.edges())} edges>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SubtaskGraph) and self.to_json() == other.to_json()

    def __reduce__(self) -> tuple[object, ...]:
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
            "responses": [[name, formula.to_json()] for name, formula in self.responses],
            "loops": [loop.model_dump(exclude_defaults=True) for loop in self.loops],
            "rules": [rule.model_dump(exclude_none=True) for rule in self.rules],
            **self.texts.model_dump(exclude_none=True),
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
        write_whole(Path(path), self.dumps())
        return Path(path)

    @staticmethod
    def from_json(value: object) -> SubtaskGraph:
        """Read the content of a graph file; a malformed one is rejected with the place of the offending value."""
        file = read_graph_file(value)
        with errors_at("order" if file.order else "preconditions"):
            own = {key.name: getattr(file, key.name) for key in fields(SubtaskGraph) if key.name != "texts"}
            graph = SubtaskGraph(**own, texts=file.texts)
        with errors_at("rules"):
            return graph._with_rules() if file.rules else graph

    def _with_rules(self) -> SubtaskGraph:
        """Let the preconditions and the order say what the stated rules say; what they need is not optional."""
        graph = self
        for rule in self.rules:
            if rule.kind == "needs" and rule.before not in graph.necessary[rule.after]:
                needed = all_of([graph.precondition(rule.after), step(rule.before)])
                graph = replace(graph, preconditions={**graph.preconditions, rule.after: needed})
            elif graph.kind(rule.before, rule.after) == "free":
                graph = replace(graph, order=(*graph.order, (rule.before, rule.after)))
        return replace(graph, optional=graph.optional - graph.required)


def _check_names(
    steps: list[Step],
    preconditions: Mapping[Step, Formula],
    mentions: Mapping[str, Sequence[Sequence[Step]]],
    repeats: Mapping[Step, float],
) -> None:
    """Refuse a step that is there twice, names that are no steps, relations of one step, and shares that are none."""
    known = set(steps)
    if len(known) < len(steps):
        twice = next(name for name in steps if steps.count(name) > 1)
        raise InputError(f"the graph has the step {short_repr(twice)} twice")
    named: list[tuple[str, Sequence[Step]]] = [
        *((f"preconditions of '{name}'", sorted({name} | formula.steps)) for name, formula in preconditions.items()),
        *((f"{key}, entry {n}", group) for key, groups in mentions.items() for n, group in enumerate(groups, start=1)),
        *((f"repeats of '{name}'", [name]) for name in repeats),
    ]  # fmt: skip
    for where, names in named:
        for name in names:
            if name not in known:
                raise InputError(f"{short_repr(name)} is not among the steps of the graph", where=where)
    for key in ("order", "exclusive", "rules", "responses"):  # which relate steps to others
        for n, group in enumerate(mentions[key], start=1):
            require(len(set(group)) > 1, "needs two different steps", where=f"{key}, entry {n}")
    for name, share in repeats.items():
        require(0 <= share <= 1, f"is a share of {share}, it must be 0 to 1", where=f"repeats of '{name}'")


def _rename_in_evidence(value: object, names: Mapping[Step, Step], key: str | None = None) -> object:
    """The evidence of a step, or the value of a key in it, with other step names: as keys and in formulas."""
    if isinstance(value, dict) and key in ("edges", "exclusive", "exclusive_probability", "together"):
        return {names.get(name, name): inner for name, inner in value.items()}
    if isinstance(value, dict):
        return {own: _rename_in_evidence(inner, names, key or own) for own, inner in value.items()}
    is_named = key in ("alternatives", "instead", "clauses", "runner_up", "responses")
    if isinstance(value, list) and is_named:
        return [_rename_in_evidence(item, names, key) for item in value]
    return names.get(value, value) if isinstance(value, str) and is_named else value


def _layers(
    steps: Iterable[Step], preconditions: Mapping[Step, Formula], order: Iterable[tuple[Step, Step]]
) -> dict[Step, int]:
    """Longest path to every step; a cycle is an error that names it."""
    earlier: dict[Step, set[Step]] = {name: set() for name in steps}
    for name, formula in preconditions.items():
        earlier[name] |= formula.steps
    for before, after in order:
        earlier[after].add(before)
    layers: dict[Step, int] = {}
    try:
        for name in TopologicalSorter({name: sorted(earlier[name]) for name in sorted(earlier)}).static_order():
            layers[name] = 1 + max((layers[before] for before in earlier[name]), default=-1)
    except CycleError as error:
        backwards: list[Step] = error.args[1][:0:-1]
        first = backwards.index(min(backwards))
        cycle = [*backwards[first:], *backwards[: first + 1]]
        needs = [b in preconditions[a].steps if a in preconditions else False for a, b in pairwise(cycle)]
        what = "the preconditions form" if all(needs) else "the preconditions and the order form"
        words = (" needs " if need else " comes after " for need in needs)
        links = (f"{word}{short_repr(name)}" for word, name in zip(words, cycle[1:], strict=True))
        raise InputError(f"{what} a cycle: {short_repr(cycle[0])}{''.join(links)}") from None
    return layers

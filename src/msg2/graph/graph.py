"""What was learned: a subtask graph G = (f_1, …, f_N), one Boolean precondition per step (Sec. 2)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError, errors_at
from msg2.extras import optional_dependency
from msg2.graph import explanation, reduction
from msg2.graph.formula import TRUE, Formula, formula_from_json
from msg2.graph.support import NO_SUPPORT, Edge, StepEvidence, Support
from msg2.task import Step
from msg2.text import short_repr

if TYPE_CHECKING:
    import networkx
    import pandas  # type: ignore[import-untyped]

FORMAT = "msg2.graph/1"
START, END = "START", "END"
"""The virtual steps before every first and after every last step, in edge scores."""


@dataclass(frozen=True, eq=False)
class SubtaskGraph:
    """Steps with their preconditions; a step that is absent from `preconditions` has none.

    `method` says how the graph was learned (name, options, videos) and `evidence` what supports each precondition.
    Steps are kept sorted by layer, then name. A cycle is rejected.

    >>> from msg2.graph.formula import any_of, step
    >>> g = SubtaskGraph("coffee", ["pour", "grind", "open"], {"pour": any_of([step("grind"), step("open")])})
    >>> g.steps, sorted(g.eligible({"open"}))
    (('grind', 'open', 'pour'), ['grind', 'open', 'pour'])
    """

    task: str
    steps: tuple[Step, ...]
    preconditions: Mapping[Step, Formula]
    method: Mapping[str, Any] = field(default_factory=dict)
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def __init__(
        self,
        task: str,
        steps: Iterable[Step],
        preconditions: Mapping[Step, Formula],
        method: Mapping[str, Any] | None = None,
        evidence: Mapping[str, Any] | None = None,
    ) -> None:
        names = list(steps)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"the graph has the step {short_repr(twice)} twice")
        for name, formula in preconditions.items():
            for used in ({name} | formula.steps) - set(names):
                raise InputError(f"{short_repr(used)} is in a precondition but not among the steps of the graph")
        needed = {name: f for name, f in preconditions.items() if f != TRUE}
        layers = _layers(names, needed)
        ordered = tuple(sorted(names, key=lambda name: (layers[name], name)))
        object.__setattr__(self, "task", task)
        object.__setattr__(self, "steps", ordered)
        object.__setattr__(self, "preconditions", MappingProxyType({n: needed[n] for n in ordered if n in needed}))
        object.__setattr__(self, "method", MappingProxyType(dict(method or {})))
        object.__setattr__(self, "evidence", MappingProxyType(dict(evidence or {})))

    # -- questions ----------------------------------------------------------------------------------------------

    def precondition(self, step: Step) -> Formula:
        """f_n of the step."""
        self._position(step)
        return self.preconditions.get(step, TRUE)

    def eligible(self, completed: Iterable[Step]) -> frozenset[Step]:
        """e = f_G(c): the steps whose precondition holds, completed ones included (Sec. 2)."""
        done = frozenset(completed)
        for name in sorted(done):
            self._position(name)
        return frozenset(name for name in self.steps if self.precondition(name).evaluate(done))

    def parents(self, step: Step) -> frozenset[Step]:
        """The steps in the step's precondition."""
        return self.precondition(step).steps

    def ancestors(self, step: Step) -> frozenset[Step]:
        """The steps from which `step` is reachable through any AND/OR node."""
        column = self.ancestor_matrix[:, self._position(step)]
        return frozenset(name for name, is_ancestor in zip(self.steps, column, strict=True) if is_ancestor)

    @cached_property
    def layer(self) -> Mapping[Step, int]:
        """Depth of each step: the longest path to it; a step without precondition is in layer 0."""
        return MappingProxyType(_layers(self.steps, self.preconditions))

    @cached_property
    def ancestor_matrix(self) -> NDArray[np.bool_]:
        """R_G, shape (steps, steps): [a, b] is True when a is an ancestor of b (Eq. graphmetric)."""
        relation = np.zeros((len(self.steps), len(self.steps)), dtype=np.bool_)
        for column, name in enumerate(self.steps):  # parents come first: steps are sorted by layer
            for parent in self.parents(name):
                row = self._index[parent]
                relation[row, column] = True
                relation[:, column] |= relation[:, row]
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
        """Every dependency of a step on a step in its precondition, with its support.

        They are sorted by the place of `after` in `steps`, then by the name of `before`.

        >>> from msg2.graph.formula import step
        >>> evidence = {"pour": {"edges": {"boil": {"before": 9, "together": 10}}}}
        >>> (edge,) = SubtaskGraph("tea", ["boil", "pour"], {"pour": step("boil")}, evidence=evidence).edges()
        >>> edge.before, edge.after, edge.kind, edge.support.share
        ('boil', 'pour', 'needs', 0.9)
        """
        return tuple(
            Edge(before, after, self.support(before, after))
            for after in self.preconditions
            for before in sorted(self.parents(after))
        )

    def support(self, before: Step, after: Step) -> Support | None:
        """Look up the videos that have one step before another.

        Parameters
        ----------
        before, after : str
            Two steps, the first of them in the precondition of the second.

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
        return StepEvidence.from_json(self.evidence.get(step))

    def edge_pairs(self, ends: bool = False) -> frozenset[tuple[Step, Step]]:
        """The pairs (before, after) of the edges, without their support.

        With `ends`, also ("START", step) for steps without precondition and (step, "END") for steps that are in none.
        """
        inner = frozenset((parent, name) for name in self.steps for parent in self.parents(name))
        if not ends:
            return inner
        first = {(START, name) for name in self.steps if not self.parents(name)}
        used = {parent for parent, _ in inner}
        return inner | first | {(name, END) for name in self.steps if name not in used}

    # -- other graphs -------------------------------------------------------------------------------------------

    def transitive_reduction(self) -> SubtaskGraph:
        """The transitive reduction: what the other conditions already imply is dropped.

        It keeps the reachable states (what can be done in which order), not the function on all 2^N vectors.

        >>> from msg2.graph.formula import all_of, step
        >>> g = SubtaskGraph("t", "abc", {"b": step("a"), "c": all_of([step("a"), step("b")])})
        >>> sorted(g.transitive_reduction().edge_pairs())
        [('a', 'b'), ('b', 'c')]
        """
        return replace(self, preconditions=reduction.transitive_reduction(self.steps, self.preconditions))

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
            if isinstance(value.get("edges"), dict):
                changed["edges"] = {names.get(name, name): counts for name, counts in value["edges"].items()}
            if isinstance(value.get("runner_up"), dict):
                second = value["runner_up"]
                changed["runner_up"] = {**second, "precondition": formula(second.get("precondition"))}
            return changed

        formulas = {names.get(n, n): formula_from_json(formula(f.to_json())) for n, f in self.preconditions.items()}
        evidence = {names.get(name, name): entry(value) for name, value in self.evidence.items()}
        return SubtaskGraph(self.task, (names.get(n, n) for n in self.steps), formulas, self.method, evidence)

    def to_networkx(self) -> networkx.DiGraph:
        """A `networkx.DiGraph` of steps and operators; see `msg2.graph.node_link.node_link_graph`.

        Nodes have `kind`, `label` and `layer`, edges `weak` and `support`, the share of the videos with both steps
        that have this order (None where there is no evidence).
        """
        import networkx

        from msg2.graph.node_link import node_link_graph

        nodes, links = node_link_graph(self)
        graph = networkx.DiGraph(task=self.task)
        graph.add_nodes_from((node.id, {"kind": node.kind, "label": node.label, "layer": node.layer}) for node in nodes)
        graph.add_edges_from(
            (link.source, link.target, {"weak": link.support.weak, "support": link.support.share}) for link in links
        )
        return graph

    def to_dataframe(self) -> pandas.DataFrame:
        """A `pandas.DataFrame` of the edges: before, after, kind, together, share, weak, probability.

        What the evidence does not say is missing (NA).
        """
        with optional_dependency("a table of edges", "pandas"):
            import pandas

        types = {
            "before": str, "after": str, "kind": str,
            "together": "Int64", "share": "float64", "weak": "bool", "probability": "float64",
        }  # fmt: skip
        rows = []
        for edge in self.edges():
            support = edge.support or NO_SUPPORT
            rows.append(
                (edge.before, edge.after, edge.kind, support.together, support.share, support.weak, support.probability)
            )
        return pandas.DataFrame(rows, columns=list(types)).astype(types)

    # -- words and diagrams -------------------------------------------------------------------------------------

    def explain(self, step: Step) -> str:
        """Say in plain words what the step needs, and which videos say so."""
        return explanation.explain(step, self.precondition(step), self.step_evidence(step))

    def show(self, path: str | Path, compare: SubtaskGraph | None = None) -> Path:
        """Draw the graph into a file.

        Parameters
        ----------
        path : str or Path
            Its suffix decides the format, as for ``msg2 show``: .html .svg .png .dot .mmd and others.
        compare : SubtaskGraph, optional
            The true graph, with the same step names; differences are coloured.

        Returns
        -------
        Path
            The file.

        Raises
        ------
        InputError
            Where the suffix is no format, or the file cannot be written.
        """
        from msg2 import drawing

        return drawing.show(self, Path(path), compare=compare)

    def _repr_svg_(self) -> str:
        from msg2 import drawing

        return drawing.svg(self)

    _repr_html_ = _repr_svg_

    def __repr__(self) -> str:
        return f"<SubtaskGraph {self.task!r}: {len(self.steps)} steps, {len(self.edges())} edges>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SubtaskGraph) and self.to_json() == other.to_json()

    def __reduce__(self) -> tuple[Any, ...]:
        return SubtaskGraph, (self.task, self.steps, dict(self.preconditions), dict(self.method), dict(self.evidence))

    def __hash__(self) -> int:
        return hash((self.task, self.steps, tuple(self.preconditions.items())))

    # -- JSON ---------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """The content of a graph file."""
        return {
            "format": FORMAT,
            "task": self.task,
            "steps": list(self.steps),
            "preconditions": {name: formula.to_json() for name, formula in self.preconditions.items()},
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
        """Read the content of a graph file; a malformed one is rejected with the path to the offending value."""
        if not isinstance(value, dict):
            raise InputError("is not a JSON object", where="$")
        if value.get("format") != FORMAT:
            problem = "is missing" if "format" not in value else f"is {short_repr(str(value['format']))}"
            raise InputError(f"{problem}, this version of msg2 reads {FORMAT!r}", where="$.format")
        for key in value:
            if key not in ("format", "task", "steps", "preconditions", "method", "evidence"):
                raise InputError("is not a key of a graph file", where=f"$.{key}")
        task = _expect(value, "task", str, "a text")
        steps = _expect(value, "steps", list, "a list of step names")
        for position, name in enumerate(steps):
            if not isinstance(name, str) or not name:
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
        with errors_at("$.preconditions"):
            return SubtaskGraph(task, steps, preconditions, method, evidence)


def _expect(value: dict[str, Any], key: str, kind: type, words: str) -> Any:
    if not isinstance(value.get(key), kind):
        raise InputError("is missing" if key not in value else f"is not {words}", where=f"$.{key}")
    return value[key]


def _layers(steps: Iterable[Step], preconditions: Mapping[Step, Formula]) -> dict[Step, int]:
    """Longest path to every step; a cycle is an error that names it. Iterative: graphs may be deep."""
    layers: dict[Step, int] = {}
    for root in steps:
        path: list[Step] = [root]
        while path:
            name = path[-1]
            parents = sorted(preconditions[name].steps) if name in preconditions else []
            open_parents = [parent for parent in parents if parent not in layers]
            if name in layers or not open_parents:
                layers.setdefault(name, 1 + max((layers[parent] for parent in parents), default=-1))
                path.pop()
            elif open_parents[0] in path:
                cycle = [*path[path.index(open_parents[0]) :], open_parents[0]]
                raise InputError("the preconditions form a cycle: " + " needs ".join(short_repr(s) for s in cycle))
            else:
                path.append(open_parents[0])
    return layers

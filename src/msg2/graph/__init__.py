"""What was learned: Boolean preconditions and relations of steps, and the subtask graph made of them. Pure."""

from msg2.graph.evidence import (
    PAIR_KINDS,
    Edge,
    Link,
    Node,
    PairKind,
    RelatedPair,
    StepEvidence,
    Support,
    node_link_graph,
    related_pairs,
)
from msg2.graph.formula import (
    FALSE,
    TRUE,
    Formula,
    agreement,
    all_of,
    any_of,
    are_equivalent,
    disjunctive_normal_form,
    formula_from_json,
    is_tautology,
    negation,
    probability,
    simplify,
    step,
)
from msg2.graph.graph import END, START, SubtaskGraph

__all__ = [
    "END", "FALSE", "PAIR_KINDS", "START", "TRUE", "Edge", "Formula", "Link", "Node", "PairKind",
    "RelatedPair", "StepEvidence", "SubtaskGraph", "Support", "agreement", "all_of", "any_of", "are_equivalent",
    "disjunctive_normal_form", "formula_from_json", "is_tautology", "negation", "node_link_graph", "probability",
    "related_pairs", "simplify", "step",
]  # fmt: skip

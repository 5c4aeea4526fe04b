"""What was learned: Boolean preconditions and relations of steps, and the subtask graph made of them. Pure."""

from msg2.graph.formula import FALSE, TRUE, Formula, all_of, any_of, formula_from_json, negation, step
from msg2.graph.graph import END, START, SubtaskGraph
from msg2.graph.node_link import Link, Node, node_link_graph
from msg2.graph.normal_form import disjunctive_normal_form, is_tautology, simplify
from msg2.graph.pair_kinds import PairKinds
from msg2.graph.probability import agreement, are_equivalent, probability
from msg2.graph.related_pairs import RelatedPair, related_pairs
from msg2.graph.support import PAIR_KINDS, Edge, PairKind, StepEvidence, Support

__all__ = [
    "END", "FALSE", "PAIR_KINDS", "START", "TRUE", "Edge", "Formula", "Link", "Node", "PairKind", "PairKinds",
    "RelatedPair", "StepEvidence", "SubtaskGraph", "Support", "agreement", "all_of", "any_of", "are_equivalent",
    "disjunctive_normal_form", "formula_from_json", "is_tautology", "negation", "node_link_graph", "probability",
    "related_pairs", "simplify", "step",
]  # fmt: skip

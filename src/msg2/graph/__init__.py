"""What was learnt: Boolean preconditions and the subtask graph made of them. Pure: no files, no printing."""

from msg2.graph.formula import FALSE, TRUE, Formula, all_of, any_of, from_json, negation, step
from msg2.graph.normal_form import always, dnf, simplified
from msg2.graph.probability import agreement, equivalent, probability
from msg2.graph.subtask import END, START, SubtaskGraph
from msg2.graph.wiring import Edge, Node, wiring

__all__ = [
    "END", "FALSE", "START", "TRUE", "Edge", "Formula", "Node", "SubtaskGraph",
    "agreement", "all_of", "always", "any_of", "dnf", "equivalent", "from_json", "negation", "probability",
    "simplified", "step", "wiring",
]  # fmt: skip

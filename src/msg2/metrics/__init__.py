"""How good graphs, forecasts and mistake detectors are. Pure functions, each in one place."""

from msg2.metrics.annotator_agreement import AnnotatorAgreement, annotator_agreement, cohen_kappa
from msg2.metrics.calibration import expected_calibration_error, score_calibration
from msg2.metrics.detection import DetectionScores, detection_auc, detection_scores, roc_auc
from msg2.metrics.graph_differences import GraphComparison, PairDifference, compare_graphs
from msg2.metrics.graph_scores import (
    EdgeScores,
    GraphScores,
    accuracy,
    compatibility,
    edge_scores,
    match_step_names,
    score_graph,
    spoc,
    violation_rate,
)
from msg2.metrics.group_differences import SIGNIFICANT, GroupDifference, compare_groups

__all__ = [
    "SIGNIFICANT", "AnnotatorAgreement", "DetectionScores", "EdgeScores", "GraphComparison", "GraphScores",
    "GroupDifference", "PairDifference", "accuracy", "annotator_agreement", "cohen_kappa", "compare_graphs",
    "compare_groups", "compatibility", "detection_auc", "detection_scores", "edge_scores",
    "expected_calibration_error", "match_step_names", "roc_auc", "score_calibration", "score_graph", "spoc",
    "violation_rate",
]  # fmt: skip

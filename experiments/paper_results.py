"""Numbers printed in the paper, in percent, for comparison."""

from __future__ import annotations

from collections.abc import Mapping

GRAPHS: Mapping[str, tuple[float, float, float | None]] = {
    "ProScript": (57.50, 62.34, 37.12),
    "MSGI": (54.23, 64.62, None),
    "MSGI+": (73.59, 72.39, 76.08),
    "MSG²-noSSP": (81.62, 88.35, 97.86),
    "MSG²": (83.16, 89.91, 98.30),
}
"""Table 1, ProceL with the authors' graphs: accuracy, SPOC, compatibility.

The accuracy of MSGI+ averages 62.00 in their per-task table."""

NEXT_STEP: Mapping[str, tuple[float, float, float, float]] = {
    "Add Oil to Your Car": (30.77, 30.77, 67.52, 67.52),
    "Build Simple Floating Shelves": (32.47, 32.47, 72.73, 72.73),
    "Change a Tire": (23.45, 22.76, 64.83, 68.28),
    "Grill Steak": (14.60, 14.60, 45.99, 41.24),
    "Jack Up a Car": (71.88, 71.88, 90.62, 90.62),
    "Make a Latte": (33.33, 33.33, 44.74, 46.49),
    "Make Banana Ice Cream": (39.51, 39.51, 48.15, 48.15),
    "Make Bread and Butter Pickles": (18.02, 27.93, 32.43, 32.43),
    "Make French Strawberry Cake": (18.82, 18.82, 37.65, 37.65),
    "Make French Toast": (22.51, 20.58, 63.99, 63.99),
    "Make Irish Coffee": (33.04, 33.04, 50.89, 55.36),
    "Make Jello Shots": (36.49, 36.49, 52.03, 57.43),
    "Make Kerala Fish Curry": (33.33, 33.33, 47.29, 48.06),
    "Make Kimchi Fried Rice": (45.35, 45.35, 48.84, 48.84),
    "Make Lemonade": (32.54, 32.54, 36.51, 46.03),
    "Make Meringue": (34.65, 34.65, 58.42, 58.42),
    "Make Pancakes": (34.69, 34.69, 63.78, 64.80),
    "Make Taco Salad": (26.19, 26.19, 34.52, 31.55),
}
"""App. C, CrossTask: MSGI, MSGI+, MSG²-noSSP, MSG²."""
NEXT_STEP_OF_NETWORKS: Mapping[str, Mapping[str, float]] = {
    "STAM": {"Build Simple Floating Shelves": 58.82, "Change a Tire": 48.21, "Make French Toast": 47.91},
    "ViViT": {"Build Simple Floating Shelves": 43.14, "Change a Tire": 49.11, "Make French Toast": 48.37},
}
"""App. C, CrossTask: the tasks whose narration is at hand."""

NEXT_STEP_MEAN = (32.31, 32.72, 53.39, 54.42)
"""Table 2, CrossTask."""

STATES: Mapping[str, tuple[float, ...]] = {
    "VisionOnly": (72.41, 74.91, 80.21, 93.68, 72.94, 91.11, 85.58, 93.65, 89.52, 88.93, 79.45, 70.90, 82.77),
    "Vision + ASR": (71.83, 74.76, 83.12, 89.42, 69.05, 91.07, 83.80, 90.08, 86.36, 87.78, 78.16, 72.64, 81.51),
    "Ours (from scratch)": (63.56, 68.93, 74.73, 90.36, 66.61, 79.02, 71.54, 87.76, 69.54, 80.47, 72.42, 65.97, 74.24),
    "Ours (w/o in progress)": (
        70.67, 74.42, 82.72, 93.28, 72.41, 89.95, 85.56, 93.94, 88.01, 88.85, 79.59, 74.63, 82.84,
    ),
    "Ours": (71.25, 74.93, 83.51, 94.56, 73.42, 89.76, 85.94, 94.71, 91.14, 89.54, 79.44, 75.58, 83.65),
    "VisualBERT": (69.09, 73.84, 79.63, 69.59, 58.45, 91.68, 84.01, 90.40, 83.18, 83.83, 62.07, 67.73, 76.13),
    "VisualBERT†": (59.01, 59.99, 72.98, 71.07, 64.66, 78.93, 77.69, 72.33, 75.52, 75.33, 63.43, 68.10, 69.92),
    "ViT": (58.69, 59.92, 74.11, 68.84, 59.69, 79.09, 78.29, 70.39, 74.90, 78.17, 70.03, 67.45, 69.96),
}  # fmt: skip
"""Table A, ProceL: accuracy of completion on hand-annotated states, tasks (a) to (l), then the average as printed."""

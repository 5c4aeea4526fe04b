"""Numbers printed in the paper, in percent, for comparison."""

from __future__ import annotations

from collections.abc import Mapping

GRAPHS: Mapping[str, tuple[float, float, float | None]] = {
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
NEXT_STEP_MEAN = (32.31, 32.72, 53.39, 54.42)
"""Table 2, CrossTask."""

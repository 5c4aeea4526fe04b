"""Colours and line widths that all diagrams share.

The colours are told apart with every kind of colour vision; a dashed line repeats what red and weak say.
"""

from __future__ import annotations

from msg2.drawing.diagram import Arrow, EdgeStatus
from msg2.graph.formula import FormulaKind

INK = "#2b2f36"
PAPER = "#ffffff"
STEP_FILL, STEP_LINE = "#ffffff", "#7a828e"
START_FILL, START_LINE = "#d9efec", "#009988"
MARK_FILL, MARK_LINE, MARK_INK = "#fdeae4", "#cc3311", "#a32407"
OPERATOR_FILL: dict[FormulaKind, str] = {"all": "#cfe6f7", "any": "#ffe0c2", "not": "#eceef1", "true": "#eceef1"}
ARROW: dict[EdgeStatus, str] = {"common": "#3d434c", "redundant": "#0077bb", "missing": "#cc3311"}
EXCLUSIVE: dict[EdgeStatus, str] = ARROW | {"common": "#a65300"}
QUIET_INK = "#5c636e"
"""Of small notes that are no marks."""

OPERATOR_WORDS: dict[FormulaKind, str] = {
    "all": "all of these",
    "any": "any of these",
    "not": "not this",
    "true": "always",
}
STATUS_WORDS: dict[EdgeStatus, str] = {
    "common": "in both",
    "redundant": "redundant: not in the true graph",
    "missing": "missing: only in the true graph",
}
REPEATS_SYMBOL = "↻"


def arrow_width(arrow: Arrow) -> float:
    """Line width in points: 0.8 where the order is a coin toss (share ½ or less) up to 2.8 where it never fails.

    An arrow that says "after, if done" is always thin, from 0.6 to 0.9.
    """
    share = arrow.support.share
    width = 1.3 if share is None else 0.8 + 2.0 * max(0.0, 2.0 * share - 1.0)
    return round(width if arrow.kind == "needs" else 0.5 + 0.15 * width, 2)


def repeats_note(share: float) -> str:
    """Say in a few signs how often a step is done again.

    >>> repeats_note(0.3)
    '↻ 30 %'
    """
    return f"{REPEATS_SYMBOL} {100 * share:.0f} %"


def is_dashed(arrow: Arrow) -> bool:
    """Dashed lines are for arrows with little support and for those that the graph does not have."""
    return arrow.support.weak or arrow.status == "missing"

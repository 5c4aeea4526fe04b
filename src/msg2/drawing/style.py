"""Colours and line widths that all diagrams share, and the options of a picture.

The colours are told apart with every kind of colour vision; a dashed line repeats what red and weak say.
"""

from __future__ import annotations

import re
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from msg2.drawing.diagram import Arrow, EdgeStatus
from msg2.errors import require
from msg2.graph.formula import FormulaKind
from msg2.options import WHOLE, options_class

INK = "#2b2f36"
PAPER = "#ffffff"
STEP_FILL, STEP_LINE = "#ffffff", "#7a828e"
START_FILL, START_LINE = "#d9efec", "#009988"
MARK_FILL, MARK_LINE, MARK_INK = "#fdeae4", "#cc3311", "#a32407"
OPERATOR_FILL: dict[FormulaKind, str] = {"all": "#cfe6f7", "any": "#ffe0c2", "not": "#eceef1", "true": "#eceef1"}
ARROW: dict[EdgeStatus, str] = {"common": "#3d434c", "redundant": "#0077bb", "missing": "#cc3311"}
EXCLUSIVE: dict[EdgeStatus, str] = ARROW | {"common": "#a65300"}
QUIET_INK = "#5c636e"  # of small notes that are no marks

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
    """Say in a few signs how often a step is done again."""
    return f"{REPEATS_SYMBOL} {100 * share:.0f} %"


def is_dashed(arrow: Arrow) -> bool:
    """Dashed lines are for arrows with little support and for those that the graph does not have."""
    return arrow.support.weak or arrow.status == "missing"


Direction: TypeAlias = Literal["LR", "TB"]
_INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72}  # per unit of a width
_WIDTH = re.compile(r"(\d+(?:\.\d+)?|\.\d+) ?(in|cm|mm|pt)")


@options_class
class PictureOptions:
    """The look of a picture.

    >>> PictureOptions(width="36pt").inches
    0.5
    """

    direction: Direction = "LR"
    """Steps from left to right (LR) or from the top down (TB)."""
    font_size: Annotated[float, Field(ge=4, le=72)] = 11.0
    """Size of the names in points; boxes and gaps grow with it."""
    width: str | None = None
    """No wider than this, such as 8.4cm or 3.3in: names get more lines, then all of the picture gets smaller."""
    legend: bool | None = None
    """Explain everything that is drawn, or nothing; by default, only what a plain arrow does not say."""
    dpi: Annotated[int, Field(ge=20, le=1200), WHOLE] = 144
    """Dots per inch of a PNG."""

    def __post_init__(self) -> None:
        wrong = f"width is {self.width!r}, it must be a number above 0 and in, cm, mm or pt, such as 8.4cm"
        require(self.width is None or bool(_WIDTH.fullmatch(self.width)), wrong)
        require(self.inches is None or self.inches > 0, wrong)

    @property
    def inches(self) -> float | None:
        """The greatest width in inches, where there is one."""
        parts = _WIDTH.fullmatch(self.width or "")
        return None if parts is None else float(parts[1]) * _INCHES[parts[2]]

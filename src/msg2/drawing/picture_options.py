"""How a picture is drawn: its direction and size, as papers, slides and pages ask for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from msg2.validation import require

Direction: TypeAlias = Literal["LR", "TB"]
_INCHES = {"in": 1.0, "cm": 1 / 2.54, "mm": 1 / 25.4, "pt": 1 / 72}
"""Per unit of a width."""
_WIDTH = re.compile(r"(\d+(?:\.\d+)?|\.\d+) ?(in|cm|mm|pt)")


@dataclass(frozen=True, slots=True)
class PictureOptions:
    """The look of a picture.

    >>> PictureOptions(width="36pt").inches
    0.5
    """

    direction: Direction = "LR"
    """Steps from left to right (LR) or from the top down (TB)."""
    font_size: float = 11.0
    """Size of the names in points; boxes and gaps grow with it."""
    width: str | None = None
    """No wider than this, such as 8.4cm or 3.3in: names get more lines, then all of the picture gets smaller."""
    legend: bool | None = None
    """Explain everything that is drawn, or nothing; by default, only what a plain arrow does not say."""
    dpi: int = 144
    """Dots per inch of a PNG."""

    def __post_init__(self) -> None:
        require(4 <= self.font_size <= 72, f"font_size is {self.font_size}, it must be from 4 to 72 points")
        require(20 <= self.dpi <= 1200, f"dpi is {self.dpi}, it must be from 20 to 1200")
        require(self.direction in ("LR", "TB"), f"direction is {self.direction!r}, it must be LR or TB")
        wrong = f"width is {self.width!r}, it must be a number above 0 and in, cm, mm or pt, such as 8.4cm"
        require(self.width is None or bool(_WIDTH.fullmatch(self.width)), wrong)
        require(self.inches is None or self.inches > 0, wrong)

    @property
    def inches(self) -> float | None:
        """The greatest width in inches, where there is one."""
        found = None if self.width is None else _WIDTH.fullmatch(self.width)
        return None if found is None else float(found[1]) * _INCHES[found[2]]

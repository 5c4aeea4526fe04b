"""Colours, line widths and signs that all diagrams share, and the options of a picture.

The colours are told apart with every kind of colour vision; a dashed line repeats what red and weak say.
"""

import re
from typing import Annotated, Literal, NamedTuple, TypeAlias

from pydantic import Field

from msg2.errors import require
from msg2.graph.formula import FormulaKind
from msg2.options import WHOLE, options_class

EdgeStatus: TypeAlias = Literal["common", "redundant", "missing"]
"""An arrow beside the true graph: in both graphs, only in the drawn one, or only in the true one."""
INK = "#2b2f36"
PAPER = "#ffffff"
STEP_FILL, STEP_LINE = "#ffffff", "#7a828e"
START_FILL, START_LINE = "#d9efec", "#009988"
MARK_FILL, MARK_LINE, MARK_INK = "#fdeae4", "#cc3311", "#a32407"
ARROW: dict[EdgeStatus, str] = {"common": "#3d434c", "redundant": "#0077bb", "missing": "#cc3311"}
EXCLUSIVE: dict[EdgeStatus, str] = ARROW | {"common": "#a65300"}
QUIET_INK = "#5c636e"  # of small notes that are no marks
STATUS_WORDS: dict[EdgeStatus, str] = {
    "common": "in both",
    "redundant": "redundant: not in the true graph",
    "missing": "missing: only in the true graph",
}
REPEATS_SYMBOL = "↻"


class Operator(NamedTuple):
    """How an operator is drawn: what is written on it, what that means, and its colour."""

    name: str
    words: str
    fill: str


OPERATORS: dict[FormulaKind, Operator] = {
    "all": Operator("and", "all of these", "#cfe6f7"),
    "any": Operator("or", "any of these", "#ffe0c2"),
    "not": Operator("not", "not this", "#eceef1"),
    "true": Operator("true", "always", "#eceef1"),
}


class Sign(NamedTuple):
    """An entry of a legend: words for everyone, and the sample beside them in DOT, on the page and in Mermaid."""

    words: str
    dot: str
    html: str
    mermaid: str = ""
    colour: str = INK  # of words and sample in DOT
    cell: str = ""  # attributes of the table cell in DOT, where the sample is a box around the words


def _line(kind: str, path: str) -> str:
    return f'<svg class="sample {kind}" width="30" height="10" aria-hidden="true"><path d="{path}"/></svg>'


def _circle(kind: FormulaKind) -> str:
    return f'<span class="key operator {kind}">{OPERATORS[kind].name}</span>'


_ARROW_PATH = "M1 5H20M20 1.5 28 5 20 8.5Z"
_DASHED = f'border="1" color="{STEP_LINE}" style="rounded,dashed" bgcolor="{STEP_FILL}"'
_FIRST = f'border="1" color="{START_LINE}" style="rounded" bgcolor="{START_FILL}"'
_AGAIN = f'<span class="key repeats">{REPEATS_SYMBOL}</span>'
SIGNS: dict[str, Sign] = {
    "needs": Sign("needs", "──▶", _line("needs", _ARROW_PATH), "arrow"),
    "alternative": Sign("one of these is enough", "──(or)", _circle("any"), "line to or"),
    "after": Sign("after, if done", "──▷", _line("after", _ARROW_PATH), "round end"),
    "exclusive": Sign("only one of these", "├─┤", _line("exclusive", "M2 1V9M2 5H26M26 1V9"), "", EXCLUSIVE["common"]),
    "response": Sign(
        "must be followed", "●──▶", _line("needs", "M2 5a2.5 2.5 0 1 0 5 0a2.5 2.5 0 1 0-5 0Z" + _ARROW_PATH)
    ),
    "loop": Sign("done again from here", f"┈{REPEATS_SYMBOL}┈▶", _line("loop", _ARROW_PATH), "dotted arrow", QUIET_INK),
    "optional": Sign("may be left out", "", '<span class="key optional"></span>', "dashed box", cell=_DASHED),
    "repeats": Sign("done again in so many runs", REPEATS_SYMBOL, _AGAIN, REPEATS_SYMBOL, QUIET_INK),
    "start": Sign("can be done at once", "", '<span class="key start"></span>', cell=_FIRST),
    "all": Sign("all of these", "(and)", _circle("all")),
    "not": Sign("only if not done", "(not)", _circle("not")),
    "share": Sign("the wider, the more videos agree", "━━▶", '<span class="line strong"></span>'),
    "weak": Sign("weak: few videos tell, or a quarter contradict", "╌╌▶", '<span class="line weak"></span>'),
}
"""Everything that a diagram can say, in the order of a legend."""
SELF_EVIDENT = {"start", "all", "not", "share", "weak"}
"""What only a full legend explains."""


def repeats_note(share: float) -> str:
    """Say in a few signs how often a step is done again."""
    return f"{REPEATS_SYMBOL} {100 * share:.0f} %"


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
        require(self.width is None or bool(self.inches), wrong)

    @property
    def inches(self) -> float | None:
        """The greatest width in inches, where there is one."""
        parts = _WIDTH.fullmatch(self.width or "")
        return None if parts is None else float(parts[1]) * _INCHES[parts[2]]

    @property
    def size_limit(self) -> str:
        """The width as an attribute of a graph in DOT."""
        return "" if self.inches is None else f'size="{self.inches:.4g},1000", '

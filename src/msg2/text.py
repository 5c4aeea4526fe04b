"""Names are data: whatever they hold, they are shown as text, and no format breaks on them."""

import textwrap
import unicodedata
from collections.abc import Iterable, Mapping

_VISIBLE: dict[int, str] = {
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"},
    0x7F: "␡",
    **dict.fromkeys((*range(0x80, 0xA0), *range(0xD800, 0xE000)), "�"),
    **dict.fromkeys((plane + last for plane in range(0, 0x110000, 0x10000) for last in (0xFFFE, 0xFFFF)), "�"),
}
"""What stands for control characters, halves of surrogate pairs and codes that are no characters."""


def escape_control_characters(text: str) -> str:
    """Make visible what no XML, DOT or Mermaid file may hold: control characters, halves of surrogate pairs."""
    return text.translate(_VISIBLE)


def one_line(text: str) -> str:
    """Put `text` on one line, without control characters; never empty, so that there is something to see."""
    return " ".join(escape_control_characters(text).split()) or "␣"


def truncate(text: str, limit: int) -> str:
    """Cut `text` to a number of characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def wrap(name: str, columns: int, limit: int) -> list[str]:
    """Break a name into lines; a word that is longer than a line is broken too."""
    return textwrap.wrap(truncate(one_line(name), limit), columns)


def width_in_ems(line: str) -> float:
    """Upper estimate of the width of `line` in a common sans-serif font, in units of the font size.

    Boxes are sized by it, so that a diagram is laid out alike whichever fonts are installed.
    """
    return sum(_ems(character) for character in line)


def _ems(character: str) -> float:
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF":
        return 1.25
    if character in "mwMW@%…":
        return 1.0
    if character in "iljftI.,:;'!|()[] -":
        return 0.42
    return 0.66 if character.islower() or character.isdigit() else 0.84


def name_fault(name: str) -> str | None:
    """What is wrong with the name of a step, video or task, to be read after "has"; None where nothing is."""
    if not name:
        return "an empty name"
    if "\0" in name:
        return "a name with a NUL character"
    if (not name.isprintable() and not any(map(_is_visible, name))) or name.isspace():
        return "a name of white space only"
    return None


def _is_visible(character: str) -> bool:
    return not character.isspace() and unicodedata.category(character) != "Cf"


def fold_lookalikes(name: str) -> str:
    """The same text for names that look the same: case, white space, Unicode form, invisible and borrowed letters."""
    if name.isascii():  # the usual case, ten times as fast
        return "".join(name.split()).casefold()
    latin = unicodedata.normalize("NFKC", name).translate(_BORROWED)
    return "".join(character for character in latin if _is_visible(character)).casefold()


_BORROWED = str.maketrans(
    "АВЕКМНОРСТУХІЈЅавекмносрутхіјѕһԁԛԝΑΒΕΖΗΙΚΜΝΟΡΤΥΧαικνορτυχ",
    "ABEKMHOPCTYXIJSabekmhocpytxijshdqwABEZHIKMNOPTYXaikvoptux",
)
"""Letters of the Cyrillic and the Greek alphabet that look like Latin ones."""


def short_repr(text: str, limit: int = 60) -> str:
    """Quote `text` on one line: names are data and may be very long."""
    return repr(truncate(text, limit))


def join_names(names: Iterable[str], *, most: int = 10, limit: int = 60) -> str:
    """Names in quotes, separated by commas: the first ones, and how many more there are."""
    shown = [short_repr(name, limit) for name in names]
    return ", ".join(shown[:most]) + (f" and {len(shown) - most} more" if len(shown) > most else "")


def time_unit(seconds: float) -> tuple[int, str]:
    """The unit in which people tell a time of so many seconds, and how many seconds it has."""
    if seconds >= 2 * 86_400:
        return 86_400, "days"
    if seconds >= 2 * 3600:
        return 3600, "hours"
    return (60, "minutes") if seconds >= 2 * 60 else (1, "seconds")


def join_counts(counts: Mapping[str, int]) -> str:
    """Names in quotes, sorted, each with its count in brackets; the first ten."""
    return ", ".join(f"{short_repr(name)} ({count})" for name, count in sorted(counts.items())[:10])

"""Names are data: whatever they hold, they are shown as text, and no format breaks on them."""

from __future__ import annotations

import textwrap
import unicodedata
from collections.abc import Iterable, Mapping


def escape_control_characters(text: str) -> str:
    r"""Make visible what no XML, DOT or Mermaid file may hold: control characters, halves of surrogate pairs.

    >>> escape_control_characters("boil\x00 water\n\ud800")
    'boil␀ water\n�'
    """
    return "".join(character if character in "\n\t" else _visible(character) for character in text)


def _visible(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    return "�" if 0x80 <= code < 0xA0 or 0xD800 <= code < 0xE000 or code & 0xFFFE == 0xFFFE else character


def one_line(text: str) -> str:
    r"""Put `text` on one line, without control characters; never empty, so that there is something to see.

    >>> one_line("boil\n  water"), one_line(" ")
    ('boil water', '␣')
    """
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
    """What is wrong with the name of a step, video or task, to be read after "has"; None where nothing is.

    >>> name_fault("stir"), name_fault(" \\t"), name_fault("a\\0b")
    (None, 'a name of white space only', 'a name with a NUL character')
    """
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
    """The same text for names that look the same: case, white space, Unicode form, invisible and borrowed letters.

    >>> fold_lookalikes("Flip  br\u0435ad") == fold_lookalikes("flip\u200bbread")
    True
    """
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


def join_counts(counts: Mapping[str, int]) -> str:
    """Names in quotes, sorted, each with its count in brackets; the first ten.

    >>> join_counts({"schedule": 3})
    "'schedule' (3)"
    """
    return ", ".join(f"{short_repr(name)} ({count})" for name, count in sorted(counts.items())[:10])

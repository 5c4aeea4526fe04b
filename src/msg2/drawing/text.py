"""Names are data: whatever they hold, they are shown as text, and no format breaks on them."""

from __future__ import annotations

import textwrap
import unicodedata


def printable(text: str) -> str:
    r"""`text` with what no XML, DOT or Mermaid file may hold made visible: control characters, halves of pairs.

    >>> printable("boil\x00 water\n\ud800")
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
    r"""`text` printable and on one line; never empty, so that there is something to see.

    >>> one_line("boil\n  water"), one_line(" ")
    ('boil water', '␣')
    """
    return " ".join(printable(text).split()) or "␣"


def cut(text: str, limit: int) -> str:
    """`text` in at most `limit` characters, the last one "…" where something is missing.

    >>> cut("boil the water", 8)
    'boil th…'
    """
    return text if len(text) <= limit else text[: limit - 1] + "…"


def wrapped(name: str, columns: int, limit: int) -> list[str]:
    """`name` on lines of at most `columns` characters, cut after `limit`; a longer word is broken.

    >>> wrapped("continue cooking, stirring often", 18, 90)
    ['continue cooking,', 'stirring often']
    """
    return textwrap.wrap(cut(one_line(name), limit), columns)


def width_in_ems(line: str) -> float:
    """Upper estimate of the width of `line` in a common sans-serif font, in units of the font size.

    Boxes are sized by it, so that a picture is laid out alike whichever fonts are installed.
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

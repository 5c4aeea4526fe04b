"""How remarks name many things in one line."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msg2.errors import shortened


def listed(names: Iterable[str]) -> str:
    """Names in quotes, sorted; the first ten and how many more there are.

    >>> listed({"b", "a"})
    "'a', 'b'"
    """
    shown = [shortened(name) for name in sorted(names)]
    return ", ".join(shown[:10]) + (f" and {len(shown) - 10} more" if len(shown) > 10 else "")


def counted(counts: Mapping[str, int]) -> str:
    """Names in quotes, each with how often it was there.

    >>> counted({"schedule": 3})
    "'schedule' (3)"
    """
    return ", ".join(f"{shortened(name)} ({count})" for name, count in sorted(counts.items())[:10])

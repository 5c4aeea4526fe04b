"""Registries that installed plug-ins add to, by entry points, so that nobody needs a fork.

A package adds a method, a format or a ranker by an entry point of the group `msg2.methods`, `msg2.formats` or
`msg2.rankers`. Plug-ins are imported when a registry is listed, or asked for a name that it does not know: neither
importing msg2 nor learning from a table of steps by a method of our own does that.
"""

from __future__ import annotations

import logging
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

Value = TypeVar("Value")

_log = logging.getLogger(__name__)


class Registry(UserDict[str, Value]):
    """What users choose by name: our own first, then what plug-ins of a group of entry points add.

    `accept` turns the name of an entry point and what it refers to into entries; what it raises says what is wrong.
    """

    def __init__(
        self, group: str, accept: Callable[[str, object], Mapping[str, Value]], own: Mapping[str, Value]
    ) -> None:
        super().__init__(own)
        self._group, self._accept, self._own, self._loaded = group, accept, frozenset(own), False

    @property
    def plugins(self) -> list[str]:
        """The names that msg2 does not have itself."""
        return [name for name in self if name not in self._own]

    def __missing__(self, name: str) -> Value:
        """Look for the name among the plug-ins."""
        self._load_plugins()
        return self.data[name]

    def __contains__(self, name: object) -> bool:
        """Whether there is such a name, plug-ins included."""
        if name not in self.data:
            self._load_plugins()
        return name in self.data

    def __iter__(self) -> Iterator[str]:
        """All names, those of plug-ins last."""
        self._load_plugins()
        return iter(self.data)

    def __len__(self) -> int:
        """The number of names."""
        self._load_plugins()
        return len(self.data)

    def _load_plugins(self) -> None:
        """Import the plug-ins once; one that cannot be used is named in a warning, and the others work."""
        if self._loaded:
            return
        from importlib.metadata import entry_points  # not before it is needed

        self._loaded = True
        for entry in sorted(entry_points(group=self._group), key=lambda entry: entry.name):
            try:
                added = self._accept(entry.name, entry.load())
                if clashes := [name for name in added if name in self.data]:
                    raise ValueError(f"there is {clashes[0]!r} already")
                self.data.update(added)
            except Exception as error:
                why = f"{type(error).__name__}: {error}".splitlines()[0]
                _log.warning("the plug-in %r (%s) is left out: %s", entry.name, entry.value, why)

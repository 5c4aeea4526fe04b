"""For the documentation of Python: the examples in docstrings become code blocks."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)


class Examples(griffe.Extension):
    """Puts every run of `>>>` lines, with the output below it, between fences."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring:
            obj.docstring.value = _EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", obj.docstring.value)

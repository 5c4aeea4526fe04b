"""For the documentation of Python: the examples in docstrings become code blocks, after their text and sections."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*?(?=\n\n|\Z)", re.MULTILINE | re.DOTALL)
_SECTION = re.compile(r"^(Parameters|Returns|Yields|Raises|Attributes)\n-+$", re.MULTILINE)


class Examples(griffe.Extension):
    """Puts every run of `>>>` lines, with the output below it, between fences or into a section of its own."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        """Rewrite the docstring of one object."""
        if obj.docstring is None:
            return
        text = obj.docstring.value
        if not _SECTION.search(text):
            obj.docstring.value = _EXAMPLE.sub(lambda match: f"```pycon\n{match[0]}\n```", text)
        elif _EXAMPLE.search(text):  # an example below a section would be read as a part of that section
            examples = "\n\n".join(match[0] for match in _EXAMPLE.finditer(text))
            rest = re.sub(r"\n{3,}", "\n\n", _EXAMPLE.sub("", text)).rstrip()
            obj.docstring.value = f"{rest}\n\nExamples\n--------\n{examples}"

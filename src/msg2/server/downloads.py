"""Files that the app hands out."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

from fastapi import Response

Format: TypeAlias = str
"""A suffix without its dot."""

BINARY: dict[int | str, dict[str, Any]] = {
    200: {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
}
"""The answer of a download, for the schema."""


def attachment(folder: Path, name: str) -> Response:
    """A file of `folder`, to be saved under its name, which is made of plain letters and digits."""
    headers = {"Content-Disposition": f'attachment; filename="{Path(name).name}"'}
    return Response((folder / name).read_bytes(), media_type="application/octet-stream", headers=headers)

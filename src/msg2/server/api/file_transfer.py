"""Uploads and downloads: bodies of requests and responses that are files.

The name of a file that is uploaded never becomes a path; one that is downloaded is made of plain letters and digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from fastapi import Request, Response
from starlette.requests import ClientDisconnect

from msg2.errors import InputError
from msg2.server.sandbox import TaskResult
from msg2.server.workspace import Workspace

_BINARY = {"content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}}
UPLOAD_SCHEMA: dict[str, Any] = {"requestBody": {"required": True, **_BINARY}}
"""The body of an upload, for the schema."""
DOWNLOAD_SCHEMA: dict[int | str, dict[str, Any]] = {200: _BINARY}
"""The response of a download, for the schema."""


async def save_body(request: Request, path: Path) -> Path:
    """Write the body of a request to a file."""
    try:
        with path.open("wb") as file:
            async for chunk in request.stream():
                file.write(chunk)
    except ClientDisconnect:
        raise InputError("the upload broke off") from None
    return path


def format_schema(suffixes: Iterable[str]) -> dict[str, Any]:
    """Describe the formats of a download, named by their suffixes, for the schema."""
    return {"enum": [suffix[1:] for suffix in suffixes]}


def export_response(
    workspace: Workspace, format: str, suffixes: Iterable[str], content: str, export: Callable[[str, Path], TaskResult]
) -> Response:
    """Make the response that has a browser save something that is kept, in one of its formats."""
    if f".{format}" not in suffixes:
        raise InputError(f"there is no format {format!r} of {content}", hint=f"there are {' '.join(suffixes)}")
    with workspace.scratch_folder() as folder:
        file = folder / export(f".{format}", folder).value
        headers = {"Content-Disposition": f'attachment; filename="{file.name}"'}
        return Response(file.read_bytes(), media_type="application/octet-stream", headers=headers)

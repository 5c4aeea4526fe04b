"""A file in: the body of a request as it is, under a name that never becomes a path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import Request
from starlette.requests import ClientDisconnect

from msg2.errors import InputError

BODY: dict[str, Any] = {"requestBody": {"required": True, "content": {"application/octet-stream": {"schema": {
    "type": "string", "format": "binary"}}}}}  # fmt: skip
"""What the schema says of such a request."""


async def written(request: Request, path: Path) -> Path:
    """The file at `path`, once the whole body is in it."""
    try:
        with path.open("wb") as file:
            async for chunk in request.stream():
                file.write(chunk)
    except ClientDisconnect:
        raise InputError("the upload broke off") from None
    return path

"""The screens of the app, as they lie in the package, and the page of a graph, which is let out on a short leash."""

from __future__ import annotations

import mimetypes
from importlib import resources
from typing import Annotated

from fastapi import APIRouter, Depends, Response
from fastapi.responses import FileResponse

from msg2.server.asking import the_desk
from msg2.server.chores import PAGE
from msg2.server.desk import Desk
from msg2.server.models import Id
from msg2.server.shelf import NotThereError

router = APIRouter(include_in_schema=False)

_LEASH = "sandbox allow-scripts allow-downloads allow-modals; frame-ancestors 'self'"
"""The page of a graph is an origin of its own: whatever it might hold, it cannot ask this app for anything."""

_FILES = {
    **{file.name: file.read_bytes() for file in resources.files("msg2.server").joinpath("static").iterdir()},
    "page.css": resources.files("msg2.drawing").joinpath("assets", "page.css").read_bytes(),
}
"""All that is ever served from the package: a name is looked up here, and never becomes a path."""


def _static(name: str) -> Response:
    if name not in _FILES:
        raise NotThereError("there is no such page")
    return Response(_FILES[name], media_type=mimetypes.guess_type(name)[0])


@router.get("/")
@router.get("/data/{id}")
@router.get("/graph/{id}")
@router.get("/draw")
@router.get("/draw/{id}")
@router.get("/labels/{id}")
def screen() -> Response:
    """Every screen is the same shell; its script sees from the address what to show."""
    return _static("index.html")


@router.get("/static/{name}")
def static(name: str) -> Response:
    """Scripts and styles."""
    return _static(name)


@router.get("/page/{id}")
def page(id: Id, desk: Annotated[Desk, Depends(the_desk)]) -> Response:
    """The page of a graph."""
    return FileResponse(desk.file(id, PAGE), media_type="text/html", headers={"Content-Security-Policy": _LEASH})

"""The screens of the app, as they lie in the package, and the pages of graphs, each in a browser sandbox."""

from __future__ import annotations

import mimetypes
from importlib import resources

from fastapi import APIRouter, Response
from fastapi.responses import FileResponse

from msg2.server.api.dependencies import WorkspaceDependency
from msg2.server.graph_workers import PAGE_FILE
from msg2.server.schemas import RecordId
from msg2.server.workspace import NotFoundError

router = APIRouter(include_in_schema=False)

_SANDBOX_POLICY = "sandbox allow-scripts allow-downloads allow-modals; frame-ancestors 'self'"
"""The page of a graph is an origin of its own: whatever it might hold, it cannot ask this app for anything."""

_STATIC_FILES = {
    **{file.name: file.read_bytes() for file in resources.files("msg2.server").joinpath("static").iterdir()},
    "page.css": resources.files("msg2.drawing").joinpath("assets", "page.css").read_bytes(),
}
"""All that is ever served from the package: a name is looked up here, and never becomes a path."""


@router.get("/")
@router.get("/data/{id}")
@router.get("/graph/{id}")
@router.get("/draw")
@router.get("/draw/{id}")
@router.get("/labels/{id}")
@router.get("/follow/{id}")
def get_screen() -> Response:
    """Every screen is the same shell; its script sees from the address what to show."""
    return get_static_file("index.html")


@router.get("/static/{name}")
def get_static_file(name: str) -> Response:
    """Scripts and styles."""
    if name not in _STATIC_FILES:
        raise NotFoundError("there is no such page")
    return Response(_STATIC_FILES[name], media_type=mimetypes.guess_type(name)[0])


@router.get("/page/{id}")
def get_graph_page(id: RecordId, workspace: WorkspaceDependency) -> Response:
    """The page of a graph."""
    path = workspace.graph_file(id, PAGE_FILE)
    return FileResponse(path, media_type="text/html", headers={"Content-Security-Policy": _SANDBOX_POLICY})

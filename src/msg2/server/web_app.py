"""The web application put together: screens, routes, error handlers, security; and how it is served."""

import asyncio
import logging
import mimetypes
import socket
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from html import escape
from importlib import resources
from typing import ClassVar

import uvicorn
from anyio import to_thread
from fastapi import APIRouter, FastAPI, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, HTMLResponse, JSONResponse
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import HTTPConnection
from starlette.routing import Route
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.protocols.websockets.wsproto_impl import WSProtocol

import msg2
from msg2.errors import InputError
from msg2.server import live_runs, routes, workbench
from msg2.server.error_statuses import explain_error
from msg2.server.graph_functions import PAGE_FILE
from msg2.server.jobs import JobQueue
from msg2.server.sandbox import CallCancelledError
from msg2.server.schemas import ConflictResponse, ErrorResponse, RecordId, error_response
from msg2.server.security import AccessMiddleware, Authenticator, OriginMiddleware
from msg2.server.settings import ServerSettings
from msg2.server.workspace import ConflictError, NotFoundError, Workspace, WorkspaceDep

_log = logging.getLogger(__name__)
_BACKLOG = 128
HEAD_SECONDS = 15.0
"""How long the head of a request may take to arrive."""
_MAX_IDLE, _MAX_CONNECTIONS = 256, 4096
"""Connections on which no request is being answered, of which the oldest one gives way, and all of them."""
_SILENT_SECONDS = 60.0
"""A complaint that strangers can cause, about connections or requests, is logged once in this time."""
_THREADS = 200
"""Requests that are dealt with at the same time; most of them wait for a process, and take no time themselves."""
_ERRORS = (400, 401, 403, 404, 408, 409, 413, 422, 429, 500, 503, 507)
"""The status of every answer that is no success: an `ErrorResponse`, of 409 one that says what there is now."""
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_MAX_MESSAGE_BYTES = 1 << 20
"""Of one message through a WebSocket."""
_SANDBOX_POLICY = "sandbox allow-scripts allow-downloads allow-modals; frame-ancestors 'self'"
"""The page of a graph is an origin of its own: whatever it might hold, it cannot ask this app for anything."""
_STATIC_FILES = {
    **{file.name: file.read_bytes() for file in resources.files("msg2.server").joinpath("static").iterdir()},
    "page.css": resources.files("msg2.drawing").joinpath("assets", "page.css").read_bytes(),
}
"""All that is ever served from the package: a name is looked up here, and never becomes a path."""


screens = APIRouter(include_in_schema=False)


def get_screen() -> Response:
    """Every screen is the same shell; its script sees from the address what to show."""
    return get_static_file("index.html")


for _address in (
    "/",
    "/draw",
    *(f"/{name}/{{id}}" for name in ("data", "graph", "draw", "labels", "follow", "publish")),
):
    screens.get(_address)(get_screen)


@screens.get("/static/{name}")
def get_static_file(name: str) -> Response:
    """Scripts and styles."""
    if name not in _STATIC_FILES:
        raise NotFoundError("there is no such page")
    return Response(_STATIC_FILES[name], media_type=mimetypes.guess_type(name)[0])


@screens.get("/page/{id}")
def get_graph_page(id: RecordId, workspace: WorkspaceDep) -> Response:
    """The page of a graph, in a sandbox of the browser."""
    path = workspace.graph_file(id, PAGE_FILE)
    return FileResponse(path, media_type="text/html", headers={"Content-Security-Policy": _SANDBOX_POLICY})


@screens.get("/procedure/{id}")
def get_procedure_page(id: RecordId, workspace: WorkspaceDep) -> Response:
    """The written procedure of a graph as a page of its own, in a sandbox of the browser."""
    page = routes.download_procedure(id, "html", workspace)
    return Response(page.body, media_type="text/html", headers={"Content-Security-Policy": _SANDBOX_POLICY})


def create_app(workspace: Workspace) -> FastAPI:
    """Create the app of a workspace, whose jobs are taken up when it starts, and which is closed when it ends."""
    jobs, runs = JobQueue(workspace), live_runs.LiveRuns(workspace)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = _THREADS
        jobs.start()
        yield
        jobs.stop()
        workspace.close()

    app = FastAPI(
        title="msg2",
        version=msg2.__version__,
        description="Subtask graphs: learn them, ask them, keep them.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # they would load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
        separate_input_output_schemas=False,
        responses={status: {"model": ErrorResponse if status != 409 else ConflictResponse} for status in _ERRORS},
    )
    app.state.workspace, app.state.jobs, app.state.runs, settings = workspace, jobs, runs, workspace.settings
    app.state.authenticator = None if settings.token is None else Authenticator(settings.token, settings.folder)
    for router in (routes.questions, routes.datasets, workbench.router, routes.graphs, runs.router, screens):
        app.include_router(router)
    app.add_middleware(AccessMiddleware, settings=settings, authenticator=app.state.authenticator)
    app.add_middleware(
        CORSMiddleware, allow_origins=workspace.settings.allowed_origins, allow_methods=_METHODS,
        allow_headers=["Authorization"], allow_private_network=True,
    )  # fmt: skip
    app.add_middleware(OriginMiddleware, settings=workspace.settings)  # the outermost
    for error_type in (InputError, RequestValidationError, HTTPException, CallCancelledError, OSError, Exception):
        app.add_exception_handler(error_type, _handle_error)
    return app


class PatientProtocol(H11Protocol):
    """Closes a connection on which the head of a request does not arrive within some seconds, or too many wait."""

    _timer: asyncio.TimerHandle | None = None
    _begun = 0.0

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered, on a connection that is open."""
        return (self.cycle is None or self.cycle.response_complete) and not self.transport.is_closing()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._begun = self.loop.time()
        self._wait_for_head()
        idle = [other for other in self.connections if isinstance(other, PatientProtocol) and other.is_idle]
        if len(idle) > _MAX_IDLE:
            min(idle, key=lambda other: other._begun).transport.abort()

    def data_received(self, data: bytes) -> None:
        """Take what has arrived, and go on waiting where that is no whole head."""
        super().data_received(data)
        upgraded = self.transport.get_protocol() is not self  # it is a WebSocket now
        if upgraded or (self.cycle is not None and not self.cycle.response_complete):
            self._stop_waiting()
        elif self._timer is None:
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        self._timer = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None


class _SilenceRepetitions(logging.Filter):
    """Lets a message through once in a while, however often it comes."""

    _last: ClassVar[dict[str, float]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Tell whether the message is to be logged."""
        now, text = time.monotonic(), record.getMessage()[:100]
        if record.exc_info and record.name != "asyncio":  # a fault of the app, each may be another one
            return True
        if len(self._last) > _MAX_CONNECTIONS:
            self._last.clear()
        if now - self._last.get(text, -_SILENT_SECONDS) < _SILENT_SECONDS:
            return False
        self._last[text] = now
        return True


_SILENCE = _SilenceRepetitions()


def _raise_file_limit() -> int:
    """Let this process open as many files as it may, and return how many connections leave enough for the rest."""
    try:
        import resource
    except ImportError:  # Windows
        return _MAX_CONNECTIONS
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = most if 0 <= most < 4 * _MAX_CONNECTIONS else 4 * _MAX_CONNECTIONS
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, most))
    return min(_MAX_CONNECTIONS, files // 2)


class AppServer(uvicorn.Server):
    """The app as a server; wrap `run` in `capture_signals`, so that a signal ends it in good order."""

    def __init__(self, workspace: Workspace) -> None:
        self._app = create_app(workspace)
        for name in ("asyncio", "uvicorn.error"):
            logging.getLogger(name).addFilter(_SILENCE)
        config = uvicorn.Config(
            self._app, http=PatientProtocol, ws=WSProtocol, ws_max_size=_MAX_MESSAGE_BYTES,
            ws_per_message_deflate=False, log_level="warning", access_log=False, server_header=False,
            timeout_graceful_shutdown=3, backlog=_BACKLOG, limit_concurrency=_raise_file_limit(),
        )  # fmt: skip
        super().__init__(config)

    async def serve(self, sockets: list[socket.socket] | None = None) -> None:
        """Answer requests until a signal was captured."""
        await self._serve(sockets)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the streams and sockets of live runs, which would go on for ever, then everything else."""
        self._app.state.runs.end_streams()
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):  # which came while the others were being closed
            connection.transport.abort()
        await asyncio.sleep(0)  # now they are closed


def listening_socket(settings: ServerSettings) -> socket.socket:
    """Open a socket at the address of the settings, which must be free."""
    with ExitStack() as undo:
        try:
            addresses = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)
            family, kind, proto, _, address = addresses[0]  # without its protocol, answers would wait 40 ms for more
            opened = undo.enter_context(socket.socket(family, kind, proto))
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            opened.bind(address)
            opened.listen(_BACKLOG)
        except OSError as error:
            where, hint = f"{settings.host}:{settings.port}", "choose another --host or --port; 0 takes a free port"
            raise InputError(f"cannot listen there ({error.strerror})", where=where, hint=hint) from None
        undo.pop_all()
    return opened


def _handle_error(request: HTTPConnection, error: Exception) -> Response:
    status, problem = explain_error(error)
    if status == 500 and isinstance(error, OSError):  # others are logged by who calls this
        _log.error("%s could not be answered", request.url.path, exc_info=error)
    headers = {"Allow": ", ".join(sorted(_allowed_methods(request)))} if status == 405 else {}
    more = {"current": error.current} if isinstance(error, ConflictError) else {}
    response = error_response(problem)
    if "text/html" in request.headers.get("accept", ""):  # a person, who came by a link or typed the address
        said = ". ".join(filter(None, (response.error, response.hint)))
        return HTMLResponse(_STATIC_FILES["error.html"].decode().format(problem=escape(said)), status, headers)
    return JSONResponse({**response.model_dump(), **more}, status, headers)


def _allowed_methods(request: HTTPConnection) -> set[str]:
    """Collect the HTTP methods of all routes that have this path."""
    every_route = [route for route in request.app.routes if isinstance(route, Route)]
    same_path = [route for route in every_route if route.path_regex.match(request.url.path)]
    return {method for route in same_path for method in route.methods or ()}

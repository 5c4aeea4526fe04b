"""The app put together, and how it is served."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import uvicorn
from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Route

import msg2
from msg2.errors import InputError
from msg2.options import ServerOptions
from msg2.server import asking, datasets, pages, working
from msg2.server.desk import BusyError, Desk, problem_of
from msg2.server.guard import Guard
from msg2.server.process import Stopped
from msg2.server.records import Problem
from msg2.server.shelf import NotThereError

_BACKLOG = 128
_THREADS = 200
"""Requests that are dealt with at the same time; most of them wait for a process, and take no time themselves."""
_PARTS = (asking, datasets, working, pages)
_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": words}
    for status, words in {
        400: "The input is wrong.",
        401: "The token is missing.",
        403: "The request comes from another site.",
        404: "There is no such thing.",
        413: "It is too large.",
        422: "The request does not fit the schema.",
        429: "Too much is waiting.",
        500: "msg2 has failed.",
        503: "The server is ending.",
    }.items()
}


def application(desk: Desk) -> FastAPI:
    """The app of a desk, whose jobs are taken up when it starts and kept when it ends."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        to_thread.current_default_thread_limiter().total_tokens = _THREADS
        desk.begin()
        yield
        desk.end()

    app = FastAPI(
        title="msg2",
        version=msg2.__version__,
        description="Subtask graphs: learn them, ask them, keep them.",
        openapi_url="/api/openapi.json",
        docs_url=None,  # they would load scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
        responses=_PROBLEMS,
    )
    app.state.desk = desk
    for part in _PARTS:
        app.include_router(part.router)
    app.add_middleware(Guard, options=desk.options)
    for kind, teller in (
        (InputError, _refused), (RequestValidationError, _unfitting), (HTTPException, _http),
        (Stopped, _ending), (Exception, _failed),
    ):  # fmt: skip
        app.add_exception_handler(kind, teller)
    return app


def serve(desk: Desk, listening: socket.socket) -> None:
    """Answer until interrupted."""
    config = uvicorn.Config(
        application(desk), log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=3
    )
    uvicorn.Server(config).run(sockets=[listening])


def listening_socket(options: ServerOptions) -> socket.socket:
    """A socket at the address, which must be free."""
    with ExitStack() as undo:
        try:
            family, kind, proto, _, address = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)[0]
            made = undo.enter_context(socket.socket(family, kind, proto))
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(address)
            made.listen(_BACKLOG)
        except OSError as error:
            where, hint = f"{options.host}:{options.port}", "choose another --host or --port; 0 takes a free port"
            raise InputError(f"cannot listen there ({error.strerror})", where=where, hint=hint) from None
        undo.pop_all()
    return made


# -- what is told where something is wrong ----------------------------------------------------------------------


def _told(status: int, problem: Problem) -> JSONResponse:
    return JSONResponse(problem.model_dump(), status)


def _refused(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, InputError)
    status = 404 if isinstance(error, NotThereError) else 429 if isinstance(error, BusyError) else 400
    return _told(status, problem_of(error))


def _unfitting(_: Request, error: Exception) -> JSONResponse:
    """The first of the complaints: where in the request, and what."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    return _told(422, Problem(error=first["msg"], where=".".join(map(str, first["loc"]))))


def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    response = _told(error.status_code, Problem(error=error.detail))
    if error.status_code == 405:
        response.headers["Allow"] = ", ".join(sorted(_methods(request)))
    return response


def _methods(request: Request) -> set[str]:
    """What can be done with what the address names: the routes that differ by nothing but that."""
    routes = (route for part in _PARTS for route in part.router.routes if isinstance(route, Route))
    return {method for route in routes if route.path_regex.match(request.url.path) for method in route.methods or ()}


def _ending(_: Request, error: Exception) -> JSONResponse:
    return _told(503, Problem(error="the server is ending"))


def _failed(_: Request, error: Exception) -> JSONResponse:
    """Which error it was is in the log of the server, and nobody else's business."""
    return _told(500, Problem(error="msg2 has failed at this, its log says why"))

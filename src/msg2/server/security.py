"""Who may use the app: which host, origin and token a request must have, and how many bytes it may send.

A browser trades the token for a session cookie: when it expires and a random number, with their HMAC under a secret of
the folder and the token, so it outlives a restart, but not another token. No other cookie is ever looked at. A link to
a written procedure that people pass on has the HMAC of its path, and opens nothing else. Whoever guesses waits:
0.02 s · 2ⁿ after n wrong guesses, at most 5 s. Against DNS rebinding and requests from other sites, the Host header
must name this machine, and the origin must be this app, or a site that is allowed: its pages are not let in by the
cookie, but need the token.
"""

import asyncio
import hashlib
import hmac
import re
import secrets
import time
from importlib import resources
from pathlib import Path
from urllib.parse import urlencode

from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from msg2.errors import InputError
from msg2.files import write_whole
from msg2.server.settings import LOOPBACK_HOSTS, ServerSettings

_FIRST_DELAY, _LONGEST_DELAY = 0.02, 5.0
_FORGET_SECONDS = 60.0
"""Wrong guesses are forgotten after so long without another one."""
_MAX_GUESSES = 100
"""Wrong guesses whose answers wait at the same time: each has a connection."""
_SESSION_SECONDS = 30 * 24 * 3600
_SESSION = re.compile(r"(?:\A|;) ?(msg2-\d{1,5}=[0-9a-f.]{1,150})(?=;|\Z)")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::[0-9]{1,5})?", re.IGNORECASE)
_THIS_MACHINE = frozenset(f"[{name}]" if ":" in name else name for name in LOOPBACK_HOSTS)
_UPLOAD_PATHS = ("/api/data", "/api/preview")
_PATIENCE_SECONDS, _SLOWEST_BYTES_PER_SECOND = 30.0, 1000
"""How long a body may take: so long, and longer by what has come."""
_TOKEN_PAGE = resources.files("msg2.server").joinpath("static", "token.html").read_text("utf-8")
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; "
    "connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action {}; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY.format("'none'"),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every answer; a page of a graph has a policy of its own, see `msg2.server.web_app`."""


def new_token() -> str:
    """Make a token that nobody guesses."""
    return secrets.token_urlsafe(24)


def read_token(path: Path) -> str:
    """Read the token in a file: its first line."""
    try:
        return path.read_text("utf-8").partition("\n")[0].strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read ({getattr(error, 'strerror', error)})", where=path) from None


class Authenticator:
    """The token and the sessions of the app that keeps its work in a folder."""

    def __init__(self, token: str, folder: Path) -> None:
        self._token = token
        file = folder / ".secret"
        if not file.is_file():
            write_whole(file, secrets.token_bytes(32))
        self._secret = file.read_bytes() + token.encode()
        self._delay, self._last_wrong, self._guesses = 0.0, 0.0, 0

    async def refuse(self, request: HTTPConnection, is_foreign: bool) -> Response | None:
        """Answer a request without the token or a session, or one that trades the token for a session.

        A browser cannot set headers of a WebSocket: there the token may be in the address. The session counts for this
        app's own pages only.
        """
        has_session = not is_foreign and self._is_session(request)
        is_page, is_socket = request.scope.get("method") == "GET", request.scope["type"] == "websocket"
        in_address = request.query_params.get("token") if is_page or is_socket else None
        if is_page and in_address is not None and (has_session or self._is_token(in_address)):
            return self._welcome(request, is_new=self._is_token(in_address))  # or an old address, maybe a bookmark
        scheme, _, in_header = request.headers.get("authorization", "").partition(" ")
        if has_session or (scheme.lower() in ("bearer", "token") and self._is_token(in_header)):
            return None
        if is_socket and in_address is not None and self._is_token(in_address):
            return None
        shared = request.query_params.get("shared")
        if (
            is_page
            and shared is not None
            and hmac.compare_digest(shared.encode(), self._sign(request.url.path).encode())
        ):
            return None
        if in_address is not None or in_header or shared is not None:
            if self._guesses >= _MAX_GUESSES:
                return _refusal(429, "too many wrong tokens at the same time", "try again in some seconds")
            self._guesses += 1
            try:
                await asyncio.sleep(self._delay_of_guess())
            finally:
                self._guesses -= 1
        if "text/html" in request.headers.get("accept", ""):
            return HTMLResponse(_TOKEN_PAGE, 401, {"Content-Security-Policy": _POLICY.format("'self'")})
        hint = "open the address that `msg2 serve` printed, or send the header `Authorization: Bearer …`"
        return _refusal(401, "this app wants to know its token", hint)

    def share(self, path: str) -> str:
        """Return a link to a page that people without the token may read; it opens nothing else."""
        return f"{path}?shared={self._sign(path)}"

    def _welcome(self, request: HTTPConnection, is_new: bool) -> Response:
        """Redirect to the same address without the token, with a session where that is new."""
        rest = urlencode([(name, value) for name, value in request.query_params.multi_items() if name != "token"])
        path = "/" + request.scope["path"].lstrip("/")
        response = RedirectResponse(f"{path}?{rest}" if rest else path, 303)
        if is_new:
            session = f"{int(time.time()) + _SESSION_SECONDS:x}.{secrets.token_hex(16)}"
            value, name = f"{session}.{self._sign(session)}", _cookie_name(request)
            response.set_cookie(name, value, _SESSION_SECONDS, httponly=True, samesite="lax")
        return response

    def _is_session(self, request: HTTPConnection) -> bool:
        """Tell whether a request has a session that has not expired."""
        session, _, signature = request.cookies.get(_cookie_name(request), "").rpartition(".")
        is_signed = hmac.compare_digest(signature.encode(), self._sign(session).encode())
        return is_signed and int(session.partition(".")[0], 16) > time.time()

    def _is_token(self, text: str) -> bool:
        """Tell whether a text is the token, in a time that does not depend on the text."""
        return hmac.compare_digest(text.encode(), self._token.encode())

    def _sign(self, session: str) -> str:
        return hmac.new(self._secret, session.encode(), hashlib.sha256).hexdigest()

    def _delay_of_guess(self) -> float:
        """Count a wrong guess; in seconds, how long its answer has to wait."""
        now = time.monotonic()
        grown = 2 * self._delay if now - self._last_wrong < _FORGET_SECONDS else 0.0
        self._delay, self._last_wrong = min(max(grown, _FIRST_DELAY), _LONGEST_DELAY), now
        return self._delay


def _cookie_name(request: HTTPConnection) -> str:
    """Browsers do not tell ports apart: apps on the same machine have cookies of different names."""
    return f"msg2-{(request.scope.get('server') or ('', 0))[1] or 0}"


def _keep_sessions(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Drop all cookies but sessions: to parse what strangers send as a cookie may take seconds."""
    cookies = "; ".join(value.decode("latin-1") for name, value in headers if name == b"cookie")
    sessions = "; ".join(_SESSION.findall(cookies))
    return [header for header in headers if header[0] != b"cookie"] + [(b"cookie", sessions.encode())]


class OriginMiddleware:
    """Around the whole app: refuses requests from other sites, and tells browsers to be strict with every answer."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._app, self._allowed, self._has_token = app, settings.allowed_origins, settings.token is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Deal with one request or WebSocket, as any ASGI application does."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        scope["headers"] = _keep_sessions(scope["headers"])

        async def answer(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        error = self._origin_error(HTTPConnection(scope))
        refusal = None if error is None else _refusal(403, error, "open the address that `msg2 serve` printed")
        await (refusal or self._app)(scope, receive, answer)

    def _origin_error(self, request: HTTPConnection) -> str | None:
        """Say what is wrong with where the request comes from, or goes to; None for nothing."""
        headers, path, foreign = request.headers, request.scope["path"], _foreign_origin(request)
        named = _HOST.fullmatch(headers.get("host", ""))
        if named is None or (not self._has_token and named[1].lower() not in _THIS_MACHINE):
            return "the Host header names another machine"
        if foreign is not None:
            is_allowed = foreign in self._allowed and path.startswith("/api/")
        else:
            is_link = request.scope.get("method") == "GET" and headers.get("sec-fetch-dest") == "document"
            is_own = headers.get("sec-fetch-site", "none") in ("none", "same-origin")
            # A link may lead to the front door, and to what was written to be passed on.
            is_allowed = is_own or (is_link and (path == "/" or path.startswith("/procedure/")))
        return None if is_allowed else "the request comes from another site"


class AccessMiddleware:
    """Behind the other: lets through who knows the token, and bodies that are not too long."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, authenticator: Authenticator | None) -> None:
        self._app, self._settings, self._authenticator = app, settings, authenticator

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Deal with one request or WebSocket, as any ASGI application does."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        limit = self._settings.upload_megabytes if scope["path"] in _UPLOAD_PATHS else self._settings.body_megabytes
        refusal = await self._refuse(HTTPConnection(scope), limit)
        await (refusal or self._app)(scope, _limit_body(receive, limit), send)

    async def _refuse(self, request: HTTPConnection, limit: int) -> Response | None:
        """Answer a request without the token or with too long a body."""
        if self._authenticator is not None:
            refusal = await self._authenticator.refuse(request, _foreign_origin(request) is not None)
            if refusal is not None:
                return refusal
        length = request.headers.get("content-length", "0")
        if length.isdecimal() and len(length) <= 15 and int(length) <= limit << 20:
            return None
        return _refusal(413, f"more than {limit} MB are not taken", "the command line takes files of any size")


def _foreign_origin(request: HTTPConnection) -> str | None:
    """The site that a request comes from, where that is another one than this app."""
    host, origin = request.headers.get("host", ""), request.headers.get("origin")
    return None if origin in (None, f"http://{host}", f"https://{host}") else origin


def _limit_body(receive: Receive, megabytes: int) -> Receive:
    """Wrap `receive` so that it breaks off where a body is longer than allowed, however it is sent, or too slow."""
    size, is_complete, begun = 0, False, time.monotonic()

    async def receive_limited() -> Message:
        nonlocal size, is_complete
        end = begun + _PATIENCE_SECONDS + size / _SLOWEST_BYTES_PER_SECOND
        try:
            message = await asyncio.wait_for(receive(), None if is_complete else end - time.monotonic())
        except TimeoutError:
            raise HTTPException(408, "the request came too slowly", {"Connection": "close"}) from None
        size += len(message.get("body", b""))
        is_complete = not message.get("more_body", False)
        if size > megabytes << 20:
            raise HTTPException(413, f"more than {megabytes} MB are not taken")
        return message

    return receive_limited


def _refusal(status: int, error: str, hint: str) -> Response:
    headers = {"www-authenticate": "Bearer"} if status == 401 else None
    return JSONResponse({"error": error, "where": None, "hint": hint}, status, headers)

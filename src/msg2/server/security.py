"""The security of the app: which host, origin and token a request must have, and how many bytes it may send.

A web page from elsewhere can make a browser send requests to this address, also under a name of its own (DNS
rebinding). So the Host header must name this machine, and what browsers say of a request's origin must be this app.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from msg2.server.settings import ServerSettings

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_UPLOAD_PATH = "/api/data"
_MAX_DIGITS = 15

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; "
        "connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every answer; a page of a graph has a policy of its own, see `msg2.server.api.pages`."""


class SecurityMiddleware:
    """Around the whole app: lets a request through, or answers it with what is wrong with it."""

    def __init__(self, app: ASGIApp, settings: ServerSettings) -> None:
        self._app, self._settings = app, settings
        self._digest = hashlib.sha256((settings.token or "").encode()).hexdigest()
        self._cookie = f"msg2-{hashlib.sha256(self._digest.encode()).hexdigest()[:8]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Deal with one request, as any ASGI application does."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._settings.upload_megabytes if scope["path"] == _UPLOAD_PATH else self._settings.body_megabytes

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                answer_headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    answer_headers.setdefault(name, value)
            await send(message)

        app = self._refusal(scope, limit) or self._app
        await app(scope, _limit_body(receive, limit), answer)

    def _refusal(self, scope: Scope, limit: int) -> Response | None:
        """Make the response to a request that is not let through; None for one that is. `limit` is in megabytes."""
        headers = Headers(scope=scope)
        error = self._origin_error(scope, headers)
        if error is not None:
            return _error_response(403, error, "open the address that `msg2 serve` printed")
        if not self._is_authorized(scope, headers):
            if scope["method"] == "GET" and self._is_token(dict(_query_pairs(scope)).get("token", "")):
                return self._redirect_with_cookie(scope)
            hint = "open the address with ?token=…, or send the header `Authorization: Bearer …`"
            return _error_response(401, "this app wants to know its token", hint)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or len(length) > _MAX_DIGITS or int(length) > limit << 20:
            hint = "the command line takes files of any size"
            return _error_response(413, f"more than {limit} MB are not taken", hint)
        return None

    def _origin_error(self, scope: Scope, headers: Headers) -> str | None:
        """Say what is wrong with where the request comes from, or goes to; None for nothing."""
        host = headers.get("host", "")
        if self._settings.token is None and _host_name(host) not in _LOOPBACK:
            return "the Host header names another machine"
        origin = headers.get("origin")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return "the request comes from another site"
        if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
            return None
        followed = scope["method"] == "GET" and headers.get("sec-fetch-dest") == "document" and scope["path"] == "/"
        return None if followed else "the request comes from another site"  # a link may lead to the front door

    def _is_authorized(self, scope: Scope, headers: Headers) -> bool:
        """Tell whether the request has the token, in a header or a cookie; always, where there is none."""
        if self._settings.token is None:
            return True
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._is_token(token):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return False
        return cookie is not None and hmac.compare_digest(cookie.value.encode(), self._digest.encode())

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(hashlib.sha256(text.encode()).hexdigest(), self._digest)

    def _redirect_with_cookie(self, scope: Scope) -> Response:
        """Redirect to the same address without the token, which a cookie holds (its digest) from now on."""
        rest = urlencode([pair for pair in _query_pairs(scope) if pair[0] != "token"])
        path = "/" + scope["path"].lstrip("/")
        location = f"{path}?{rest}" if rest else path
        cookie = f"{self._cookie}={self._digest}; Path=/; HttpOnly; SameSite=Lax"
        headers = {"location": urlencode({"": location}, safe="/?=&%")[1:], "set-cookie": cookie}
        return Response(status_code=303, headers=headers)


def _query_pairs(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(scope["query_string"].decode("latin-1"))


def _host_name(host: str) -> str | None:
    """Read the name in a Host header, without the port."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _limit_body(receive: Receive, megabytes: int) -> Receive:
    """Wrap `receive` so that it breaks off where a body is longer than allowed, however it is sent."""
    size = 0

    async def receive_limited() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > megabytes << 20:
            raise HTTPException(413, f"more than {megabytes} MB are not taken")
        return message

    return receive_limited


def _error_response(status: int, error: str, hint: str) -> Response:
    body = json.dumps({"error": error, "where": None, "hint": hint})
    headers = {"www-authenticate": "Bearer"} if status == 401 else None
    return Response(body, status, headers, media_type="application/json")

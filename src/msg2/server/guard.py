"""Who may ask at all: the right host, no other site, the token, and no more bytes than allowed.

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
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from msg2.options import ServerOptions

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_UPLOAD = "/api/data"
_DIGITS = 15

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src blob:; "
        "connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Of every answer; a page of a graph has a policy of its own, see `msg2.server.pages`."""


class Guard:
    """Around the whole app: lets a request through, or answers it with what is wrong with it."""

    def __init__(self, app: ASGIApp, options: ServerOptions) -> None:
        self._app, self._options = app, options
        token = options.token or ""
        self._digest = hashlib.sha256(token.encode()).hexdigest()
        self._cookie = f"msg2-{hashlib.sha256(self._digest.encode()).hexdigest()[:8]}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Deal with one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                mine = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    mine.setdefault(name, value)
            await send(message)

        problem = self._foreign(scope, headers)
        if problem is not None:
            await _refuse(answer, 403, problem, "open the address that `msg2 serve` printed")
        elif not self._known(scope, headers):
            if scope["method"] == "GET" and self._is_token(dict(_query(scope)).get("token", "")):
                await self._welcome(scope, answer)
            else:
                hint = "open the address with ?token=…, or send the header `Authorization: Bearer …`"
                await _refuse(answer, 401, "this app wants to know its token", hint)
        else:
            limit = self._options.upload_megabytes if scope["path"] == _UPLOAD else self._options.body_megabytes
            length = headers.get("content-length", "0")
            if not length.isdecimal() or len(length) > _DIGITS or int(length) > limit << 20:
                await _refuse(answer, 413, f"more than {limit} MB are not taken", _OPTION)
            else:
                await self._app(scope, _counted(receive, limit), answer)

    def _foreign(self, scope: Scope, headers: Headers) -> str | None:
        """What is wrong with where the request comes from, or goes to; None for nothing."""
        host = headers.get("host", "")
        if self._options.token is None and _name(host) not in _LOOPBACK:
            return "the Host header names another machine"
        origin = headers.get("origin")
        if origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            return "the request comes from another site"
        if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
            return None
        followed = scope["method"] == "GET" and headers.get("sec-fetch-dest") == "document" and scope["path"] == "/"
        return None if followed else "the request comes from another site"  # a link may lead to the front door

    def _known(self, scope: Scope, headers: Headers) -> bool:
        """Whether the request has the token, in a header or a cookie; always, where there is none."""
        if self._options.token is None:
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

    async def _welcome(self, scope: Scope, send: Send) -> None:
        """The same address without the token, which a cookie holds (its digest) from now on."""
        rest = urlencode([pair for pair in _query(scope) if pair[0] != "token"])
        path = "/" + scope["path"].lstrip("/")
        location = f"{path}?{rest}" if rest else path
        cookie = f"{self._cookie}={self._digest}; Path=/; HttpOnly; SameSite=Lax"
        headers = [
            (b"location", urlencode({"": location}, safe="/?=&%")[1:].encode()),
            (b"set-cookie", cookie.encode()),
        ]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})


_OPTION = "the command line takes files of any size"


def _query(scope: Scope) -> list[tuple[str, str]]:
    return parse_qsl(scope["query_string"].decode("latin-1"))


def _name(host: str) -> str | None:
    """The name in a Host header, without the port."""
    try:
        return urlsplit(f"//{host}").hostname
    except ValueError:
        return None


def _counted(receive: Receive, megabytes: int) -> Receive:
    """`receive`, which breaks off where a body is longer than allowed, however it is sent."""
    size = 0

    async def counted() -> Message:
        nonlocal size
        message = await receive()
        size += len(message.get("body", b""))
        if size > megabytes << 20:
            raise HTTPException(413, f"more than {megabytes} MB are not taken")
        return message

    return counted


async def _refuse(send: Send, status: int, error: str, hint: str) -> None:
    body = json.dumps({"error": error, "where": None, "hint": hint}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})

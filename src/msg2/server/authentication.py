"""Who may use the app: whoever knows its token, which a browser trades for a session cookie at once.

A session is a random number with its HMAC under a secret of the folder, so it outlives a restart of the server, whose
token is another one every time. Whoever guesses waits: 0.02 s · 2ⁿ after n wrong guesses, at most 5 s.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from http.cookies import CookieError, SimpleCookie
from pathlib import Path

from starlette.datastructures import Headers

from msg2.errors import InputError
from msg2.files import write_whole

_SECRET_FILE = ".secret"
_TOKEN_BYTES = 24
_FIRST_DELAY, _LONGEST_DELAY = 0.02, 5.0
_FORGET_SECONDS = 60.0
"""Wrong guesses are forgotten after so long without another one."""


def new_token() -> str:
    """Make a token that nobody guesses."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


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
        file = folder / _SECRET_FILE
        if not file.is_file():
            write_whole(file, secrets.token_bytes(32))
        self._secret = file.read_bytes()
        # Browsers do not tell ports apart: apps on the same machine have cookies of different names.
        self._cookie = f"msg2-{hashlib.sha256(str(folder.resolve()).encode(errors='replace')).hexdigest()[:8]}"
        self._delay, self._last_wrong = 0.0, 0.0

    def is_token(self, text: str) -> bool:
        """Tell whether a text is the token, in a time that does not depend on the text."""
        return hmac.compare_digest(text.encode(), self._token.encode())

    def has_session(self, headers: Headers) -> bool:
        """Tell whether the cookie of a request is a session of this app."""
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(self._cookie)
        except CookieError:
            return False
        number, _, signature = (cookie.value if cookie else "").partition(".")
        return hmac.compare_digest(signature.encode(), self._sign(number).encode())

    def new_session(self) -> str:
        """Make the value of a `Set-Cookie` header that begins a session."""
        number = secrets.token_hex(16)
        return f"{self._cookie}={number}.{self._sign(number)}; Path=/; HttpOnly; SameSite=Lax"

    def delay_of_guess(self) -> float:
        """Count a wrong guess; in seconds, how long its answer has to wait."""
        now = time.monotonic()
        grown = 2 * self._delay if now - self._last_wrong < _FORGET_SECONDS else 0.0
        self._delay, self._last_wrong = min(max(grown, _FIRST_DELAY), _LONGEST_DELAY), now
        return self._delay

    def _sign(self, number: str) -> str:
        return hmac.new(self._secret, number.encode(), hashlib.sha256).hexdigest()

"""Settings of the local web app: where it keeps its files, who may reach it, and the limits of what it does."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import Field

from msg2.errors import require
from msg2.options import Count, Positive, options_class
from msg2.text import short_repr

LOOPBACK_HOSTS = ("127.0.0.1", "::1", "localhost")
"""The names of this machine, which other machines cannot reach."""
_ORIGIN = re.compile(
    r"(?!https://.*:443$|http://.*:80$)[a-z][a-z0-9+.-]*://([a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?"
)


@options_class
class ServerSettings:
    """The local web app (`msg2 serve`). One process works on one thing, and none takes more than its share."""

    folder: Path = Path("msg2-work")
    """Where uploads, jobs and graphs are kept, as plain files."""
    host: str = "127.0.0.1"
    """The address to listen at; one that others can reach needs a token."""
    port: Annotated[int, Field(ge=0, le=65535)] = 8765
    """0 takes any that is free."""
    token: str | None = None
    """What a visitor has to know; None lets everybody in who can reach the address, other users of the machine too."""
    allowed_origins: tuple[str, ...] = ()
    """Other sites whose pages may use the API, as `https://kitchen.example`; they need the token, too."""
    workers: Count = 2
    """Jobs at the same time."""
    answers: Count = 8
    """Other requests at the same time; each has a process of its own, so that slow ones do not hold up the rest."""
    job_seconds: Positive = 600.0
    """A job that takes longer, or the reading of an upload, is ended."""
    answer_seconds: Positive = 30.0
    """A question of the JSON API that takes longer is ended."""
    megabytes: Count = 4096
    """Of address space, for one process."""
    upload_megabytes: Count = 200
    """The largest upload."""
    unpacked_megabytes: int = 1000
    """The most that the files of an uploaded archive may hold together."""
    body_megabytes: int = 20
    """The largest body of any other request."""
    waiting: int = 1000
    """Jobs that may wait; more are turned away."""
    runs: int = 1000
    """Live runs that may be kept; more are turned away."""
    run_events: int = 1000
    """Events that one run may have."""
    models: Count = 8
    """Graphs, each with its data, that live runs are followed with at the same time; each has a process of its own."""
    listeners: int = 100
    """Streams and sockets of answers at the same time."""

    def __post_init__(self) -> None:
        token = self.token
        usable = token is None or (len(token) >= 16 and token.isascii() and token.isprintable() and " " not in token)
        require(usable, "the token must be 16 or more letters and digits, such as from `openssl rand -hex 16`")
        needs_token = f"at the address {self.host} others can reach the app: this needs a token"
        require(self.host in LOOPBACK_HOSTS or token is not None, needs_token)
        for origin in self.allowed_origins:
            what = f"{short_repr(origin)} is no origin as browsers send it"
            hint = "an origin is such as https://kitchen.example: no path, no usual port, small letters"
            require(_ORIGIN.fullmatch(origin), what, hint=hint)

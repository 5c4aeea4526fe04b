"""`msg2 serve`: the local web app."""

import os
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

from msg2.cli import console
from msg2.cli.flags import argument, option, switch, usage_error_if
from msg2.errors import optional_dependency
from msg2.files import write_together
from msg2.server.settings import ServerSettings

_DEFAULT = ServerSettings()
_TOKEN_VARIABLE = "MSG2_TOKEN"
_TOKEN_HELP = (
    f"A file with the token, 16 or more characters; also from the environment variable {_TOKEN_VARIABLE}. By default "
    "it is a new one at every start."
)
_ORIGIN_HELP = (
    "A site whose pages may use the API, such as https://kitchen.example; they need the token, too. Repeatable."
)


def serve(
    paths: Annotated[list[Path] | None, argument("DATA|GRAPH", "What the app is to begin with.")] = None,
    folder: Annotated[Path, option("DIR", "Where all work is kept, as plain files.")] = _DEFAULT.folder,
    host: Annotated[str, option("ADDRESS", "Where to listen; by default for this machine only.")] = _DEFAULT.host,
    port: Annotated[int, option("N", "0 takes any that is free.", min=0, max=65535)] = _DEFAULT.port,
    token_file: Annotated[Path | None, option("FILE", _TOKEN_HELP)] = None,
    no_token: Annotated[bool, switch("--no-token", "Let in everybody who can reach the address.")] = False,
    allow_origin: Annotated[list[str] | None, option("ORIGIN", _ORIGIN_HELP)] = None,
    no_browser: Annotated[bool, switch("--no-browser", "Only print the address.")] = False,
) -> None:
    """The web app on this machine: learn graphs from your data, follow runs, draw graphs by hand, correct labels.

    It opens in the browser, at an address with a token that lets in nobody else. Everything is kept in one folder, and
    what was being worked on is taken up at the next start.

    Example: `msg2 serve steps.csv --folder work`
    """
    with optional_dependency("the web app", "app"):
        from msg2.server import web_app
        from msg2.server.security import new_token, read_token
        from msg2.server.workspace import Workspace
    usage_error_if(no_token and token_file is not None, "--no-token and --token-file contradict each other")
    known = os.environ.get(_TOKEN_VARIABLE) if token_file is None else read_token(token_file)
    token = known or new_token()
    with console.usage_errors():
        settings = ServerSettings(
            folder=folder, host=host, port=port, token=None if no_token else token,
            allowed_origins=tuple(allow_origin or ()),
        )  # fmt: skip
    console.print_logs_at_once()
    with _orderly(), Workspace(settings) as workspace, web_app.listening_socket(settings) as listening:
        for path in paths or ():
            workspace.add_path(path)
        name = _own_address() if host in ("0.0.0.0", "::") else f"[{host}]" if ":" in host else host
        query = "" if settings.token is None else f"?token={quote(settings.token, safe='')}"
        address = f"http://{name}:{listening.getsockname()[1]}/{query}"
        server = web_app.AppServer(workspace)
        with server.capture_signals(), _files_with_token(settings, address) as page:
            shown = address.partition("?")[0] if known else address  # what is a secret elsewhere stays one in logs
            console.print_line(f"msg2 is at {shown} and keeps its work in {folder}; Ctrl-C ends it")
            console.out.file.flush()
            # Without a display, a browser would open in this terminal.
            display = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
            if not no_browser and (display or not sys.platform.startswith("linux")):
                threading.Thread(target=webbrowser.open, args=(page.resolve().as_uri(),), daemon=True).start()
            server.run(sockets=[listening])


def _own_address() -> str:
    """Return the address under which other machines reach this one; no packet is sent for that."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # an address of nobody (RFC 5737): only the way to it is looked up
            return str(probe.getsockname()[0])
        except OSError:  # there is no network
            return "127.0.0.1"


@contextmanager
def _orderly() -> Iterator[None]:
    """Make files that only this user can read; and let SIGTERM undo what the server has begun, and exit 0."""
    handler, mask = signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)), os.umask(0o077)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, handler)
        os.umask(mask)


@contextmanager
def _files_with_token(settings: ServerSettings, address: str) -> Iterator[Path]:
    """Write the token for programs and a page that opens the address, since everyone can read command lines."""
    page = settings.folder / "open.html"
    files = {page: f'<!DOCTYPE html><title>msg2</title><meta http-equiv="refresh" content="0;url={address}">\n'}
    if settings.token is not None:
        files[settings.folder / "token"] = f"{settings.token}\n"
    write_together(files)
    try:
        yield page
    finally:
        for file in files:
            file.unlink(missing_ok=True)

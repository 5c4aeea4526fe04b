"""`msg2 serve`: the local web app."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from msg2.cli import console
from msg2.extras import optional_dependency
from msg2.server.settings import ServerSettings

_DEFAULT = ServerSettings()


def serve(
    paths: Annotated[
        list[Path] | None, typer.Argument(metavar="DATA|GRAPH", help="What the app is to begin with.")
    ] = None,
    folder: Annotated[Path, typer.Option(metavar="DIR", help="Where all work is kept, as plain files.")] = (
        _DEFAULT.folder
    ),
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Another address than this machine's own needs a token.")
    ] = _DEFAULT.host,
    port: Annotated[int, typer.Option(metavar="N", min=0, max=65535, help="0 takes any that is free.")] = _DEFAULT.port,
    token: Annotated[
        str | None,
        typer.Option(metavar="TEXT", envvar="MSG2_TOKEN", help="What a visitor has to know: 16 or more characters."),
    ] = None,
) -> None:
    """The web app on this machine: learn graphs from your data, follow runs, draw graphs by hand, correct labels.

    Everything is kept in one folder, and what was being worked on is taken up at the next start.

    Example: `msg2 serve steps.csv --folder work`
    """
    with console.usage_errors():
        settings = ServerSettings(folder=folder, host=host, port=port, token=token)
    with optional_dependency("the web app", "server"):
        from msg2.server import web_app
        from msg2.server.workspace import Workspace
    console.print_logs_at_once()
    with Workspace(settings) as workspace, web_app.listening_socket(settings) as listening:
        for path in paths or ():
            workspace.add_path(path)
        name = f"[{host}]" if ":" in host else host
        address = f"http://{name}:{listening.getsockname()[1]}/{'' if token is None else '?token=…'}"
        console.print_line(f"msg2 is at {address} and keeps its work in {folder}; Ctrl-C ends it")
        console.out.file.flush()
        web_app.serve(workspace, listening)

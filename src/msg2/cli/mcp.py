"""`msg2 mcp`: tools for agents."""

from pathlib import Path
from typing import Annotated

from msg2.cli.flags import option


def mcp(
    root: Annotated[Path, option("DIR", "The folder of all files that agents may read and write.")] = Path(),
    http: Annotated[int | None, option("PORT", "Serve HTTP on this machine, not stdio.", min=1, max=65535)] = None,
) -> None:
    """Serve tools for language-model agents (MCP): describe, infer, explain, check, plan, write, and follow a run.

    An agent starts it itself and talks to it on standard input and output; with --http it listens for agents.

    Examples: `msg2 mcp --root work`, `msg2 mcp --root work --http 8000`
    """
    from msg2.agent_tools import make_server

    server = make_server(root)
    if http is None:
        server.run()
    else:
        server.run("streamable-http", port=http)

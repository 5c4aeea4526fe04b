"""Tools for agents, by the SDK's own client: from labels to a graph, its questions, and a live run."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from msg2.agent_tools import make_server
from msg2.errors import InputError, MissingExtraError

mcp = pytest.importorskip("mcp")
CHAINS = [["boil water", "grind beans", "pour water", "stir"], ["grind beans", "boil water", "pour water", "stir"]] * 20
CHAINS[6] = ["pour water", "boil water", "grind beans", "stir"]
LABELS = "video,step,start,end\n" + "".join(
    f"video {number},{step},{10 * place},{10 * place + 8}\n"
    for number, chain in enumerate(CHAINS, start=1)
    for place, step in enumerate(chain)
)
Call = Callable[..., Awaitable[dict[str, Any]]]


def talk(server: Any, conversation: Callable[[Call], Awaitable[None]]) -> None:
    """Let a client of the SDK talk to a server; a tool that fails is a `RuntimeError`."""

    async def run() -> None:
        async with mcp.Client(server) as client:

            async def call(tool: str, **arguments: Any) -> dict[str, Any]:
                result = await client.call_tool(tool, arguments)
                if result.is_error:
                    raise RuntimeError(result.content[0].text)
                answer: dict[str, Any] = result.structured_content
                return answer

            await conversation(call)

    asyncio.run(run())


async def walk(call: Call) -> None:
    await call("upload", path="labels.csv", content=LABELS)
    described = await call("describe", data="labels.csv")
    assert described["tasks"][0]["videos"] == 40
    learned = await call("infer", data="labels.csv", graph="graph.json")
    assert "pour water  needs  'boil water' (39 of 40) and 'grind beans' (39 of 40 videos)" in learned["rules"]
    explained = await call("explain", graph="graph.json", step="stir")
    assert [edge["before"] for edge in explained["edges"]] == ["pour water"]
    # "What did video 7 do wrong?"
    wrong = await call("check", graph="graph.json", data="labels.csv", video="video 7")
    assert wrong["accused"] == ["video 7"]
    assert any("pour water" in mistake["words"] for mistake in wrong["mistakes"])
    assert (await call("check", graph="graph.json", data="labels.csv", video="video 1"))["mistakes"] == []
    after = await call("next_steps", graph="graph.json", done=["boil water", "grind beans"])
    assert after["next"][0]["step"] == "pour water"
    plans = await call("plan", graph="graph.json", goal="stir", done=["boil water"])
    assert plans["plans"][0]["steps"] == ["grind beans", "pour water", "stir"]
    await call("write", graph="graph.json", output="procedure.md")
    # A live run.
    begun = await call("run_begin", graph="graph.json", data="labels.csv")
    run = begun["run"]
    assert {step["step"] for step in begun["next"][:2]} == {"boil water", "grind beans"}
    assert not (await call("run_did", run=run, step="boil water", at=4.0))["report"]["mistake"]
    assert (await call("run_did", run=run, step="pour water", at=9.0))["report"]["mistake"]
    seen = await call("run_saw", run=run, steps={"grind beans": 0.9, "stir": 0.1}, at=15.0)
    assert seen["done"]["grind beans"] > 0.5
    assert (await call("run_ask", run=run, goal="stir"))["plans"][0]["steps"][-1] == "stir"
    assert [gap["step"] for gap in (await call("run_ask", run=run, ended=True))["missing"]] == ["stir"]


def test_an_agent_walks_from_labels_to_a_live_run(tmp_path: Path) -> None:
    talk(make_server(tmp_path), walk)
    assert {path.name for path in tmp_path.iterdir()} == {"labels.csv", "graph.json", "procedure.md"}


def test_what_goes_wrong_is_said_and_nothing_is_outside_of_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "secret.csv").write_text(LABELS)
    (folder / "link.csv").symlink_to(tmp_path / "secret.csv")

    async def misuse(call: Call) -> None:
        for path in ("../secret.csv", str(tmp_path / "secret.csv"), "link.csv", "a/../../secret.csv"):
            with pytest.raises(RuntimeError, match="is outside of the folder that msg2 may use"):
                await call("describe", data=path)
            with pytest.raises(RuntimeError, match="is outside"):
                await call("upload", path=path, content="x")
        with pytest.raises(RuntimeError, match=r"none\.csv"):
            await call("infer", data="none.csv", graph="graph.json")
        with pytest.raises(RuntimeError, match="there is no run 'run-9'"):
            await call("run_ask", run="run-9")

    talk(make_server(folder), misuse)
    assert (tmp_path / "secret.csv").read_text() == LABELS
    with pytest.raises(InputError, match="is no folder"):
        make_server(tmp_path / "none")


def test_every_tool_says_what_it_does_and_takes(tmp_path: Path) -> None:
    async def list_tools() -> None:
        async with mcp.Client(make_server(tmp_path)) as client:
            tools = (await client.list_tools()).tools
        assert {"describe", "infer", "explain", "next_steps", "check", "plan", "write"} <= {tool.name for tool in tools}
        assert {"run_begin", "run_did", "run_saw", "run_ask"} <= {tool.name for tool in tools}
        for tool in tools:
            assert tool.description, tool.name
            for name, value in tool.input_schema["properties"].items():
                assert {"type", "anyOf"} & value.keys(), (tool.name, name)

    asyncio.run(list_tools())


@pytest.mark.slow
def test_it_speaks_on_stdio_and_http(tmp_path: Path) -> None:
    program = "import sys; sys.argv = ['msg2', 'mcp', *sys.argv[1:]]; from msg2.cli import main; main()"
    command = [sys.executable, "-c", program, "--root", str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    talk(mcp.StdioServerParameters(command=command[0], args=command[1:], env=environment), walk)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with subprocess.Popen([*command, "--http", str(port)], env=environment, stderr=subprocess.DEVNULL) as served:
        try:
            for _ in range(300):
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
                time.sleep(0.1)
            talk(f"http://127.0.0.1:{port}/mcp", walk)
        finally:
            served.terminate()


def test_without_the_sdk_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server.mcpserver", None)
    with pytest.raises((MissingExtraError, InputError), match="tools for agents needs"):
        make_server(tmp_path)

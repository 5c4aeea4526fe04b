"""msg2 as tools for agents, by the Model Context Protocol: learn a graph, ask it, check videos, follow a run.

Each tool is one function of the library, on files below one folder that it cannot leave.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from pydantic import Field

from msg2.assist import Assistant, check, forecast
from msg2.assist.events import answer_event
from msg2.errors import InputError, optional_dependency, require
from msg2.files import write_whole
from msg2.formats import read_graph, summarize
from msg2.graph.evidence import related_pairs
from msg2.inference import infer
from msg2.options import fields_to_json
from msg2.text import short_repr

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

__all__ = ["make_server"]

ToolAnswer: TypeAlias = dict[str, object]
InFolder: TypeAlias = Annotated[str, Field(description="A path below the folder that msg2 may use")]
NamedStep: TypeAlias = Annotated[str, Field(description="The name of a step, as the graph has it")]
Seconds: TypeAlias = Annotated[float | None, Field(description="When, in seconds on the clock of the run")]
_INSTRUCTIONS = (
    "msg2 learns from labelled videos or logs of a task which step needs which. Upload labels (CSV: video, step and "
    "maybe start, end), infer a graph, then explain it, check videos, plan, write a procedure, or follow a run live."
)
_MOST_RUNS = 100


@dataclass(frozen=True)
class AgentTools:
    """The tools, the folder of their files, and the runs that are followed."""

    root: Path
    runs: dict[str, Assistant] = field(default_factory=dict)

    def upload(self, path: InFolder, content: Annotated[str, Field(description="Text of the file")]) -> ToolAnswer:
        """Write a text file, such as a table of labels."""
        file = self._inside(path)
        write_whole(file, content)
        return {"path": path, "characters": len(content)}

    def describe(self, data: InFolder) -> ToolAnswer:
        """Say what is in labels or logs, and what looks wrong with them."""
        return summarize(self._inside(data)).to_json()

    def infer(
        self, graph: InFolder, data: InFolder, task: str | None = None,
        absent: Literal["auto", "unknown", "skipped"] = "auto",
    ) -> ToolAnswer:  # fmt: skip
        """Learn the graph of a task from labels or a log, and write it to a graph file."""
        file = self._inside(graph)
        learned = infer(self._inside(data), task=task, absent=absent)
        learned.save(file)
        return {"graph": graph, "steps": list(learned.steps), "rules": learned.explain().splitlines()}

    def explain(self, graph: InFolder, step: NamedStep | None = None) -> ToolAnswer:
        """List the rules of a graph, or of one step, in words, and every edge with what the videos say for it."""
        known = read_graph(self._inside(graph))
        pairs = [pair for pair in related_pairs(known) if step is None or step in (pair.before, pair.after)]
        return {"rules": known.explain(step).splitlines(), "edges": [fields_to_json(pair) for pair in pairs]}

    def next_steps(self, graph: InFolder, done: Sequence[NamedStep], data: InFolder | None = None) -> ToolAnswer:
        """Say what may come next after some steps; with data, how probably."""
        videos = None if data is None else self._inside(data)
        return forecast(read_graph(self._inside(graph)), done, None, videos, None).to_json()

    def check(self, graph: InFolder, data: InFolder, video: str | None = None) -> ToolAnswer:
        """Say what went wrong in each video, or in one of them: every mistake with its probability, in words."""
        report = check(read_graph(self._inside(graph)), self._inside(data))
        mistakes = [mistake for mistake in report.mistakes if video in (None, mistake.video)]
        return {
            "accused": [name for name in report.accused if video in (None, name)],
            "mistakes": [{**mistake.to_json(), "words": mistake.to_english()} for mistake in mistakes],
        }

    def plan(self, graph: InFolder, goal: NamedStep, done: Sequence[NamedStep] = (), k: int = 3) -> ToolAnswer:
        """Find the shortest ways from what is done to a goal."""
        assistant = Assistant(read_graph(self._inside(graph)))
        for name in done:
            assistant.accept(name)
        return {"plans": [way.to_json() for way in assistant.plan(goal, None, k)]}

    def write(self, graph: InFolder, output: InFolder) -> ToolAnswer:
        """Write a graph as a procedure for people: .md, .html, .docx or .pdf."""
        read_graph(self._inside(graph)).write(self._inside(output))
        return {"path": output}

    def run_begin(self, graph: InFolder, data: InFolder | None = None) -> ToolAnswer:
        """Begin to follow a run of a task live; the answer names the run for the other tools."""
        require(len(self.runs) < _MOST_RUNS, f"{_MOST_RUNS} runs are followed already", hint="start msg2 mcp anew")
        videos = None if data is None else self._inside(data)
        name = f"run-{len(self.runs) + 1}"
        self.runs[name] = Assistant(read_graph(self._inside(graph)), videos)
        return {"run": name, **answer_event(self.runs[name], {"ask": True})}

    def run_did(self, run: str, step: NamedStep, at: Seconds = None) -> ToolAnswer:
        """Tell that a step was done: whether that was a mistake, what comes next, and what is missing."""
        return self._tell(run, {"did": step} | ({} if at is None else {"at": at}))

    def run_saw(self, run: str, steps: dict[NamedStep, float], at: Seconds = None) -> ToolAnswer:
        """Tell what a recogniser saw: how probably it was each step."""
        return self._tell(run, {"saw": steps} | ({} if at is None else {"at": at}))

    def run_ask(self, run: str, goal: NamedStep | None = None, ended: bool = False) -> ToolAnswer:
        """Ask how a run stands: alarms, next steps, what is missing (also where it has ended), a plan to a goal."""
        return self._tell(run, {"ask": True, "ended": ended} if goal is None else {"plan": goal})

    def _tell(self, run: str, event: ToolAnswer) -> ToolAnswer:
        if run not in self.runs:
            raise InputError(f"there is no run {short_repr(run)}", hint="run_begin begins one")
        return answer_event(self.runs[run], event)

    def _inside(self, path: str) -> Path:
        """The file of a path below the root; links that lead out are followed before that is decided."""
        root = self.root.resolve()
        file = (root / path).resolve()
        require(file.is_relative_to(root), f"{short_repr(path)} is outside of the folder that msg2 may use")
        return file


def make_server(root: str | Path) -> MCPServer:
    """Make a server of the tools for agents.

    Parameters
    ----------
    root : str or Path
        The folder of all files that the tools read and write.

    Returns
    -------
    MCPServer
        Of the official SDK: `run()` speaks on standard input and output, `run("streamable-http")` by HTTP.

    Raises
    ------
    InputError
        Where there is no such folder, or the SDK is not installed.
    """
    require(Path(root).is_dir(), "is no folder", where=root)
    with optional_dependency("tools for agents", "mcp"):
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError

    def telling_errors(tool: Callable[..., ToolAnswer]) -> Callable[..., ToolAnswer]:
        @wraps(tool)
        def call(*values: object, **named: object) -> ToolAnswer:
            try:
                return tool(*values, **named)
            except InputError as error:  # of any other error, an agent is told only that there was one
                raise ToolError(str(error)) from None

        return call

    server, tools = MCPServer("msg2", instructions=_INSTRUCTIONS, log_level="WARNING"), AgentTools(Path(root))
    every: tuple[Callable[..., ToolAnswer], ...] = (
        tools.upload, tools.describe, tools.infer, tools.explain, tools.next_steps, tools.check, tools.plan,
        tools.write, tools.run_begin, tools.run_did, tools.run_saw, tools.run_ask,
    )  # fmt: skip
    for tool in every:
        server.add_tool(telling_errors(tool))
    return server

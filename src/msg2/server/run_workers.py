"""The worker of live runs: it has learned from one graph and one dataset, and answers the events of all their runs.

It is made in a process of its own, see `msg2.server.resident_process`. What is kept of a run comes with every question,
so that nothing is lost where the process ends.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msg2.assist.assistant import Assistant
from msg2.assist.events import answer_event
from msg2.errors import InputError
from msg2.formats import read_graph
from msg2.formats.reading import choose_task
from msg2.options import fields_to_json
from msg2.server.dataset_workers import read_tasks
from msg2.server.schemas import DatasetRecord

_MAX_REMEMBERED = 32
"""Runs that need not be replayed when they are asked again."""


class RunWorker:
    """Answers questions about runs of one graph."""

    def __init__(
        self, graph: Path, data: Path | None, dataset: DatasetRecord | None, most: int, reading: Mapping[str, Any]
    ) -> None:
        loaded, task = read_graph(graph), None
        if data is not None and dataset is not None:
            tasks = read_tasks(data, dataset, repeats="keep", **reading)
            task = tasks[0] if len(tasks) == 1 else choose_task(tasks, loaded.task, data)
        self._first, self._most = Assistant(loaded, task), most
        answer_event(self._first, {"ask": True})  # learns all that it needs, so that no event waits for that
        self._runs: OrderedDict[str, Assistant] = OrderedDict()

    def __call__(self, run: str, saved: dict[str, Any] | None, event: dict[str, Any], log: bool) -> dict[str, Any]:
        """Tell a run what happened."""
        assistant = self._take(run, saved)
        if len(assistant.log()) >= self._most and not event.keys().isdisjoint(("did", "saw", "accept")):
            what = f"the run has {self._most:,} events, and takes no more"
            raise InputError(what, hint="undo some, or open another run")
        answer = answer_event(assistant, event)
        self._remember(run, assistant)
        told = [fields_to_json(one) for one in assistant.log()[0 if log else -1 :]]
        last = told[-1] if told else None
        result: dict[str, Any] = {"answer": {**answer, "last": last}, "saved": assistant.to_json()}
        if log:
            result["log"] = told
        if saved is None:
            graph = assistant.graph
            about = {"task": graph.task, "steps": list(graph.steps), "limitations": assistant.limitations()}
            result["about"] = about
        return result

    def _take(self, run: str, saved: dict[str, Any] | None) -> Assistant:
        """The run where it was left; it is remembered again only once it has answered."""
        remembered = self._runs.pop(run, None)
        if saved is None:
            return self._first.new_run()
        if remembered is not None and remembered.to_json() == saved:
            return remembered
        assistant = self._first.new_run()
        if saved.get("graph") != assistant.to_json()["graph"]:
            raise InputError("the graph has changed since the run began", hint="open another run")
        try:
            assistant.replay(saved["events"])
        except (KeyError, TypeError, AttributeError):
            raise InputError("is damaged: its events cannot be read", where=f"runs/{run}") from None
        return assistant

    def _remember(self, run: str, assistant: Assistant) -> None:
        self._runs[run] = assistant
        while len(self._runs) > _MAX_REMEMBERED:
            self._runs.popitem(last=False)

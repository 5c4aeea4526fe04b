"""`msg2 watch`: a run of the task, live: events as JSON lines on standard input, answers on standard output."""

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, cast

from msg2.assist import Assistant
from msg2.assist.events import answer_event
from msg2.assist.mistakes import ALARM
from msg2.cli import console, flags
from msg2.cli.flags import option, usage_error_if
from msg2.errors import InputError
from msg2.formats import read_graph
from msg2.task import Absent

_THRESHOLD = f"Warn from this probability of a mistake on. Default: {ALARM:g}."
_ALARM_COST = "What a false alarm costs, where a missed mistake costs 1: sets the threshold."
_ABSENT = "What is not told was not done, or may have been: the one who watches may miss it."


@flags.reads_data("overlap", "order")
def watch(
    graph: flags.GraphFile,
    reading: flags.GivenOptions,
    data: Annotated[Path | None, option("DATA", "Videos to learn from: probabilities, mistakes, time left.")] = None,
    save: Annotated[Path | None, option("FILE", "Keep the run in this file, and go on with it if it is there.")] = None,
    k: Annotated[int, option("N", "Next steps in an answer, at most.", "-k", min=1)] = 5,
    threshold: Annotated[float | None, option("P", _THRESHOLD, min=0, max=1)] = None,
    alarm_cost: Annotated[float | None, option("C", _ALARM_COST)] = None,
    absent: Annotated[Absent, option(None, _ABSENT)] = "skipped",
    missed: Annotated[float | None, option("P", "How often the recogniser misses a step. Default: estimated.")] = None,
    confusion: Annotated[
        Path | None, option("CSV", "How often the recogniser takes a step (row) for another (column).")
    ] = None,
    window: Annotated[float, option("SECONDS", "How late an event may come.", min=0)] = 30.0,
) -> None:
    """Watch one run of the task: an event per line in, an answer per line out, both JSON.

    Events: `{"did": "whisk", "at": 12.3}`, `{"began": "dip"}`, `{"saw": {"whisk": 0.7, "pour": 0.3}}`,
    `{"observe": {"whisk": 0.9}, "at": 3.2}` (frames), `{"accept": "whisk"}`, `{"undo": true}`, `{"pause": true}`,
    `{"resume": true}`, `{"plan": "serve"}`, `{"ask": true}`. The first line out is the answer before anything has
    happened. A line that cannot be understood is answered with `error`, and changes nothing.

    Example: `msg2 watch graph.json --data steps.csv < events.jsonl`
    """
    usage_error_if(None not in (threshold, alarm_cost), "--threshold and --alarm-cost contradict each other")
    learned = read_graph(graph)
    videos = flags.read_if_given(learned, data, reading, repeats="keep")
    begin: Callable[..., Assistant] = Assistant
    if save is not None and save.exists():
        begin = partial(Assistant.load, save)
    with console.progress_bar("learning"):
        assistant = begin(
            learned, videos, threshold=threshold, alarm_cost=alarm_cost, absent=absent, missed=missed,
            confusion=confusion, window=window, log=save,
        )  # fmt: skip
    _print_answer({"limitations": assistant.limitations(), **answer_event(assistant, {"ask": True}, k)})
    lines = () if sys.stdin is None else getattr(sys.stdin, "buffer", sys.stdin)  # a daemon may have closed it
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            answer = answer_event(assistant, _parse(line), k)
        except InputError as error:
            _print_answer({"error": error.what, "hint": error.hint, "line": number})
            continue
        _print_answer(answer)


def _parse(line: bytes | str) -> object:
    try:
        text = line if isinstance(line, str) else line.decode("utf-8")
        return cast(object, json.loads(text.removeprefix("\ufeff")))
    except (ValueError, RecursionError):
        raise InputError("the line is no JSON", hint='an event is such as {"did": "whisk", "at": 12.3}') from None


def _print_answer(answer: Mapping[str, object]) -> None:
    console.print_line(json.dumps(answer, ensure_ascii=False))
    sys.stdout.flush()

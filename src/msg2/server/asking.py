"""The JSON API for programs: plain functions of graphs and labels, which keep nothing."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, TypeAlias

from fastapi import APIRouter, Depends, Request

from msg2 import drawing
from msg2.inference import DEFAULT, METHODS
from msg2.server import chores
from msg2.server.desk import Desk
from msg2.server.models import Check, Drawing, Infer, Next, Options
from msg2.server.process import Chore
from msg2.server.records import Choices, Picture, Ranking
from msg2.worlds import export

router = APIRouter(prefix="/api", tags=["questions"])


def the_desk(request: Request) -> Desk:
    """The desk of the app that was asked."""
    desk: Desk = request.app.state.desk
    return desk


TheDesk: TypeAlias = Annotated[Desk, Depends(the_desk)]


@router.post("/infer")
def infer(asked: Infer, desk: TheDesk) -> dict[str, Any]:
    """The graph of these labels: the content of a graph file."""
    return _about_labels(desk, chores.infer, asked, asked.labels)


@router.post("/next")
def next_steps(asked: Next, desk: TheDesk) -> Ranking:
    """What comes next after the steps that are done."""
    return Ranking.model_validate(desk.ask(chores.next_steps, asked.graph, asked.done, asked.ranker).result)


@router.post("/check")
def check(asked: Check, desk: TheDesk) -> dict[str, Any]:
    """Every step that began before its precondition held, and the steps that were skipped; as `msg2 check --json`."""
    return _about_labels(desk, chores.check, asked.graph, asked.labels)


@router.post("/draw")
def draw(asked: Drawing, desk: TheDesk) -> Picture:
    """The picture of a graph; a cycle is refused, and named."""
    return Picture.model_validate(desk.ask(chores.draw, asked.graph).result)


@router.get("/choices")
def choices() -> Choices:
    """What there is to choose from."""
    offered = {
        name: {option: value for option, value in asdict(method.options()).items() if option in Options.model_fields}
        for name, method in METHODS.items()
    }
    graphs, labels = ([suffix[1:] for suffix in suffixes] for suffixes in (drawing.SUFFIXES, export.SUFFIXES))
    return Choices(methods=offered, default=DEFAULT.method, graph_formats=graphs, label_formats=labels)


def _about_labels(desk: Desk, chore: Chore, *arguments: Any) -> dict[str, Any]:
    """The answer of a chore that takes, last, where it may write the labels that came with the question."""
    with desk.scratch() as folder:
        path = folder / "labels.jsonl"
        answer = desk.ask(chore, *arguments, path, translate=lambda text: text.replace(str(path), "labels"))
    result: dict[str, Any] = answer.result
    return result

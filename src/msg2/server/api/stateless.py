"""The JSON API for programs: plain functions of graphs, labels and files, which keep nothing."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, cast

from fastapi import APIRouter, Query, Request
from starlette.concurrency import run_in_threadpool

from msg2 import drawing
from msg2.formats.registry import WRITE_SUFFIXES
from msg2.inference import DEFAULT_METHOD, METHODS, Method
from msg2.options import option_specs
from msg2.server import graph_workers, schemas
from msg2.server.api.dependencies import WorkspaceDependency
from msg2.server.api.file_transfer import UPLOAD_SCHEMA, save_body
from msg2.server.sandbox import WorkerTask
from msg2.server.workspace import Workspace

router = APIRouter(prefix="/api", tags=["questions"])


@router.post("/infer")
def infer_graph(request: schemas.InferRequest, workspace: WorkspaceDependency) -> dict[str, Any]:
    """The graph of these labels: the content of a graph file."""
    request.parse_options()
    request.constraints()
    return _run_on_labels(workspace, graph_workers.infer_graph, request, request.labels)


@router.post("/preview", openapi_extra=UPLOAD_SCHEMA)
async def preview_upload(
    request: Request, query: Annotated[schemas.UploadQuery, Query()], workspace: WorkspaceDependency
) -> schemas.TablePreviewResponse | None:
    """The columns and first rows of a table, which is the body of the request and is not kept; null of other data."""
    with workspace.scratch_folder() as folder:
        path = await save_body(request, folder / "table")
        found = await run_in_threadpool(workspace.preview_upload, query, path)
    return None if found is None else schemas.TablePreviewResponse.model_validate(found)


@router.post("/next")
def rank_next_steps(request: schemas.NextStepsRequest, workspace: WorkspaceDependency) -> schemas.NextStepsResponse:
    """Rank what comes next. The graph alone gives the order; labelled videos add probabilities and seconds."""
    asked = (request.graph, request.done, request.ranker, request.labels)
    return schemas.NextStepsResponse.model_validate(_run_on_labels(workspace, graph_workers.rank_next_steps, *asked))


@router.post("/check")
def check_labels(request: schemas.CheckRequest, workspace: WorkspaceDependency) -> dict[str, Any]:
    """Every step that began before its precondition held, and the steps that were skipped; as `msg2 check --json`."""
    return _run_on_labels(workspace, graph_workers.check_labels, request.graph, request.labels)


@router.post("/draw")
def draw_graph(request: schemas.DrawRequest, workspace: WorkspaceDependency) -> schemas.DrawResponse:
    """The diagram of a graph; a cycle of needs and order is refused, and named."""
    return schemas.DrawResponse.model_validate(workspace.sandbox.run(graph_workers.draw_graph, request.graph).value)


@router.get("/choices")
def list_choices() -> schemas.ChoicesResponse:
    """What there is to choose from."""
    return schemas.ChoicesResponse(
        methods={name: asdict(method.options()) for name, method in METHODS.items()},
        method_options={name: _describe_method(method) for name, method in METHODS.items()},
        default=DEFAULT_METHOD,
        graph_formats=[suffix[1:] for suffix in drawing.SUFFIXES],
        label_formats=[suffix[1:] for suffix in WRITE_SUFFIXES],
        relations=schemas.RELATIONS,
    )


def _describe_method(method: Method) -> schemas.MethodDescription:
    options = [
        schemas.OptionDescription(
            name=spec.name, kind=spec.kind, choices=list(spec.words), default=spec.default_text, help=spec.help
        )
        for spec in option_specs(method.options)
    ]
    return schemas.MethodDescription(summary=method.summary, options=options)


def _run_on_labels(workspace: Workspace, task: WorkerTask, *arguments: Any) -> dict[str, Any]:
    """Run a worker task that takes, last, where it may write the labels that came with the request."""
    with workspace.scratch_folder() as folder:
        path = folder / "labels.jsonl"
        result = workspace.sandbox.run(task, *arguments, path, translate=lambda text: text.replace(str(path), "labels"))
    return cast(dict[str, Any], result.value)

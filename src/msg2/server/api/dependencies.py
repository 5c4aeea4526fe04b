"""What the routes share: the workspace, the job queue and the live runs of the app that was asked."""

from __future__ import annotations

from typing import Annotated, TypeAlias, cast

from fastapi import Depends, Request

from msg2.server.jobs import JobQueue
from msg2.server.live_runs import LiveRuns
from msg2.server.workspace import Workspace


def get_workspace(request: Request) -> Workspace:
    """Return the workspace of the app that was asked."""
    return cast(Workspace, request.app.state.workspace)


def get_jobs(request: Request) -> JobQueue:
    """Return the job queue of the app that was asked."""
    return cast(JobQueue, request.app.state.jobs)


def get_runs(request: Request) -> LiveRuns:
    """Return the live runs of the app that was asked."""
    return cast(LiveRuns, request.app.state.runs)


WorkspaceDependency: TypeAlias = Annotated[Workspace, Depends(get_workspace)]
JobQueueDependency: TypeAlias = Annotated[JobQueue, Depends(get_jobs)]
LiveRunsDependency: TypeAlias = Annotated[LiveRuns, Depends(get_runs)]

"""Much work of one kind, side by side: in processes of this machine, or on a Ray cluster.

An engine takes a function that can be pickled, its arguments and how many are worked on at a time, and gives back each
argument with its result as soon as that is there. Where a process died over an argument, its result is a `Died`.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection, wait
from threading import Thread
from typing import Any, Protocol, TypeVar, cast

from msg2.errors import MissingExtraError

Item = TypeVar("Item")
Result = TypeVar("Result")


class Died(Exception):  # noqa: N818
    """The process that worked on an argument came to a sudden end."""


class Engine(Protocol):
    """See the module."""

    def __call__(
        self, work: Callable[[Item], Result], items: Sequence[Item], jobs: int
    ) -> Iterator[tuple[Item, Result | Died]]:
        """The items with their results, in any order."""


def in_processes(
    work: Callable[[Item], Result], items: Sequence[Item], jobs: int
) -> Iterator[tuple[Item, Result | Died]]:
    """`jobs` processes of this machine; one job is done in this very process.

    >>> sorted(in_processes(abs, [-2, 1], jobs=1))
    [(-2, 2), (1, 1)]
    """
    if jobs == 1:
        for item in items:
            yield item, work(item)
        return
    left = [*reversed(items)]
    busy: dict[Connection, Item] = {}
    with ExitStack() as ending:
        for _ in range(min(jobs, len(left))):
            _give(_started(work, ending), left, busy)
        while busy:
            for pipe in cast(list[Connection], wait([*busy])):
                item = busy.pop(pipe)
                try:
                    error, result = pipe.recv()
                except (EOFError, OSError):  # it died, maybe in the middle of its answer
                    error, result = None, Died()
                    pipe = _started(work, ending) if left else pipe
                if error is not None:
                    raise error
                if left:  # the next one is worked on while this result is taken care of
                    _give(pipe, left, busy)
                yield item, result


def _give(pipe: Connection, left: list[Item], busy: dict[Connection, Item]) -> None:
    busy[pipe] = left.pop()
    with suppress(BrokenPipeError):  # a process that has died by now is noticed when its answer is read
        pipe.send(busy[pipe])


def _started(work: Callable[[Item], Result], ending: ExitStack) -> Connection:
    """The way to a new process, which is over when `ending` is."""
    spawned = multiprocessing.get_context("spawn")
    ours, theirs = spawned.Pipe()
    # At the end of the program, a daemon is not waited for.
    process = spawned.Process(target=_serve, args=(work, theirs), daemon=True)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process inherits it: an interrupt is told once
    process.start()
    theirs.close()
    for end in (ours.close, process.join, process.terminate):  # the last one comes first
        ending.callback(end)
    signal.signal(signal.SIGINT, before)
    return ours


def _serve(work: Callable[[Item], Result], pipe: Connection) -> None:
    """Answer with (None, result) or (error, None), in a process of its own."""
    _end_with_parent()
    while True:
        answer: tuple[Exception | None, Result | None]
        item = pipe.recv()
        try:
            answer = None, work(item)
        except Exception as error:
            answer = error, None
        pipe.send(answer)


def _end_with_parent() -> None:
    """End this process when the one that started it does: where that is killed, it would wait for work for ever."""

    def watch() -> None:
        parent = multiprocessing.parent_process()
        assert parent is not None
        parent.join()
        os._exit(1)

    Thread(target=watch, name="msg2 parent", daemon=True).start()


def on_ray(work: Callable[[Item], Result], items: Sequence[Item], jobs: int) -> Iterator[tuple[Item, Result | Died]]:
    """The Ray cluster at `RAY_ADDRESS`; without that, a local one of `jobs` processors for the time of the work.

    All machines of a cluster must see the files under the same paths.
    """
    try:
        import ray
    except ImportError:
        raise MissingExtraError("--engine ray", "ray") from None
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would tell its makers about the run
    size: dict[str, Any] = {} if "RAY_ADDRESS" in os.environ else {"num_cpus": jobs, "include_dashboard": False}
    ray.init(log_to_driver=False, logging_level=logging.ERROR, **size)
    errors = ray.exceptions
    lost = (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.NodeDiedError, errors.ObjectLostError)
    try:
        remote: Any = ray.remote(max_retries=0)(_applied)
        waiting = {remote.remote(work, item): item for item in items}
        while waiting:
            (ready, *_), _ = ray.wait([*waiting], num_returns=1)
            item = waiting.pop(ready)
            try:
                yield item, ray.get(ready)
            except lost:
                yield item, Died()
    finally:
        ray.shutdown()


def _applied(work: Callable[[Item], Result], item: Item) -> Result:
    return work(item)


ENGINES: Mapping[str, Engine] = {"local": in_processes, "ray": on_ray}

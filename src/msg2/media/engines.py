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
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from threading import Thread
from typing import Any, Protocol, TypeVar

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
    left = dict(enumerate(items))
    while left:
        with suppress(BrokenProcessPool):
            yield from _pooled(work, left, jobs)
        # A process died and took all others with it. It was at one of the first that are left: each of these gets a
        # process of its own, and the one that kills again is known.
        for number in [*left][: 2 * jobs + 1]:
            alone = {number: left.pop(number)}
            try:
                yield from _pooled(work, alone, 1)
            except BrokenProcessPool:
                yield alone[number], Died()


def _pooled(work: Callable[[Item], Result], left: dict[int, Item], jobs: int) -> Iterator[tuple[Item, Result]]:
    """The results of what is `left`, which becomes less."""
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(jobs, len(left)), spawned, initializer=_end_with_parent) as pool:
        ours = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the workers inherit it: an interrupt is told once
        numbers = {pool.submit(work, item): number for number, item in left.items()}
        signal.signal(signal.SIGINT, ours)
        try:
            for future in as_completed(numbers):
                result = future.result()
                yield left.pop(numbers.pop(future)), result  # a future that is kept would keep its result
        except BaseException:
            for worker in multiprocessing.active_children():  # else the pool waits until they are done
                worker.terminate()
            raise


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

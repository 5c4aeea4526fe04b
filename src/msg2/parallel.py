"""One pool of workers for everything that runs in parallel: processes of this machine, or a Ray cluster.

An engine takes a function that can be pickled, its arguments and the number of workers, and yields each argument with
its result, or with `WorkerDied`, as soon as it is ready. `parallel_map` restores the order of the arguments.
"""

import logging
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from threading import Thread
from typing import Any, TypeVar, cast

from msg2.errors import InputError, optional_dependency

Item = TypeVar("Item")
Result = TypeVar("Result")

_PATIENCE = 5.0
"""Seconds that a process has to end when it is asked to."""


class WorkerDied(Exception):  # noqa: N818
    """The process that worked on an argument came to a sudden end."""


def process_engine(
    work: Callable[[Item], Result], items: Sequence[Item], jobs: int
) -> Iterator[tuple[Item, Result | WorkerDied]]:
    """Work in processes of this machine; one job works in this very process."""
    if jobs == 1:
        for item in items:
            yield item, work(item)
        return
    left, busy = [*reversed(items)], dict[Connection, Item]()

    def send_next(pipe: Connection) -> None:
        busy[pipe] = left.pop()
        with suppress(BrokenPipeError):  # a process that has died by now is noticed when its answer is read
            pipe.send(busy[pipe])

    with ExitStack() as ending:
        for _ in range(min(jobs, len(left))):
            send_next(_start_worker(work, ending))
        while busy:
            for pipe in cast(list[Connection], wait([*busy])):
                item = busy.pop(pipe)
                try:
                    error, result = pipe.recv()
                except (EOFError, OSError):  # it died, maybe in the middle of its answer
                    error, result = None, WorkerDied()
                    pipe = _start_worker(work, ending) if left else pipe
                if error is not None:
                    raise error
                if left:  # the next one is worked on while this result is taken care of
                    send_next(pipe)
                yield item, result


def _start_worker(work: Callable[[Item], Result], ending: ExitStack) -> Connection:
    """Start a process and return the way to it; it is over when `ending` is."""
    spawned = multiprocessing.get_context("spawn")
    ours, theirs = spawned.Pipe()
    # At the end of the program, a daemon is not waited for.
    process = spawned.Process(target=_worker_loop, args=(work, theirs), daemon=True)
    with _interrupts_deferred():  # until it is known how to end the process
        process.start()
        ending.callback(ours.close)
        ending.callback(_end_worker, process)  # this comes first
    theirs.close()
    return ours


def _end_worker(process: BaseProcess) -> None:
    """End a process and wait until it is over; an interrupt in between would leave one to be waited for for ever."""
    with _interrupts_deferred():
        process.terminate()
        process.join(_PATIENCE)
        process.kill()
        process.join()


@contextmanager
def _interrupts_deferred() -> Iterator[None]:
    """Block SIGINT: a process that is started inherits that, so an interrupt is told once; here it comes afterwards."""
    if sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # it unblocks the signal when it is started, which must not happen below
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _worker_loop(work: Callable[[Item], Result], pipe: Connection) -> None:
    """Answer with (None, result) or (error, None), in a process of its own."""
    exit_with_parent()
    with suppress(EOFError, BrokenPipeError):  # nobody is left to work for
        while True:
            item = pipe.recv()
            try:
                error, result = None, work(item)
            except Exception as raised:
                error, result = raised, None
            pipe.send((error, result))


def exit_with_parent() -> None:
    """End this process when the one that started it does: where that is killed, it would wait for work for ever."""

    def watch() -> None:
        if parent := multiprocessing.parent_process():
            parent.join()
        os._exit(1)

    Thread(target=watch, name="msg2 parent", daemon=True).start()


def ray_engine(
    work: Callable[[Item], Result], items: Sequence[Item], jobs: int
) -> Iterator[tuple[Item, Result | WorkerDied]]:
    """Work on the Ray cluster at `RAY_ADDRESS`, where all machines see the same files, or else on a local one."""
    with optional_dependency("--engine ray", "ray"):
        import ray
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray would tell its makers about the run
    is_cluster = "RAY_ADDRESS" in os.environ
    ray.init(
        num_cpus=None if is_cluster else jobs,
        include_dashboard=None if is_cluster else False,
        log_to_driver=False,
        logging_level=logging.ERROR,
    )
    errors = ray.exceptions
    lost = (errors.WorkerCrashedError, errors.OutOfMemoryError, errors.NodeDiedError, errors.ObjectLostError)
    try:
        remote: Any = ray.remote(max_retries=0)(lambda work, item: work(item))
        shared = ray.put(work)  # once for all: it may hold the data
        waiting = {remote.remote(shared, item): item for item in items}
        while waiting:
            (ready, *_), _ = ray.wait([*waiting], num_returns=1)
            item = waiting.pop(ready)
            try:
                yield item, ray.get(ready)
            except lost:
                yield item, WorkerDied()
    finally:
        ray.shutdown()


ENGINES = {"local": process_engine, "ray": ray_engine}


def parallel_map(
    work: Callable[[Item], Result], items: Sequence[Item], jobs: int, engine: str = "local"
) -> Iterator[Result]:
    """Apply a function to every item, in several processes; the results are in the order of the items."""
    jobs = min(jobs, os.cpu_count() or 1) if engine == "local" else jobs
    finished: dict[int, Result] = {}
    awaited = 0
    for (position, _), result in ENGINES[engine](partial(_apply_to_placed, work), [*enumerate(items)], jobs):
        if isinstance(result, WorkerDied):
            what = "a process that was working on this has been ended from outside"
            raise InputError(what, hint="it may have run out of memory: take fewer --jobs")
        finished[position] = result
        while awaited in finished:
            yield finished.pop(awaited)
            awaited += 1


def _apply_to_placed(work: Callable[[Item], Result], placed: tuple[int, Item]) -> Result:
    return work(placed[1])

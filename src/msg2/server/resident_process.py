"""Processes that stay: a worker is made once, in a process of its own, and then answers many questions.

As in `msg2.server.sandbox` there are limits of time and memory, and only JSON comes back. A process that breaks is
made again when it is next asked.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, TypeAlias

from msg2.errors import InputError
from msg2.server.sandbox import (
    ProcessLimits,
    TaskCancelledError,
    TranslateText,
    encode_outcome,
    limit_process,
    receive_message,
    result_of,
    start_process,
)
from msg2.server.settings import ServerSettings

WorkerFactory: TypeAlias = Callable[..., Callable[..., Any]]
"""Of a module: called in the process, once, it returns what answers; questions and answers are plain JSON."""


@dataclass(frozen=True, slots=True)
class WorkerPlan:
    """How a worker is made."""

    factory: WorkerFactory
    arguments: tuple[Any, ...]
    """They can be pickled."""
    translate: TranslateText = str
    """Applied to every message that comes back."""


class ResidentProcess:
    """A process with a worker, which is asked one thing at a time."""

    def __init__(self, plan: WorkerPlan, settings: ServerSettings, stop: threading.Event) -> None:
        self._plan, self._settings, self._stop = plan, settings, stop
        self._process = ExitStack()
        started = start_process(_run_resident, plan.factory, plan.arguments, settings.megabytes)
        self._connection = self._process.enter_context(started)
        self.is_open = True
        try:
            self._receive(settings.job_seconds)
        except BaseException:
            self.close()
            raise

    def ask(self, *question: Any) -> Any:
        """Ask the worker, and wait for its answer."""
        try:
            self._connection.send_bytes(json.dumps(question).encode())
        except OSError:
            self.close()
            raise InputError("the work broke off", hint="try again") from None
        return self._receive(self._settings.answer_seconds)

    def close(self) -> None:
        """End the process."""
        self.is_open = False
        self._process.close()

    def _receive(self, seconds: float) -> Any:
        try:
            message = receive_message(
                self._connection, ProcessLimits(seconds, self._settings.megabytes), stop=self._stop
            )
        except BaseException:  # it may still be at work on this, and would answer the next question with it
            self.close()
            raise
        return result_of(message, self._plan.translate).value


@dataclass(slots=True)
class _Place:
    """A place for a process, which is made by the first who asks."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    process: ResidentProcess | None = None
    users: int = 0
    """Who ask it or wait for that."""

    @property
    def is_open(self) -> bool:
        return self.process is not None and self.process.is_open

    def close(self) -> None:
        if self.process is not None:
            self.process.close()


class ResidentPool:
    """So many processes at the same time; for another one, that which was asked least recently has to go."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self._places: OrderedDict[object, _Place] = OrderedDict()
        self._changed = threading.Condition()
        self._closing = threading.Event()

    def ask(self, key: object, plan: WorkerPlan, *question: Any) -> Any:
        """Ask the worker of this key, which is made where there is none, and wait for its answer."""
        place = self._take(key)
        try:
            with place.lock:
                if not place.is_open:
                    place.process = ResidentProcess(plan, self._settings, self._closing)
                assert place.process is not None
                return place.process.ask(*question)
        finally:
            self._give_back(key, place)

    def close(self) -> None:
        """End all processes; whoever waits for an answer is told so."""
        self._closing.set()
        with self._changed:
            self._changed.wait_for(lambda: all(place.users == 0 for place in self._places.values()))
            for place in self._places.values():
                place.close()
            self._places.clear()

    def _take(self, key: object) -> _Place:
        with self._changed:
            while key not in self._places and len(self._places) >= self._settings.models:
                idle = next((other for other, place in self._places.items() if place.users == 0), None)
                if idle is None:
                    self._changed.wait()
                else:
                    self._places.pop(idle).close()
            if self._closing.is_set():
                raise TaskCancelledError
            place = self._places.setdefault(key, _Place())
            self._places.move_to_end(key)
            place.users += 1
            return place

    def _give_back(self, key: object, place: _Place) -> None:
        with self._changed:
            place.users -= 1
            if place.users == 0 and not place.is_open:
                self._places.pop(key)
            self._changed.notify_all()


# -- in the other process ---------------------------------------------------------------------------------------


def _run_resident(connection: Connection, factory: WorkerFactory, arguments: tuple[Any, ...], megabytes: int) -> None:
    questions: SimpleQueue[list[Any]] = SimpleQueue()
    threading.Thread(target=_forward_questions, args=(connection, questions), daemon=True).start()
    limit_process(megabytes)
    made: list[Callable[..., Any]] = []
    with contextlib.suppress(OSError):
        connection.send_bytes(encode_outcome(lambda: made.append(factory(*arguments)), megabytes))
        while made:
            connection.send_bytes(encode_outcome(partial(made[0], *questions.get()), megabytes))


def _forward_questions(connection: Connection, questions: SimpleQueue[list[Any]]) -> None:
    """Read questions until the other end closes: nobody wants the answers of a server that has been killed."""
    try:
        while True:
            questions.put(json.loads(connection.recv_bytes()))
    except (EOFError, OSError):
        os._exit(1)

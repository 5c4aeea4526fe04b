"""Engines: the results of one process, whatever the engine; a process that dies is known, and none is left over.

The work is `eval` and its arguments are expressions: what other processes can import, whoever runs the tests.
"""

from __future__ import annotations

import ast
import importlib.util
import multiprocessing
import os
import re
import signal
import sys
import tempfile
import time
import weakref
from multiprocessing.process import BaseProcess

import pytest

from msg2 import parallel
from msg2.parallel import ENGINES, WorkerDied, process_engine

EXIT = "__import__('os')._exit(3)"
FAULT = "__import__('os').kill(__import__('os').getpid(), 11)"
SUMS = [f"{number} + {number}" for number in range(12)]


def sums(found: list[tuple[str, object]]) -> list[str]:
    """The items whose result is right."""
    return sorted(item for item, result in found if result == eval(item))


@pytest.mark.parametrize("jobs", [1, 2, 3])
@pytest.mark.parametrize("items", [[], SUMS[:1], [*SUMS, *SUMS]])
def test_processes_give_what_one_process_gives(jobs: int, items: list[str]) -> None:
    found = list(process_engine(eval, items, jobs))
    assert sums(found) == sorted(items)
    assert not multiprocessing.active_children()


@pytest.mark.parametrize("jobs", [2, 3])
@pytest.mark.parametrize(
    "killers", [{0: EXIT}, {11: FAULT}, {3: EXIT, 4: FAULT}, {0: FAULT, 9: EXIT, 10: EXIT}], ids=str
)
def test_what_kills_its_process_is_named_and_the_others_are_kept(jobs: int, killers: dict[int, str]) -> None:
    items = [killers.get(number, item) for number, item in enumerate(SUMS)]
    found = list(process_engine(eval, items, jobs))
    died = [item for item, result in found if isinstance(result, WorkerDied)]
    assert sorted(died) == sorted(killers.values())
    assert sums([pair for pair in found if pair[0] in SUMS]) == sorted(set(items) & set(SUMS))
    assert len(found) == len(items)


def test_an_error_of_the_work_is_an_error_and_ends_all() -> None:
    began = time.monotonic()
    with pytest.raises(ZeroDivisionError):
        list(process_engine(eval, ["1 / 0", "__import__('time').sleep(60)"], 2))
    assert time.monotonic() - began < 20
    assert not multiprocessing.active_children()


def test_whoever_needs_no_more_results_waits_for_none() -> None:
    before = signal.getsignal(signal.SIGINT)
    began = time.monotonic()
    results = process_engine(eval, ["1", "__import__('time').sleep(60)", "2"], 2)
    assert next(results)[0] in ("1", "2")
    results.close()
    assert time.monotonic() - began < 20
    assert not multiprocessing.active_children()
    assert signal.getsignal(signal.SIGINT) is before


def test_results_that_were_taken_are_not_kept() -> None:
    """Else the features of all videos would be in memory at the end."""
    taken = []
    results = process_engine(eval, [f"__import__('numpy').zeros({number})" for number in range(20)], 2)
    for _ in range(20):
        _, result = next(results)
        taken.append(weakref.ref(result))
        del result
    next(results, None)
    assert sum(one() is not None for one in taken) <= 1


# -- programs ---------------------------------------------------------------------------------------------------

PROGRAM = """
import os, sys, time
from msg2.parallel import ENGINES
engine, jobs, *items = sys.argv[1:]
for item, result in ENGINES[engine](eval, items, int(jobs)):
    print(repr((item, repr(result))), flush=True)
    time.sleep(float(os.environ.get("PAUSE", 0)))
"""
SLEEP = "__import__('time').sleep(60)"


@pytest.mark.parametrize("pause", [0, 60], ids=["while it waits", "while it takes care of a result"])
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interrupt_ends_everything_at_once(apart, jobs: int, pause: int) -> None:
    program = apart.start(
        sys.executable, "-c", PROGRAM, "local", jobs, "1", SLEEP, SLEEP, SLEEP, PAUSE=str(pause)
    )  # fmt: skip
    assert program.stdout.readline() == "('1', '1')\n"
    time.sleep(0.2)
    assert_interrupted(program, apart)


def assert_interrupted(program, apart) -> None:
    began = time.monotonic()
    os.killpg(program.pid, signal.SIGINT)  # as Ctrl-C does: to all processes of the terminal
    _, complaint = program.communicate(timeout=600)
    assert time.monotonic() - began < 10
    assert program.returncode == -signal.SIGINT
    assert complaint.count("KeyboardInterrupt") == 1, "another process has complained, too"
    assert not apart.running(patience=5)


@pytest.mark.parametrize("moment", [0.0, 0.05, 0.1])
def test_an_interrupt_in_the_middle_of_a_long_result(apart, moment: float) -> None:
    items = [f"__import__('numpy').zeros({3_000_000 + number})" for number in range(500)]
    program = apart.start(sys.executable, "-c", PROGRAM, "local", 2, *items)
    assert "zeros" in program.stdout.readline()
    time.sleep(moment)
    assert_interrupted(program, apart)


def test_an_interrupt_while_processes_are_ended_leaves_none_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes before the first process has been told to end, which then would wait for work for ever."""
    terminate = BaseProcess.terminate

    def interrupted(process: BaseProcess) -> None:
        signal.raise_signal(signal.SIGINT)
        terminate(process)

    monkeypatch.setattr(BaseProcess, "terminate", interrupted)
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        list(process_engine(eval, ["1", "2", "3"], 2))
    assert time.monotonic() - began < 20
    assert not multiprocessing.active_children()


def test_a_process_that_does_not_end_when_it_is_asked_to_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "_PATIENCE", 0.2)
    deaf = "[__import__('signal').signal(15, __import__('signal').SIG_IGN), 1][1]"
    assert list(process_engine(eval, [deaf, "2", deaf, deaf], 2))
    assert not multiprocessing.active_children()


def test_a_process_that_dies_in_the_middle_of_its_answer_is_dead() -> None:
    """`eval` sees the pipe of its caller: it announces 256 bytes there, writes four, and is gone."""
    half = "__import__('os').write(pipe.fileno(), bytes([0, 0, 1, 0]) + b'half') and __import__('os')._exit(3)"
    found = dict(process_engine(eval, [half, "1 + 1"], 2))
    assert isinstance(found[half], WorkerDied)
    assert found["1 + 1"] == 2


def test_processes_end_with_a_program_that_is_killed(apart) -> None:
    program = apart.start(sys.executable, "-c", PROGRAM, "local", 2, "1", SLEEP, SLEEP)
    assert program.stdout.readline() == "('1', '1')\n"
    assert len(apart.running()) >= 3
    program.kill()
    program.communicate(timeout=600)
    assert not apart.running(patience=10)


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed (pip install 'msg2[ray]')")
def test_a_local_ray_does_the_same(apart) -> None:
    items = [*SUMS[:3], EXIT, *SUMS[3:6], FAULT, SUMS[1]]
    # A socket's path must be short: the temporary folder of the tests may not be.
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as folder:
        program = apart.start(sys.executable, "-W", "error", "-c", PROGRAM, "ray", 2, *items, RAY_TMPDIR=folder)
        said, complaint = program.communicate(timeout=600)
        assert program.returncode == 0, complaint
        assert not apart.running(patience=10)
    # Ray says on stdout, too, that a process has died, and not always on a line of its own.
    found = [ast.literal_eval(pair) for pair in re.findall(r"""\((?:"[^"\n]*"|'[^'\n]*'), '[^'\n]*'\)""", said)]
    assert sorted(item for item, result in found if result == "WorkerDied()") == sorted([EXIT, FAULT])
    assert sums([(item, int(result)) for item, result in found if item in SUMS]) == sorted([*SUMS[:6], SUMS[1]])


def test_every_engine_has_a_name() -> None:
    assert set(ENGINES) == {"local", "ray"}

"""Progress: one protocol, told in order and to its end by whatever takes long."""

from __future__ import annotations

from itertools import groupby

import pytest

import msg2
from msg2.progress import LOGGER, collect_logs, no_progress, prefix_messages

TASKS = {
    name: msg2.Task(name, "abc", [msg2.Video(f"v{n}", map(msg2.Segment, "abc")) for n in range(4)]) for name in "xy"
}


class Recorder:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, int | None, str]] = []

    def __call__(self, done: int, total: int | None, message: str) -> None:
        self.calls.append((done, total, message))


@pytest.fixture
def told() -> Recorder:
    return Recorder()


def test_names_come_before_messages(told: Recorder) -> None:
    prefix_messages(told, "Make Coffee")(3, None, "epoch 3")
    assert told.calls == [(3, None, "Make Coffee: epoch 3")]


def test_nothing_is_shown_by_default(capfd: pytest.CaptureFixture[str]) -> None:
    assert no_progress(1, 2, "x") is None  # type: ignore[func-returns-value]
    msg2.infer(TASKS["x"], samples=3)
    assert capfd.readouterr() == ("", "")


def test_every_task_and_every_sample_is_told(told: Recorder) -> None:
    msg2.infer_all(list(TASKS.values()), "always-before", progress=told)
    assert told.calls == [(1, 2, "x"), (2, 2, "y")]
    for method in ("likelihood", "always-before"):
        told.calls.clear()
        msg2.infer(TASKS["x"], method, samples=5, progress=told)
        of_samples = [(done, total) for done, total, message in told.calls if not message.startswith("search")]
        assert of_samples == [(done, 5) for done in range(1, 6)]


@pytest.mark.parametrize(
    "long_work",
    [
        lambda show: msg2.sweep(TASKS["x"], progress=show),
        lambda show: msg2.infer(TASKS["x"], "msg2", progress=show),
        lambda show: msg2.infer(TASKS["x"], samples=3, progress=show),
        lambda show: msg2.evaluate_next_step(TASKS["x"], splits=3, progress=show),
    ],
)
def test_what_is_done_grows_up_to_the_total(told: Recorder, long_work) -> None:
    long_work(told)
    assert told.calls
    for total, calls in groupby(told.calls, key=lambda call: call[1]):  # the search, then the samples
        done = [done for done, _, _ in calls]
        assert done == sorted(done)
        assert total is not None
        assert 0 <= done[0] <= done[-1] <= total


def test_logs_are_collected_instead_of_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with collect_logs() as logs:
        LOGGER.warning("the video has no sound")
        LOGGER.debug("not this")
    assert logs.messages == [(30, "the video has no sound")]
    assert capsys.readouterr() == ("", "")

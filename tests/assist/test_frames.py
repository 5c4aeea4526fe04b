"""A stream of frames: which step goes on, what is done, gaps, and no alarm about a faultless run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import lognorm

import msg2
from msg2.assist import Assistant, StepReport
from msg2.assist.frames import Durations, FrameFilter
from msg2.errors import InputError
from msg2.graph import SubtaskGraph, step
from msg2.task import Segment, Task, Video

STEPS = ("whisk", "dip", "fry", "serve")
HZ = 5
SECONDS, PAUSE = 12.0, 3.0


def recordings(videos: int = 16) -> Task:
    """Each step takes about 12 seconds, with a pause of 3 between them; a quarter of the videos dip twice as long."""
    rng, found = np.random.default_rng(0), []
    for number in range(videos):
        at, segments = 0.0, []
        for name in STEPS:
            length = SECONDS * float(rng.uniform(0.8, 1.3)) * (2 if name == "dip" and number % 4 == 0 else 1)
            segments.append(Segment(name, at, at + length))
            at += length + PAUSE
        found.append(Video(f"v{number}", segments))
    return Task("toast", STEPS, found, "skipped")


RECORDINGS = recordings()
TRAINED = Assistant(msg2.infer(RECORDINGS), RECORDINGS)


def frames(order: Sequence[str], right: float = 0.85, seed: int = 0) -> Iterator[tuple[dict[str, float], float]]:
    """A recogniser that gives the right class about this probability, with noise; last comes a long pause."""
    rng, at = np.random.default_rng(seed), 0.0
    for name in [*order, None]:
        for seconds, shown in ((SECONDS if name else 0.0, name), (PAUSE if name else 10.0, None)):
            for _ in range(int(seconds * HZ)):
                sure = float(np.clip(rng.normal(right, 0.1), 0.05, 0.98))
                rest = rng.dirichlet(np.ones(len(STEPS) + 1)) * (1 - sure)
                scores = dict(zip(STEPS, rest.tolist(), strict=False))
                if shown is not None:
                    scores[shown] += sure
                yield scores, at
                at += 1 / HZ


def observe(assistant: Assistant, stream: Iterator[tuple[dict[str, float], float]]) -> list[StepReport]:
    return [assistant.observe(scores, at) for scores, at in stream]


def test_steps_begin_and_end_by_themselves() -> None:
    assistant = TRAINED.new_run()
    seen: list[str] = []
    for scores, at in frames(STEPS):
        report = assistant.observe(scores, at)
        assert not report.mistake
        if report.step and report.step not in seen:
            seen.append(report.step)
        if int(at * HZ) == int(SECONDS * HZ / 2):  # in the middle of the first step
            assert assistant.progress() == ()
            assert report.step == "whisk"
            assert assistant.next(1)[0].step == "dip"
    assert tuple(seen) == assistant.progress() == STEPS
    assert assistant.alarms() == assistant.missing() == []
    assert assistant.finished().finished
    assert min(assistant.done().values()) > 0.8
    assert sum(each.probability for each in assistant._belief.hypotheses) == pytest.approx(1)


@pytest.mark.parametrize("gap", [(13.0, 14.5), (20.0, 24.0), (17.0, 28.0), (29.0, 43.5)])
def test_a_stream_may_have_gaps(gap: tuple[float, float]) -> None:
    """A second without a frame, a part of a step, and a whole step."""
    assistant = TRAINED.new_run()
    reports = observe(assistant, (frame for frame in frames(STEPS) if not gap[0] <= frame[1] < gap[1]))
    assert not any(report.mistake for report in reports)
    assert assistant.alarms() == []
    order = [name for name in STEPS if name in assistant.progress()]
    assert list(assistant.progress()) == order
    if gap[1] < 29.0:
        assert assistant.progress() == STEPS


@pytest.mark.parametrize("seed", [1, 2])
def test_a_poor_recogniser_raises_no_alarm_about_a_faultless_run(seed: int) -> None:
    reports = observe(TRAINED.new_run(), frames(STEPS, right=0.5, seed=seed))
    assert not any(report.mistake for report in reports)


def test_between_two_looks_nothing_is_judged_again() -> None:
    """Frames of the same second have the same report; an alarm is in one report only."""
    assistant = Assistant(SubtaskGraph("toast", STEPS, {"fry": step("dip"), "dip": step("whisk")}), RECORDINGS)
    reports = [assistant.observe({"serve": 0.98}, at=place / HZ) for place in range(60 * HZ)]
    changes = sum(earlier != later for earlier, later in pairwise(reports))
    assert changes <= 2 * 60
    assert sum(report.mistake for report in reports) <= 1


def test_what_lasts_is_a_mistake_and_is_told_once() -> None:
    """Nobody ever fries first; who does so for a long time, and then nothing else, has done it."""
    graph = SubtaskGraph("toast", STEPS, {"fry": step("dip"), "dip": step("whisk")})
    assistant = Assistant(graph)  # no habits: the graph alone
    reports = [assistant.observe({"fry": 0.97}, at=place / HZ) for place in range(60 * HZ)]
    assert sum(report.mistake for report in reports) == 1
    (alarm,) = assistant.alarms()
    assert (alarm.step, alarm.kind) == ("fry", "need")
    (raised,) = [place / HZ for place, report in enumerate(reports) if report.mistake]
    assert alarm.at == raised


def test_a_run_of_frames_cannot_be_saved(tmp_path: Path) -> None:
    assistant = TRAINED.new_run()
    assistant.observe({"whisk": 0.9}, at=0.0)
    with pytest.raises(InputError, match=r"run\.json: this run observes frames, which are not in its log\n  keep"):
        assistant.save(tmp_path / "run.json")
    assert not (tmp_path / "run.json").exists()


# -- afterwards -------------------------------------------------------------------------------------------------------


def filtered(graph: SubtaskGraph, stream: Sequence[tuple[dict[int, float], float]], remembers: bool) -> FrameFilter:
    followed = FrameFilter(Assistant(graph)._model, remembers)
    for scores, at in stream:
        followed.observe(scores, at)
    return followed


@pytest.mark.parametrize("seed", range(4))
def test_afterwards_every_way_through_the_hypotheses_is_considered(seed: int) -> None:
    """All ways one by one: the best one, and how probable each step was in each block."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(3, 0.4), size=26)  # of two steps and background, noisy
    stream = [({0: float(p), 1: float(q)}, place / HZ) for place, (p, q, _) in enumerate(shares)]
    followed = filtered(SubtaskGraph("t", "ab", {"b": step("a")}), stream, remembers=True)
    stretches, blocks = followed.stretches(), followed._blocks or []
    assert len(blocks) == 5
    ways = [((0,), 1.0)]
    for block in blocks:
        arrows = [*zip(block.source.tolist(), block.target.tolist(), block.weight.tolist(), strict=True)]
        ways = [
            ((*way, target), chance * weight / block.before[source])
            for way, chance in ways
            for source, target, weight in arrows
            if source == way[-1]
        ]
    total = sum(chance for _, chance in ways)
    best = max(ways, key=lambda way: way[1])[0][1:]
    shown = [block.now[place] for block, place in zip(blocks, best, strict=True)]
    told = [(part.step, part.start, part.end) for part in stretches]
    assert [next(now for now, start, end in told if start <= block.start < end) for block in blocks] == shown
    assert [part.step for part in stretches] == [
        now for place, now in enumerate(shown) if shown[place - 1 : place] != [now]
    ]
    sure = [
        sum(chance for way, chance in ways if block.now[way[place]] == now) / total
        for place, (block, now) in enumerate(zip(blocks, shown, strict=True), start=1)
    ]
    for part in stretches:
        inside = [
            (block.end - block.start, p)
            for block, p in zip(blocks, sure, strict=True)
            if part.start <= block.start < part.end
        ]
        assert part.confidence == pytest.approx(sum(s * p for s, p in inside) / sum(s for s, _ in inside))


def test_the_whole_stream_is_told_without_gaps() -> None:
    index = TRAINED.graph.index
    followed = FrameFilter(TRAINED._model, remembers=True)
    for scores, at in [*frames(STEPS, right=0.7)][: 40 * HZ + 1]:
        followed.observe({index[name]: p for name, p in scores.items()}, at)
    stretches = followed.stretches()
    assert [TRAINED.graph.steps[part.step] for part in stretches if part.step is not None] == list(STEPS[:3])
    assert (stretches[0].start, stretches[-1].end) == (0.0, pytest.approx(40.0))
    assert all(earlier.end == later.start for earlier, later in pairwise(stretches))
    assert FrameFilter(TRAINED._model).stretches() == []


def test_nothing_and_single_frames_are_no_steps() -> None:
    assert FrameFilter(TRAINED._model, remembers=True).stretches() == []
    rare = FrameFilter(TRAINED._model, remembers=True)
    for at in (0.0, 30.0, 60.0):
        rare.observe({0: 0.4}, at)
    assert sum(part.step is not None for part in rare.stretches()) <= 1


def test_the_number_of_hypotheses_is_bounded() -> None:
    assistant, rng = TRAINED.new_run(), np.random.default_rng(0)
    for place in range(200):
        shares = rng.dirichlet(np.ones(5))
        assistant.observe(dict(zip(STEPS, shares.tolist(), strict=False)), at=place / 2)
        assert len(assistant._belief.hypotheses) <= 40
    assert assistant.log() == ()


def test_frames_come_in_order_and_are_probabilities() -> None:
    assistant = TRAINED.new_run()
    assistant.observe({"whisk": 0.9}, at=2.0)
    for scores, at, complaint in (
        ({"whisk": 0.9}, 1.0, "the frame at 1 comes after the one at 2"),
        ({"whisk": 0.9, "dip": 0.9}, 3.0, "above 1"),
        ({"brew": 0.9}, 3.0, "not a step"),
        ({"whisk": float("nan")}, 3.0, "from 0 to 1"),
    ):
        with pytest.raises(InputError, match=complaint):
            assistant.observe(scores, at)
    assert assistant.observe({}, at=3.5).mistake is False


def test_durations_are_those_of_the_videos() -> None:
    durations = Durations.fit(STEPS, RECORDINGS)
    assert durations.pause == pytest.approx(PAUSE)
    assert np.exp(durations.mean) == pytest.approx(SECONDS, rel=0.35)
    assert durations.spread[1] > durations.spread[0]  # dipping takes longer in some videos
    for elapsed, seconds in ((0.0, 1.0), (5.0, 1.0), (12.0, 3.0)):
        law = lognorm(durations.spread[0], scale=np.exp(durations.mean[0]))
        expected = 1 - law.sf(elapsed + seconds) / law.sf(elapsed)
        assert durations.end_probability(0, elapsed, seconds) == pytest.approx(max(expected, 1e-4), abs=1e-9)
    assert durations.end_probability(0, 1e6, 1.0) <= 0.95
    unknown = Durations.fit(STEPS, None)
    assert np.exp(unknown.mean) == pytest.approx([30.0] * 4)

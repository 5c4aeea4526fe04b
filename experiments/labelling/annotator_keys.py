"""Keys that a simulated annotator presses in the workbench, to turn the drafts of a video into its true labels.

`SimulatedBench` does what the actions of `label_keys.js` do in `workbench.js`; the annotator knows the true labels, and
goes through the video from its beginning to its end. Keys for seeking are counted apart: who lets the video play needs
none of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from msg2.task import DRAFT, Segment, Step

Precision: TypeAlias = Literal["exact", "rough"]
"""exact: both ends within `TOLERANCE` of the true ones; rough: the middle lies in the true segment."""
TOLERANCE = 1.0
"""Seconds. The arrow keys move by two, so that nobody comes nearer with them alone."""
SEEK, FAR_SEEK = 2.0, 10.0
"""Seconds of an arrow key, alone and with Shift."""
NEW_SECONDS = 5.0
"""Length of a new label."""
DIGITS = 9
"""Steps that have a key of their own."""
SEEKING = frozenset({"back", "forward"})
"""The actions that only move the player."""


@dataclass(frozen=True, slots=True)
class KeyCount:
    """How many keys were pressed: to decide (choose, start, end, accept, reject, go on), and to seek."""

    deciding: int
    seeking: int


class SimulatedBench:
    """The workbench with one video open; its methods are the keys, and `pressed` counts them by action."""

    def __init__(self, steps: Sequence[Step], seconds: float, drafts: Sequence[Segment] = ()) -> None:
        self.steps = tuple(steps)
        self.seconds = seconds
        self.rows = _in_time([replace(draft, source=DRAFT) for draft in drafts])
        self.step = self.steps[0]
        self.time = 0.0
        self.chosen: Segment | None = None
        self.pressed: Counter[str] = Counter()
        if self.rows:
            self._choose(self.rows[0])

    @property
    def labels(self) -> list[Segment]:
        """What is labelled so far, by time."""
        return [row for row in self.rows if row.source != DRAFT]

    def count(self) -> KeyCount:
        """Return how many keys were pressed so far."""
        seeking = sum(self.pressed[name] for name in SEEKING)
        return KeyCount(self.pressed.total() - seeking, seeking)

    def seek(self, low: float, high: float) -> None:
        """Press the fewest arrow keys that lead to a time between two, which lie two seconds apart or more."""
        ends = [(end - self.time) / FAR_SEEK for end in (low, high)]
        jumps = {0, *map(math.floor, ends), *map(math.ceil, ends)}
        ways = [(far, _small_jumps(self._move(self.time, far * FAR_SEEK), low, high)) for far in sorted(jumps)]
        far, near = min(ways, key=lambda way: abs(way[0]) + abs(way[1]))
        for jump, size in ((far, FAR_SEEK), (near, SEEK)):
            self._press("forward" if jump > 0 else "back", abs(jump))
            self.time = self._move(self.time, jump * size)

    def _move(self, time: float, by: float) -> float:
        return min(max(time + by, 0.0), self.seconds)

    def next_row(self) -> None:
        """Choose the next label or draft, and go to its start."""
        self._press_row("nextRow", 1)

    def previous_row(self) -> None:
        """Choose the previous label or draft, and go to its start."""
        self._press_row("previousRow", -1)

    def _press_row(self, name: str, by: int) -> None:
        self._press(name)
        place = (-1 if by > 0 else len(self.rows)) if self.chosen is None else self._place(self.chosen)
        self._choose(self.rows[min(max(place + by, 0), len(self.rows) - 1)])

    def accept(self) -> None:
        """Make the chosen draft a label, and go to the next draft."""
        self._settle("accept", keep=True)

    def reject(self) -> None:
        """Remove the chosen draft, and go to the next one."""
        self._settle("reject", keep=False)

    def _settle(self, name: str, *, keep: bool) -> None:
        self._press(name)
        assert self.chosen is not None
        place = self._place(self.chosen)
        later = [row for row in [*self.rows[place + 1 :], *self.rows[:place]] if row.source == DRAFT]
        if keep:
            self._change(self.chosen)
        else:
            self.rows.pop(place)
            self.chosen = None
        if later:
            self._choose(later[0])

    def start_now(self) -> Segment:
        """Let the chosen label or draft begin now, or make a new label of the step; return it."""
        self._press("startNow")
        row, at = self.chosen, self.time
        if row is not None:
            return self._change(replace(row, start=at, end=max(row.end or 0.0, at)))
        self.chosen = Segment(self.step, at, at + NEW_SECONDS)
        self.rows = _in_time([*self.rows, self.chosen])
        return self.chosen

    def end_now(self) -> None:
        """Let the chosen label or draft end now."""
        self._press("endNow")
        assert self.chosen is not None
        self._change(replace(self.chosen, start=min(self.chosen.start or 0.0, self.time), end=self.time))

    def unchoose(self) -> None:
        """Choose no label."""
        self._press("unchoose")
        self.chosen = None

    def choose_step(self, step: Step) -> None:
        """Press the fewest keys that choose a step: its digit, or arrow keys from the step or the ninth digit."""
        place, here = self.steps.index(step), self.steps.index(self.step)
        last = min(place, DIGITS - 1)
        walk, by_digit = abs(place - here), 1 + place - last
        if by_digit <= walk:
            self._press("chooseStep")
            walk, here = place - last, last
        self._press("stepDown" if place > here else "stepUp", walk)
        self.step = step
        if self.chosen is not None and self.chosen.step != step:
            self.chosen = None

    def next_video(self) -> None:
        """Leave the video."""
        self._press("nextVideo")

    def _press(self, name: str, times: int = 1) -> None:
        if times:
            self.pressed[name] += times

    def _place(self, row: Segment) -> int:
        return next(place for place, other in enumerate(self.rows) if other is row)

    def _choose(self, row: Segment) -> None:
        self.chosen, self.step, self.time = row, row.step, row.start or 0.0

    def _change(self, row: Segment) -> Segment:
        """Put a label in the place of the chosen row."""
        assert self.chosen is not None
        place, label = self._place(self.chosen), replace(row, source=None, confidence=None)
        self.rows = _in_time([*self.rows[:place], label, *self.rows[place + 1 :]])
        self.chosen = label
        return label


def label_video(
    steps: Sequence[Step], seconds: float, truth: Sequence[Segment], drafts: Sequence[Segment], precision: Precision
) -> SimulatedBench:
    """Label a video as it truly is, drafts first: accept, move or reject them, and make the labels that are missing.

    Parameters
    ----------
    steps : sequence of Step
        In the order of the workbench.
    seconds : float
        Length of the video.
    truth : sequence of Segment
        The true labels, with times.
    drafts : sequence of Segment
        With times, maybe none.
    precision : Precision
        Which labels are left as they are.

    Returns
    -------
    SimulatedBench
        With one label for each of the true ones, and all keys that were pressed.
    """
    bench = SimulatedBench(steps, seconds, drafts)
    meant = match_drafts(bench.rows, truth)
    missing = [segment for segment in truth if not any(segment is one for one in meant)]
    work: list[tuple[Segment | None, Segment | None]] = [*zip(bench.rows, meant, strict=True)]
    work += [(None, segment) for segment in missing]
    for row, segment in sorted(work, key=_begin):
        if row is not None:
            _go_to(bench, row)
            if segment is None:
                bench.reject()
                continue
            if is_right(row, segment, precision):
                bench.accept()
                continue
        assert segment is not None
        if row is None:
            if bench.chosen is not None and bench.chosen.step == segment.step:
                bench.unchoose()
            bench.choose_step(segment.step)
        _set_times(bench, segment, precision)
    bench.next_video()
    return bench


def match_drafts(drafts: Sequence[Segment], truth: Sequence[Segment]) -> list[Segment | None]:
    """Say for each draft which true label it becomes: of its step, the one with most overlap.

    Parameters
    ----------
    drafts : sequence of Segment
        By time.
    truth : sequence of Segment

    Returns
    -------
    list of Segment or None
        No label twice; None: there is none, and the draft is rejected. Who goes through a video once does not know
        that its step comes later.
    """
    found: list[Segment | None] = []
    for draft in drafts:
        free = [one for one in truth if one.step == draft.step and not any(one is other for other in found)]
        best = max(free, key=lambda one: _overlap(draft, one), default=None)
        found.append(best if best is not None and _overlap(draft, best) > 0 else None)
    return found


def _overlap(draft: Segment, segment: Segment) -> float:
    """Seconds that two segments share; less than 0 where they are apart, by as much."""
    (start, end), (first, last) = _times(draft), _times(segment)
    return min(end, last) - max(start, first)


def is_right(label: Segment, segment: Segment, precision: Precision) -> bool:
    """Whether a label is left as it is.

    Parameters
    ----------
    label : Segment
        A draft, or what was made of it.
    segment : Segment
        What it means.
    precision : Precision

    Returns
    -------
    bool
    """
    (start, end), (first, last) = _times(label), _times(segment)
    if precision == "rough":
        low, high = _wide(segment)
        return low <= (start + end) / 2 <= high
    return abs(start - first) <= TOLERANCE and abs(end - last) <= TOLERANCE


def _set_times(bench: SimulatedBench, segment: Segment, precision: Precision) -> None:
    """Let the chosen row, or a new label of the chosen step, have the times of a segment."""
    start, end = _times(segment)
    row = bench.chosen
    if row is None and precision == "rough":
        low, high = _wide(segment)
        bench.seek(max(low - NEW_SECONDS / 2, 0.0), max(high - NEW_SECONDS / 2, 0.0))
        row = bench.start_now()
        if is_right(row, segment, precision):
            return  # a new label is five seconds long: there is no need to say where it ends
    if row is None or abs(_times(row)[0] - start) > TOLERANCE:
        bench.seek(start - TOLERANCE, start + TOLERANCE)
        row = bench.start_now()
    if abs(_times(row)[1] - end) > TOLERANCE:
        bench.seek(end - TOLERANCE, end + TOLERANCE)
        bench.end_now()


def _wide(segment: Segment) -> tuple[float, float]:
    """The times of a segment, or two seconds around its middle: the arrow keys might miss a shorter one."""
    start, end = _times(segment)
    more = max(SEEK - (end - start), 0.0) / 2
    return start - more, end + more


def _go_to(bench: SimulatedBench, row: Segment) -> None:
    while bench.chosen is not row:
        places = {id(one): place for place, one in enumerate(bench.rows)}
        if bench.chosen is None or places[id(bench.chosen)] < places[id(row)]:
            bench.next_row()
        else:
            bench.previous_row()


def _begin(work: tuple[Segment | None, Segment | None]) -> float:
    """A draft is met where it lies, a label that is missing where it belongs."""
    row = work[0] or work[1]
    assert row is not None
    return _times(row)[0]


def _times(segment: Segment) -> tuple[float, float]:
    assert segment.start is not None
    assert segment.end is not None
    return segment.start, segment.end


def _small_jumps(time: float, low: float, high: float) -> int:
    """Arrow keys from a time to one between two; backwards they are negative."""
    if time < low:
        return math.ceil((low - time) / SEEK)
    return -math.ceil((time - high) / SEEK) if time > high else 0


def _in_time(rows: Sequence[Segment]) -> list[Segment]:
    return sorted(rows, key=_times)

"""Trials of Assembly101 with their mistakes: what was attached to what or detached from it, when, and whether rightly.

A video of the file is a participant with a toy. Where a start goes back in time, another recording of the same two
begins: it is a trial of its own, with nothing attached yet.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

import numpy as np

from msg2.task import Segment, Step, Video

FRAMES_PER_SECOND = 30
PREVIOUS_MISTAKE, WRONG_ORDER = "previous one is a mistake", "wrong order"

Joint: TypeAlias = tuple[str, str]
"""Two parts that are attached to each other, in alphabetical order: who is attached to whom differs by annotator."""


@dataclass(frozen=True, slots=True)
class Action:
    """`this` is attached to `that`, or detached from it; times in seconds."""

    verb: str
    this: str
    that: str
    start: float
    end: float
    label: str
    """correct, mistake or correction."""
    cause: str
    """Of a mistake, by the annotators; otherwise empty."""

    @property
    def detaches(self) -> bool:
        """Whether parts come apart; everything else puts parts together."""
        return self.verb == "detach"

    @property
    def mistake(self) -> bool:
        """Whether it is labelled as a mistake; a correction is none."""
        return self.label == "mistake"

    @property
    def joint(self) -> Joint:
        """The two parts."""
        return (self.this, self.that) if self.this <= self.that else (self.that, self.this)

    @property
    def step(self) -> Step:
        """The action as the name of a step, such as "attach interior to chassis"."""
        return f"{self.verb} {self.this} {'from' if self.detaches else 'to'} {self.that}"


@dataclass(frozen=True, slots=True)
class Trial:
    """One recording: the actions of a participant with a toy, in the order of their starts."""

    id: str
    toy: str
    video: str
    participant: str
    actions: tuple[Action, ...]

    @property
    def family(self) -> str:
        """The toy without the letter of its variant: c04b and c04c have most parts in common."""
        return self.toy[:3]

    @property
    def minutes(self) -> float:
        """From the first start to the last end."""
        return (max(action.end for action in self.actions) - self.actions[0].start) / 60

    def to_video(self, actions: Iterable[Action] | None = None) -> Video:
        """The trial, or some of its actions, as segments of steps."""
        chosen = self.actions if actions is None else actions
        return Video(self.id, [Segment(action.step, action.start, action.end) for action in chosen])


def read_trials(path: Path) -> list[Trial]:
    """All trials of the file, in its order.

    Parameters
    ----------
    path : Path
        `mistakes.csv`.

    Returns
    -------
    list[Trial]
        Two of a video in which the starts go back once.
    """
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    trials = []
    for video, of_video in groupby(rows, key=lambda row: row["video"]):
        recordings: list[list[dict[str, str]]] = []
        for row in of_video:
            if not recordings or int(row["start_frame"]) < int(recordings[-1][-1]["start_frame"]):
                recordings.append([])
            recordings[-1].append(row)
        for number, recording in enumerate(recordings, start=1):
            actions = sorted(map(_action, recording), key=lambda action: (action.start, action.end, action.step))
            first = recording[0]
            trials.append(Trial(f"{video} {number}", first["toy"], video, first["participant"], tuple(actions)))
    return trials


def participant_folds(trials: Sequence[Trial], folds: int) -> dict[str, int]:
    """Put the participants into folds at random, always the same ones.

    Parameters
    ----------
    trials : sequence of Trial
        Of all participants.
    folds : int
        How many.

    Returns
    -------
    dict of str to int
        By participant, the number of the fold: 0, 1, …
    """
    participants = sorted({trial.participant for trial in trials})
    order = np.random.default_rng(0).permutation(len(participants))
    return {participant: int(place) % folds for participant, place in zip(participants, order, strict=True)}


def _action(row: dict[str, str]) -> Action:
    cause = PREVIOUS_MISTAKE if row["remark"].startswith("previous one is") else row["remark"]
    start, end = (int(row[frame]) / FRAMES_PER_SECOND for frame in ("start_frame", "end_frame"))
    return Action(row["verb"], row["this"], row["that"], start, end, row["label"], cause)

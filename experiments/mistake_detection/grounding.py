"""Segments from per-frame scores: with the learned graph, with a bigram in its place, and without either.

The recordings that the experiment `live` follows are seen in frames by its simulated recogniser; what went on is then
told by the whole of them. Scores are those of temporal segmentation: frames, edits of the order, and F1@50.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from experiments.experiment_options import ExperimentOptions
from experiments.logistic_regression import Numbers
from experiments.mistake_detection.annotated_mistakes import ANNOTATIONS
from experiments.mistake_detection.live import LiveOptions, engine_fingerprint, learn_recipe
from experiments.mistake_detection.live_followers import BigramFilter
from experiments.mistake_detection.simulated_recogniser import FRAMES_PER_SECOND, Recogniser, frame_labels
from experiments.result_tables import Result, Table, Value
from msg2.assist.belief import AssistantModel
from msg2.assist.contexts import StepIndices
from msg2.formats import read_all
from msg2.labelling.grounding import FrameScores, ground_video
from msg2.progress import Progress
from msg2.result_cache import Measurement, measure_cells
from msg2.task import Step, Video

ACCURACIES = (0.9, 0.75, 0.6)
OVERLAP = 0.5
WINDOWS = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0)
"""Seconds over which probabilities are averaged; the best is chosen on recordings that teach the graph."""
RECIPES = 4
"""The first so many of the twelve; each takes a minute of CPU time."""
TUNED = 4
"""Recordings of each recipe on which it is chosen."""
OURS, BIGRAM, BEST_GUESS = "msg2: graph, forecast, durations", "a bigram for the forecast", "best guess of each frame"
Frames = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class GroundingCell:
    """One recipe, seen by a recogniser of this accuracy."""

    recipe: str
    accuracy: float


@dataclass(frozen=True, slots=True)
class BigramForecaster:
    """The next step by the last one, whatever was done before; for `AssistantModel` as its forecaster."""

    transitions: Numbers
    """[last, next], with the start as the last row; shape (N + 1, N)."""
    repeated: frozenset[int] = frozenset()

    def after(self, prefixes: Sequence[StepIndices]) -> Numbers:
        """The probability of each step after each of some beginnings, shape (n, N)."""
        return np.asarray(self.transitions[[prefix[-1] if prefix else -1 for prefix in prefixes]])


def run(data: Path, options: ExperimentOptions, progress: Progress) -> Result:
    """Find segments in simulated scores of frames.

    Parameters
    ----------
    data : Path
        Folder of the annotation sets.
    options : ExperimentOptions
        `quick` takes two recordings of one recipe.
    progress : Progress
        Shows how far the work is.

    Returns
    -------
    Result
        The table, and the facts that make it repeatable.
    """
    chosen = LiveOptions.quick() if options.quick else LiveOptions(recipes=RECIPES)
    folder = data / "captaincook4d"
    names = [task.name for task in read_all(folder / ANNOTATIONS)][: chosen.recipes]
    engine = engine_fingerprint()
    found = measure_cells(
        [GroundingCell(name, accuracy) for name in names for accuracy in ACCURACIES],
        partial(_measure, folder, chosen),
        cell_options=lambda _: [repr(chosen), engine],
        file=None if options.folder is None else options.folder / "grounding.cells.json",
        jobs=options.jobs,
        progress=progress,
    )
    rows: list[list[Value]] = []
    recordings = 0
    for accuracy in ACCURACIES:
        measured = [one for cell, one in found.items() if cell.accuracy == accuracy]
        tuned = {window: _scores(_total(one["tuning"][str(window)] for one in measured)) for window in WINDOWS}
        best = max(WINDOWS, key=lambda window: sum(tuned[window]))
        for way, shown in ((OURS, OURS), (BIGRAM, BIGRAM), (str(best), f"best guess, over {best:g} s"),
                           (BEST_GUESS, BEST_GUESS)):  # fmt: skip
            counts = _total(one["ways"][way] for one in measured)
            recordings = counts["recordings"]
            rows.append([f"{100 * accuracy:.0f} %", shown, *_scores(counts), _sureness(counts)])
    recipes = len({cell.recipe for cell in found})
    note = f"{recordings:.0f} recordings of the first {recipes} recipes, in each row the same."
    columns = ["right", "way", "frames %", "edit score", "F1@50", "confidence, true"]
    facts = {"accuracies": ACCURACIES, "windows": WINDOWS, "options": repr(chosen)}
    return Result("grounding", [Table("Segments from scores of frames", columns, rows, [note, *NOTES])], facts)


NOTES = (
    "Of each recipe, three quarters of the recordings teach a graph, the forecast and the durations, and at most eight "
    "of the others, those of the experiment `live`, are seen by its recogniser: five times a second, with errors that "
    "last about five seconds. *Frames*: share of the frames, background among them, with the right step; *edit score*: "
    "100 less the edits, in percent of the longer list, that make one list of segments the other, a mean over "
    "recordings; *F1@50*: of segments, which are found where they overlap a true one of their step by half of their "
    "union. Background is no segment. *Confidence, true*: the mean confidence of the drafts, and the share of their "
    "frames that is right, in percent.",
    "*A bigram for the forecast*: the same filter and durations, but what begins next depends on the last step alone. "
    "*Best guess, over … s*: the most probable step after a moving average, whose width, one for all recipes, has the "
    "highest sum of the three scores on recordings that teach the graph.",
)


# -- scores -----------------------------------------------------------------------------------------------------------


def segments_of(frames: Frames, nothing: int) -> list[tuple[int, int, int]]:
    """Runs of the same step, as (step, first frame, frame after the last); `nothing` is none.

    >>> segments_of(np.array([2, 0, 0, 2, 1]), 2)
    [(0, 1, 3), (1, 4, 5)]
    """
    place, found = 0, []
    for step, same in groupby(frames.tolist()):
        length = len([*same])
        if step != nothing:
            found.append((step, place, place + length))
        place += length
    return found


def edit_score(true: Sequence[int], found: Sequence[int]) -> float:
    """100 less the edits (Levenshtein) in percent of the longer list.

    >>> edit_score([0, 1, 2], [0, 2, 2, 3]), edit_score([], [])
    (50.0, 100.0)
    """
    row = list(range(len(found) + 1))
    for length, wanted in enumerate(true, start=1):
        before, row = row, [length]
        for place, step in enumerate(found):
            row.append(min(before[place] + (step != wanted), before[place + 1] + 1, row[-1] + 1))
    return 100 * (1 - row[-1] / max(len(true), len(found), 1))


def overlapping(true: Sequence[tuple[int, int, int]], found: Sequence[tuple[int, int, int]]) -> int:
    """How many segments are found: each true one once, by an overlap of half of the union or more.

    >>> overlapping([(0, 0, 10), (1, 10, 20)], [(0, 0, 6), (0, 6, 9), (1, 0, 20)])
    2
    """
    free, hits = set(range(len(true))), 0
    for step, start, end in found:
        shares = {
            place: max(0, min(end, last) - max(start, first)) / (max(end, last) - min(start, first))
            for place, (name, first, last) in enumerate(true)
            if name == step
        }
        best = max(shares, key=lambda place: shares[place], default=None)
        if best is not None and best in free and shares[best] >= OVERLAP:
            free.remove(best)
            hits += 1
    return hits


def count_scores(true: Frames, found: Frames, nothing: int) -> dict[str, float]:
    """What the scores are made of, for one recording."""
    segments, drafts = segments_of(true, nothing), segments_of(found, nothing)
    return {
        "recordings": 1, "frames": len(true), "right": int((true == found).sum()),
        "edit": edit_score([step for step, _, _ in segments], [step for step, _, _ in drafts]),
        "segments": len(segments), "found": len(drafts), "hits": overlapping(segments, drafts),
    }  # fmt: skip


def _total(counts: Iterable[Mapping[str, float]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return total


def _scores(counts: Mapping[str, float]) -> tuple[float, float, float]:
    """Frames, edit score and F1@50."""
    frames, edit = 100 * counts["right"] / counts["frames"], counts["edit"] / counts["recordings"]
    return frames, edit, 200 * counts["hits"] / max(counts["segments"] + counts["found"], 1)


def _sureness(counts: Mapping[str, float]) -> str | None:
    """Of drafts: how sure they are, and how often they are right."""
    drafted = counts.get("drafted")
    return None if not drafted else f"{100 * counts['sure'] / drafted:.0f}, {100 * counts['true'] / drafted:.0f}"


# -- measuring --------------------------------------------------------------------------------------------------------


def _measure(folder: Path, chosen: LiveOptions, cell: GroundingCell) -> Measurement:
    recipe = learn_recipe(folder, chosen, cell.recipe)
    steps, recogniser = recipe.known.steps, Recogniser.with_accuracy(recipe.known.steps, cell.accuracy)
    models = {way: AssistantModel(recipe.graph, recipe.known, "skipped") for way in (OURS, BIGRAM)}
    bigram = BigramFilter.of(recipe.known, recipe.graph.steps).transitions
    models[BIGRAM].__dict__["forecaster"] = BigramForecaster(bigram)
    ways: dict[str, list[Mapping[str, float]]] = {way: [] for way in (*models, BEST_GUESS, *map(str, WINDOWS))}
    for video, _ in (*recipe.faultless, *recipe.faulty):
        true, scores = _seen(recogniser, video, steps)
        for way, model in models.items():
            ways[way].append(_grounded(model, scores, true))
        for window in WINDOWS:
            ways[str(window)].append(count_scores(true, smoothed(scores.probabilities, window), len(steps)))
        ways[BEST_GUESS].append(count_scores(true, scores.probabilities.argmax(axis=1), len(steps)))
    tuning: dict[str, list[Mapping[str, float]]] = {str(window): [] for window in WINDOWS}
    for video in recipe.known.sample(TUNED):
        true, scores = _seen(recogniser, video, steps)
        for window in WINDOWS:
            tuning[str(window)].append(count_scores(true, smoothed(scores.probabilities, window), len(steps)))
    return {name: {way: _total(counts) for way, counts in of.items()} for name, of in
            (("ways", ways), ("tuning", tuning))}  # fmt: skip


def _seen(recogniser: Recogniser, video: Video, steps: Sequence[Step]) -> tuple[Frames, FrameScores]:
    """The truth, and what the recogniser says, with background as the last column."""
    rng = np.random.default_rng([0, int("".join(filter(str.isdigit, video.id)))])
    reports = [*recogniser.frames(video, steps, rng)]
    values, at = np.array([report.probabilities for report in reports]), np.array([report.at for report in reports])
    return frame_labels(video, steps), FrameScores(video.id, (*steps, ""), values, at)


def _grounded(model: AssistantModel, scores: FrameScores, true: Frames) -> Mapping[str, float]:
    """As `msg2 label --from-scores` does it."""
    nothing = len(scores.steps) - 1
    found, sure = np.full(len(true), nothing, dtype=np.intp), np.zeros(len(true))
    for segment in ground_video(model, scores).segments:
        first, last = (round((time or 0.0) * FRAMES_PER_SECOND) for time in (segment.start, segment.end))
        found[first:last], sure[first:last] = scores.steps.index(segment.step), segment.confidence or 0.0
    drafted = found != nothing
    counts = count_scores(true, found, nothing)
    return {**counts, "drafted": int(drafted.sum()), "sure": float(sure.sum()),
            "true": int((found == true)[drafted].sum())}  # fmt: skip


def smoothed(probabilities: Numbers, seconds: float) -> Frames:
    """The most probable step of each frame after a moving average around it.

    >>> smoothed(np.array([[0.9, 0.1]] * 9 + [[0.2, 0.8]] + [[0.9, 0.1]] * 9), 1.0).tolist() == [0] * 19
    True
    """
    before = int(seconds * FRAMES_PER_SECOND / 2)
    sums = np.cumsum(np.vstack([np.zeros(probabilities.shape[1]), probabilities]), axis=0)
    place = np.arange(len(probabilities))
    low, high = np.maximum(place - before, 0), np.minimum(place + before + 1, len(place))
    return np.asarray(((sums[high] - sums[low]) / (high - low)[:, None]).argmax(axis=1))

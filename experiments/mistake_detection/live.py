"""Runs followed live behind a recogniser that errs: false alarms, mistakes caught, the next step, and calibration.

Of each CaptainCook4D recipe, three quarters of the recordings teach a graph and an assistant, and the others are
followed live, as `simulated_recogniser` reports them. The truth is the human task graph, and what was really done.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

import msg2.assist
from experiments.experiment_options import ExperimentOptions
from experiments.mistake_detection.annotated_mistakes import ANNOTATIONS
from experiments.mistake_detection.live_followers import (
    AssistantFollower,
    BigramFilter,
    FixedOrder,
    Follower,
    Input,
    SmoothedFrames,
)
from experiments.mistake_detection.simulated_recogniser import Recogniser, Report
from experiments.plots import grid_plot
from experiments.result_tables import Dot, Result, Table, Value, save_plot
from msg2.assist import Assistant
from msg2.assist.mistakes import ACCUSED
from msg2.formats import read_all, read_graph
from msg2.graph import SubtaskGraph
from msg2.inference import infer
from msg2.progress import Progress
from msg2.result_cache import Measurement, measure_cells
from msg2.simulation import NoiseOptions, RandomWorldOptions, SimulationOptions, random_world, simulate
from msg2.task import Segment, Step, Task, Video

THRESHOLDS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
WINDOW, FRAME_WINDOW = 2, 20.0
"""An alarm counts for a violation at its event or one of the next two; in frames, until 20 s after its end."""
EVERY = 4
"""Every fourth recording is followed."""
BINS = 10
OURS, _SMOOTHED = "msg2", "smoothed, "
_ALONE = ("fixed order of a list", "bigram filter")
_WAYS: Mapping[Input, Sequence[str]] = {
    "did": (OURS, *_ALONE),
    "saw": (OURS, "best guess → did", *_ALONE),
    "observe": (OURS, *(f"{_SMOOTHED}{way}" for way in ("best guess → did", *_ALONE))),
}
"""The followers of each input."""


@dataclass(frozen=True, slots=True)
class Source:
    """How a run is told: what is called, how often the recogniser is right, and how many recognisers are drawn."""

    title: str
    use: Input
    accuracy: float
    seeds: int = 1


SOURCES: Sequence[Source] = (
    Source("every step told", "did", 1.0),
    Source("segments, 90 % right", "saw", 0.9, 3),
    Source("segments, 75 % right", "saw", 0.75, 3),
    Source("segments, 60 % right", "saw", 0.6, 3),
    Source("frames, 90 % right", "observe", 0.9),
    Source("frames, 60 % right", "observe", 0.6),
)


@dataclass(frozen=True, slots=True)
class LiveOptions:
    """How much is followed (`python -m experiments live`)."""

    recipes: int | None = None
    """Only the first so many."""
    recordings: int = 4
    """Of each recipe at most so many without a violation, and so many with one."""
    seeds: int = 3
    """Most recognisers of each accuracy."""
    worlds: int = 50
    first_world: int = 9000
    """The seed of the first one; the others follow."""
    taught: int = 40
    """Simulated runs that teach a graph; half as many more are followed."""
    noise: NoiseOptions = field(
        default_factory=lambda: NoiseOptions(skipped=0.03, unlabelled=0.0, swapped=0.06, repeated=0.0, mislabelled=0.0)
    )
    world: RandomWorldOptions = field(default_factory=lambda: RandomWorldOptions(steps=12, depth=4, or_rate=0.0))

    @staticmethod
    def quick() -> LiveOptions:
        """A minute's part of it."""
        return LiveOptions(recipes=1, recordings=1, seeds=1, worlds=2)


@dataclass(frozen=True, slots=True)
class LiveCell:
    """One recipe told in one way; or a simulated world."""

    group: str
    source: str


@dataclass(frozen=True, slots=True)
class LiveTruth:
    """What the true graph says of one run. `early`: done before, or without, something that they need; `late`: what
    such steps needed; `overdue`: what they needed through others as well. `first` has the first segment of each step.
    """

    early: frozenset[Step]
    late: frozenset[Step]
    overdue: frozenset[Step]
    first: Mapping[Step, Segment]

    @staticmethod
    def of(video: Video, graph: SubtaskGraph) -> LiveTruth:
        """A step is early if it had ended when one that it needs began; overlaps are fine."""
        first: dict[Step, Segment] = {}
        for segment in sorted(video.segments, key=lambda segment: segment.start or 0.0):
            first.setdefault(segment.step, segment)

        def comes_after(needed: Step, name: Step) -> bool:
            return (first[needed].start or 0.0) >= (first[name].end or 0.0) - 1e-9

        def reversed_for(ancestors: Callable[[Step], Iterable[Step]]) -> list[tuple[Step, Step]]:
            return [(a, b) for b in first for a in ancestors(b) if a in first and comes_after(a, b)]

        pairs = reversed_for(graph.parents)
        lacking = {name for name in first if not graph.parents(name) <= first.keys()}
        return LiveTruth(
            frozenset({early for _, early in pairs} | lacking),
            frozenset(late for late, _ in pairs),
            frozenset(late for late, _ in reversed_for(graph.ancestors)),
            first,
        )


@dataclass(frozen=True, slots=True, eq=False)
class LiveRecipe:
    """The recordings that are known, a graph of them, and those that are followed, with what is true of them."""

    known: Task
    graph: SubtaskGraph
    faultless: Sequence[tuple[Video, LiveTruth]]
    faulty: Sequence[tuple[Video, LiveTruth]]


def run(data: Path, options: ExperimentOptions, progress: Progress) -> Result:
    """Follow recordings and simulated runs live.

    Parameters
    ----------
    data : Path
        Folder of the annotation sets.
    options : ExperimentOptions
        `quick` follows two recordings of one recipe.
    progress : Progress
        Shows how far the work is.

    Returns
    -------
    Result
        The tables, the facts that make them repeatable, and the chart.
    """
    chosen = LiveOptions.quick() if options.quick else LiveOptions()
    folder = data / "captaincook4d"
    names = [task.name for task in read_all(folder / ANNOTATIONS)][: chosen.recipes]
    cells = [LiveCell(name, source.title) for source in SOURCES for name in names]
    cells += [LiveCell(f"world {chosen.first_world + number}", "simulated") for number in range(chosen.worlds)]
    engine = engine_fingerprint()
    found = measure_cells(
        cells,
        partial(_measure, folder, chosen),
        cell_options=lambda _: [repr(chosen), engine],
        file=None if options.folder is None else options.folder / "live.cells.json",
        jobs=options.jobs,
        progress=progress,
    )
    by_source: dict[str, list[Measurement]] = {}
    for cell, measured in found.items():
        by_source.setdefault(cell.source, []).append(measured)
    table = _scores_table(by_source)
    tables = [table, _trade_off_table(by_source), _calibration_table(by_source)]
    chart = {column: _dots(table, column) for column in ("accused %", "caught %", "next %")}
    if options.folder is not None:
        save_plot(options.folder / "live-trade-off.svg", partial(_trade_off_plot, by_source))
    facts = {"seeds": {source.title: min(source.seeds, chosen.seeds) for source in SOURCES}, "options": repr(chosen)}
    return Result("live", tables, facts, chart)


def follow(
    video: Video, truth: LiveTruth, follower: Follower, reports: Iterable[Report], framed: bool
) -> dict[str, int]:
    """Follow one recording, and count.

    Parameters
    ----------
    video : Video
        What is really done.
    truth : LiveTruth
        What of it is wrong.
    follower : Follower
        Who is told the reports, and asked before each step (in frames, when it begins) which one comes next.
    reports : iterable of Report
        Of a recogniser.
    framed : bool
        Whether they are frames.

    Returns
    -------
    dict of str to int
        Under names: questions, how many were answered rightly or with a step already done; alarms; violations, how many
        were caught; and the four counts behind both F1.
    """
    ends = sorted((segment.end or 0.0, segment.step) for segment in video.segments)
    starts = sorted((segment.start or 0.0, name) for name, segment in truth.first.items())
    counts: Counter[str] = Counter()
    done: set[Step] = set()
    asked: set[Step] = set()
    alarms: list[tuple[int, float]] = []
    due: list[tuple[int, float, float]] = []  # at which report a violation ends, when, and when it began
    overdue: set[int] = set()
    number = -1
    for number, report in enumerate(reports):
        finished = [name for end, name in ends if end <= report.at + 1e-9 and name not in done]
        begun = [name for start, name in starts if start <= report.at + 1e-9] if framed else finished
        for name in begun:
            if name not in asked and name not in done:
                asked.add(name)
                expected = follower.expects()
                counts.update(asked=1, next=expected == name, repeated=expected in done)
        if follower.tell(report):
            alarms.append((number, report.at))
        done.update(finished)
        due += [(number, report.at, truth.first[name].start or 0.0) for name in finished if name in truth.early]
        if not truth.late.isdisjoint(finished):
            overdue.add(number)
    for place, end, start in due:
        hits = ((start <= at <= end + FRAME_WINDOW) if framed else (0 <= n - place <= WINDOW) for n, at in alarms)
        counts.update(violations=1, caught=any(hits))
    raised = {place for place, _ in alarms}
    due_at = {place for place, _, _ in due}
    excused = {place + late for place in due_at for late in range(WINDOW + 1)}
    for place in range(number + 1):
        if place in due_at:
            counts["hit" if not raised.isdisjoint(range(place, place + WINDOW + 1)) else "missed"] += 1
        elif place not in overdue and not (place in raised and place in excused):
            counts["false alarm" if place in raised else "rightly silent"] += 1
    return {**counts, "alarms": len(alarms)}


def judged_events(follower: AssistantFollower, truth: LiveTruth) -> list[tuple[float, bool]]:
    """The probability of a mistake in every report of an assistant, and whether there is one.

    A report is about the steps of its findings, or without any about the step itself; what has not begun is no mistake.
    """
    begins = {name: truth.first[name].start or 0.0 for name in truth.early | truth.overdue}
    judged = []
    for report in follower.reports:
        if report.step:
            about = {finding.step for finding in report.findings} or {report.step}
            real = any(begins.get(name, math.inf) <= (report.at or 0.0) for name in about)
            judged.append((report.probability, real))
    return judged


def calibration_error(judged: Sequence[tuple[float, bool]], bins: int = BINS) -> tuple[float, list[list[float]]]:
    """The mean distance of probability and truth over bins of equal size, and (events, probability, truth) of each.

    >>> calibration_error([(0.1, False), (0.1, False), (0.9, True), (0.9, False)], bins=2)[0]
    0.25
    """
    ordered = sorted(
        judged, key=lambda one: one[0]
    )  # of equal ones, the order of time: it does not depend on the truth
    parts = [part for part in np.array_split(np.array(ordered, dtype=np.float64).reshape(-1, 2), bins) if len(part)]
    means = [[float(len(part)), *map(float, part.mean(axis=0))] for part in parts]
    return sum(count * abs(said - true) for count, said, true in means) / max(1, len(ordered)), means


# -- measuring --------------------------------------------------------------------------------------------------------


def _measure(folder: Path, chosen: LiveOptions, cell: LiveCell) -> Measurement:
    if cell.source == "simulated":
        return {"judged": _judge_world(int(cell.group.split()[-1]), chosen)}
    source = next(one for one in SOURCES if one.title == cell.source)
    recipe, steps = learn_recipe(folder, chosen, cell.group), learn_recipe(folder, chosen, cell.group).known.steps
    recogniser, framed = Recogniser.with_accuracy(steps, source.accuracy), source.use == "observe"
    assistant = Assistant(recipe.graph, recipe.known)
    ways = followers(recipe.known, assistant, source.use)
    counts: dict[str, Counter[str]] = {way: Counter() for way in ways}
    judged: list[tuple[float, bool]] = []
    for seed in range(min(source.seeds, chosen.seeds)):
        for way, make in ways.items():
            for video, truth, faultless in _followed(recipe):
                follower = make()
                reports = _reports(recogniser, video, steps, seed, framed)
                _add(counts[way], follow(video, truth, follower, reports, framed), faultless)
                if way == OURS and isinstance(follower, AssistantFollower) and not framed:
                    judged += judged_events(follower, truth)
    trade_off: dict[str, Counter[str]] = {}
    for threshold in () if framed else THRESHOLDS:
        strict = Assistant(recipe.graph, recipe.known, threshold=threshold)
        total = trade_off.setdefault(str(threshold), Counter())
        for video, truth, faultless in _followed(recipe):
            follower = AssistantFollower(strict.new_run(), steps, source.use)
            _add(
                total, follow(video, truth, follower, _reports(recogniser, video, steps, 0, framed), framed), faultless
            )
    return {"ways": counts, "trade-off": trade_off, "judged": judged}


Ways: TypeAlias = Mapping[str, Callable[[], Follower]]


def followers(known: Task, assistant: Assistant, use: Input) -> Ways:
    """By name, what makes a follower of a new run: msg2 first, then the alternatives."""
    steps = known.steps
    alone: Mapping[str, Callable[[], Follower]] = {
        "best guess → did": lambda: AssistantFollower(assistant.new_run(), steps, "did"),
        "fixed order of a list": lambda: FixedOrder.of(known, steps),
        "bigram filter": lambda: BigramFilter.of(known, steps),
    }
    ways: dict[str, Callable[[], Follower]] = {OURS: lambda: AssistantFollower(assistant.new_run(), steps, use)}
    for way in _WAYS[use][1:]:
        make = alone[way.removeprefix(_SMOOTHED)]
        ways[way] = partial(_smoothed, make) if way.startswith(_SMOOTHED) else make
    return ways


def _smoothed(make: Callable[[], Follower]) -> Follower:
    return SmoothedFrames(make())


def _followed(recipe: LiveRecipe) -> Iterator[tuple[Video, LiveTruth, bool]]:
    for faultless, of_kind in ((True, recipe.faultless), (False, recipe.faulty)):
        yield from ((video, truth, faultless) for video, truth in of_kind)


def _reports(recogniser: Recogniser, video: Video, steps: Sequence[Step], seed: int, framed: bool) -> Iterator[Report]:
    rng = np.random.default_rng([seed, int("".join(filter(str.isdigit, video.id)))])
    return (recogniser.frames if framed else recogniser.events)(video, steps, rng)


def _add(total: Counter[str], counts: Mapping[str, int], faultless: bool) -> None:
    total.update({name: count for name, count in counts.items() if name != "alarms"})
    if faultless:
        total.update({"faultless": 1, "alarms": counts["alarms"], "accused": counts["alarms"] > 0})


@lru_cache(maxsize=2)
def learn_recipe(folder: Path, chosen: LiveOptions, name: str) -> LiveRecipe:
    """What is not followed teaches; what is faultless has every step, nothing marked as an error and nothing early."""
    path = folder / ANNOTATIONS
    (task,) = (one for one in read_all(path, order="time", repeats="keep") if one.name == name)
    marked = json.loads(path.read_text(encoding="utf-8"))
    human = read_graph(folder / "task_graphs" / f"{''.join(filter(str.isalpha, name)).lower()}.json")
    videos = sorted(task.videos, key=lambda video: video.id)
    tested = [(video, LiveTruth.of(video, human)) for video in videos[::EVERY]]
    ids = {video.id for video, _ in tested}
    known = Task(name, task.steps, [video for video in videos if video.id not in ids], absent="skipped")
    faulty = [(video, truth) for video, truth in tested if truth.early]
    faultless = [
        (video, truth)
        for video, truth in tested
        if not truth.early
        and truth.first.keys() == set(task.steps)
        and not any(step["has_errors"] for step in marked[video.id]["steps"])
    ]
    return LiveRecipe(known, infer(known), faultless[: chosen.recordings], faulty[: chosen.recordings])


def _judge_world(seed: int, chosen: LiveOptions) -> list[tuple[float, bool]]:
    """The probabilities of mistakes in simulated runs, every step told."""
    followed = chosen.taught // 2
    options = SimulationOptions(videos=chosen.taught + followed, noise=chosen.noise)
    simulation = simulate(random_world(chosen.world, seed), options, seed)
    videos, steps = simulation.task.videos, simulation.task.steps
    known = Task(simulation.task.name, steps, videos[: chosen.taught], absent="skipped")
    assistant, judged = Assistant(infer(known), known), list[tuple[float, bool]]()
    for video in videos[chosen.taught :]:
        follower = AssistantFollower(assistant.new_run(), steps, "did")
        for segment in video.segments:
            follower.tell(Report(segment.end or 0.0, np.array([*(float(name == segment.step) for name in steps), 0.0])))
        judged += judged_events(follower, LiveTruth.of(video, simulation.graph))
    return judged


def engine_fingerprint() -> str:
    """Of the sources that follow a run: cells that another version measured are measured again."""
    whole = hashlib.sha256()
    for path in sorted(Path(msg2.assist.__path__[0]).glob("*.py")):
        whole.update(path.read_bytes())
    return whole.hexdigest()[:16]


# -- tables -----------------------------------------------------------------------------------------------------------


def _total(measured: Iterable[Mapping[str, int]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for counts in measured:
        total.update(counts)
    return total


def _f1(hit: int, extra: int, missed: int) -> float:
    return 2 * hit / max(1, 2 * hit + extra + missed)


def _g_mean(counts: Mapping[str, int]) -> float:
    """Of the F1 of events that deserve an alarm, and of those that do not."""
    hit, silent = counts["hit"], counts["rightly silent"]
    false, missed = counts["false alarm"], counts["missed"]
    return math.sqrt(_f1(hit, false, missed) * _f1(silent, missed, false))


def _percent(counts: Mapping[str, int], part: str, whole: str) -> float | None:
    return 100 * counts[part] / counts[whole] if counts[whole] else None


def _scores_table(by_source: Mapping[str, Sequence[Measurement]]) -> Table:
    rows: list[list[Value]] = []
    for source in SOURCES:
        measured = by_source[source.title]
        for way in _WAYS[source.use]:
            counts = _total(one["ways"][way] for one in measured)
            silent = "bigram" in way  # it raises no alarms
            each = counts["alarms"] / counts["faultless"] if counts["faultless"] else None
            alarms = [_percent(counts, "accused", "faultless"), each, _percent(counts, "caught", "violations")]
            framed = source.use == "observe"
            rows.append([source.title, way, *(None if silent else value for value in alarms),
                         _percent(counts, "next", "asked"), _percent(counts, "repeated", "asked"),
                         None if silent or framed else _g_mean(counts)])  # fmt: skip
    told = _total(one["ways"][OURS] for one in by_source[SOURCES[0].title])
    note = f"{told['faultless']} faultless recordings, {told['violations']} violations; the same for every row."
    columns = ["input", "follower", "accused %", "alarms each", "caught %", "next %", "repeated %", "g-mean"]
    return Table("Recordings followed live", columns, rows, [note, *NOTES])


NOTES = (
    "Three quarters of the recordings of each recipe, those with mistakes among them, teach a graph and an assistant; "
    "every fourth is followed. Faultless are those with every step, without a mark and without a violation. A step is "
    "a violation where it had ended before something that the human task graph says it needs began, or was done "
    "without it. *Accused*: faultless recordings with an alarm; *alarms each*: alarms per faultless recording; "
    "*caught*: violations with an alarm at that event or one of the next two (frames: from the start of the "
    "step to 20 s after its end); *next*: the step that comes is expected; *repeated*: a step that is already done is "
    "expected; *g-mean*: of the F1 of events that deserve an alarm and of those that do not.",
    "The recogniser is simulated: it takes steps for others with similar names, misses 5, 12.5 or 20 % of the "
    "segments, and reports during pauses; its probabilities are calibrated. Frames come five times a second, with "
    "errors that last about five seconds. Segments: three recognisers of each accuracy, one after the other.",
    "The alternatives: the most probable step is told to msg2 as done; a list in the usual order, in which each step "
    "waits for those above it; and a filter over the last step with counted transitions, which knows no mistakes. "
    "Frames reach them through a moving average over five seconds: what leads it for three seconds is a segment.",
)


def _trade_off_table(by_source: Mapping[str, Sequence[Measurement]]) -> Table:
    rows: list[list[Value]] = []
    for title, threshold, counts in _trade_offs(by_source):
        each = counts["alarms"] / counts["faultless"] if counts["faultless"] else None
        rows.append([title, threshold, _percent(counts, "accused", "faultless"), each,
                     _percent(counts, "caught", "violations"), _g_mean(counts)])  # fmt: skip
    note = "One recogniser of each accuracy. The threshold that `alarm_cost` c stands for is c / (1 + c)."
    columns = ["input", "threshold", "accused %", "alarms each", "caught %", "g-mean"]
    return Table("The threshold: false alarms against mistakes caught", columns, rows, [note])


def _trade_offs(by_source: Mapping[str, Sequence[Measurement]]) -> Iterator[tuple[str, float, Counter[str]]]:
    for source in SOURCES:
        measured = by_source[source.title]
        for threshold in () if source.use == "observe" else THRESHOLDS:
            yield source.title, threshold, _total(one["trade-off"][str(threshold)] for one in measured)


def _calibration_table(by_source: Mapping[str, Sequence[Measurement]]) -> Table:
    """The error of every source, and its bins."""
    rows: list[list[Value]] = []
    notes = [
        "Ten bins of equal size over all judged events, from the least to the most probable: what was said → what is "
        "true, in percent. A mistake is a violation as above, or a step that comes after one that needs it, directly "
        "or through others. Most events have a probability near 0, which makes the error small: beside it, those with "
        "a probability of one half or more. Simulated: random worlds of 12 steps without ORs, 40 runs each to learn "
        "from and 20 to follow, in which 3 % of the steps are skipped and 6 % of neighbours swapped."
    ]
    for title, measured in by_source.items():
        judged = [(float(p), bool(true)) for one in measured for p, true in one["judged"]]
        if judged:
            error, bins = calibration_error(judged)
            shown = ", ".join(f"{100 * said:.0f} → {100 * true:.0f}" for _, said, true in bins)
            share = 100 * sum(true for _, true in judged) / len(judged)
            likely = [(p, true) for p, true in judged if p >= ACCUSED]
            means = [100 * float(value) for value in np.mean(likely, axis=0)] if likely else [None, None]
            rows.append([title, len(judged), share, 100 * error, len(likely), *means, shown])
    columns = ["input", "events", "mistakes %", "calibration error %", "probability ≥ 0.5", "said %", "true %",
               "all bins, said → true"]  # fmt: skip
    return Table("Calibration of live probabilities", columns, rows, notes)


def _dots(table: Table, column: str) -> dict[str, Dot]:
    place = table.columns.index(column)
    values = {f"{row[0]}: {row[1]}": row[place] for row in table.rows}
    return {name: Dot(value) for name, value in values.items() if isinstance(value, float)}


def _trade_off_plot(by_source: Mapping[str, Sequence[Measurement]]) -> bytes:
    points: dict[str, list[tuple[float, float]]] = {}
    for title, _, counts in _trade_offs(by_source):
        accused, caught = _percent(counts, "accused", "faultless"), _percent(counts, "caught", "violations")
        if accused is not None and caught is not None:
            points.setdefault(title, []).append((accused, caught))
    curves: dict[tuple[str, str], Any] = {("caught", "thresholds from 0.3 to 0.9"): points}
    return grid_plot(curves, "False alarms and mistakes caught", across="faultless recordings accused, percent")

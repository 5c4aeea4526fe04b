"""Draft labels from narration: what `msg2 label` and `msg2.label` do.

Steps are named by a list, by the labels of a few videos, or are discovered in what is said. Every video without labels
gets a draft, with the probability that each of its labels is right: isotonic regression of hits on the model's own
confidence, over held-out labelled videos, minimises Σ (hit_i − f(confidence_i))² over increasing f.

Drafts count for the graph where they make held-out labels more probable. Graphs are learned from some of the labelled
videos, without drafts and with those of at least some confidence, and compared on the labels of the other videos by a
paired t-test: mean(d) > t₀.₉₅ sd(d) / √n for the n differences d of log p.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.assist.assistant import GraphSource, load_graph
from msg2.assist.sequence_likelihood import SequenceLikelihood
from msg2.errors import InputError, require
from msg2.formats.captions import name_finder
from msg2.formats.conversion import Demonstrations, to_tasks_with_repeats
from msg2.formats.feature_store import VideoFeatures, open_store
from msg2.formats.reading import choose_task
from msg2.inference import infer
from msg2.labelling.alignment import LEAST_VIDEOS, NO_LABELS, Aligner, AlignmentOptions, Drafts, LabelUse
from msg2.labelling.grounding import ground_scores
from msg2.labelling.step_names import DiscoveredStep, StepList, discover_steps, read_steps
from msg2.llm import ChatClient, draft_labels, propose_steps
from msg2.media.narration import read_transcripts
from msg2.media.verb_phrases import VerbPhraseExtractor
from msg2.metrics.calibration import CalibrationBin, NextStepPrediction, score_calibration
from msg2.options import Count, Probability, options_class
from msg2.progress import Progress, no_progress
from msg2.sequences import FloatArray
from msg2.task import DRAFT, LLM, Sentence, Step, Task, Video
from msg2.text import short_repr
from msg2.text_encoders import text_encoder as make_encoder

LEAST_DRAFTS = 150
"""Held-out drafts from which on a confidence can be checked: a share of so many is known to about 4 points."""


Calibrator: TypeAlias = partial[FloatArray]  # the model's confidences -> probabilities, increasing


def fit_calibrator(confidence: FloatArray, is_hit: NDArray[np.bool_]) -> Calibrator:
    """Fit an increasing function to hits; levels of few drafts are drawn to the share of hits among all."""
    from scipy.optimize import isotonic_regression

    order = np.argsort(confidence, kind="stable")
    fitted = isotonic_regression(is_hit[order].astype(np.float64))
    levels, start, size = np.unique(fitted.x, return_index=True, return_counts=True)
    mean = is_hit.mean()
    knots = np.add.reduceat(confidence[order], start) / size
    return partial(np.interp, xp=knots, fp=(levels * size + 2 * mean) / (size + 2))


class DraftCalibration(NamedTuple):
    """How true the confidences are, by cross-fitting on held-out labelled videos."""

    videos: int
    bins: tuple[CalibrationBin, ...]
    error: float
    """The expected calibration error."""


def cross_fitted(confidence: FloatArray, is_hit: NDArray[np.bool_]) -> FloatArray:
    """Calibrate every video by the others: rows are videos."""
    part = np.arange(len(confidence)) % min(10, len(confidence))
    calibrated = np.zeros(confidence.shape)
    for fold in range(part.max() + 1):
        others = part != fold
        calibrated[~others] = fit_calibrator(confidence[others].ravel(), is_hit[others].ravel())(confidence[~others])
    return calibrated


def check_calibration(probability: FloatArray, is_hit: NDArray[np.bool_]) -> DraftCalibration:
    """Compare probabilities with what was the case: rows are videos."""
    pairs = zip(probability.ravel().tolist(), is_hit.ravel().tolist(), strict=True)
    scores = score_calibration([NextStepPrediction(p, float(hit), p if hit else 1 - p) for p, hit in pairs])
    return DraftCalibration(len(probability), scores.bins, scores.expected_calibration_error)


FEW_LABELS = LabelUse(0.3, 1.0)
LABEL_USES = (FEW_LABELS, LabelUse(0.3, 0.5), LabelUse(0.0, 0.5))  # of these, held-out labels choose one
FOLDS = 3


@dataclass(frozen=True, slots=True, eq=False)
class HeldOutDrafts:
    """Drafts of labelled videos by models that did not know their labels; rows are labelled videos."""

    use: LabelUse  # the best of `LABEL_USES`: the most hits, the first of equals
    videos: NDArray[np.intp]
    fold: NDArray[np.intp]  # which of them were held out together
    drafts: tuple[Drafts, ...]  # for each fold, those that know the labels of the others
    confidence: FloatArray
    is_hit: NDArray[np.bool_]


def held_out_drafts(aligner: Aligner, labelled: Sequence[int], folds: int = FOLDS) -> HeldOutDrafts:
    """Draft every labelled video without its labels, and choose what videos without labels count."""
    videos = np.asarray(labelled, np.intp)
    part = np.random.default_rng(0).permutation(len(videos)) % min(folds, len(videos))
    attempts = []
    for use in LABEL_USES:
        drafts = tuple(aligner.draft(videos[part != fold].tolist(), use) for fold in range(part.max() + 1))
        rows = [(drafts[fold], int(video)) for video, fold in zip(videos, part, strict=True)]
        confidence = np.array([own.confidence[video] for own, video in rows])
        is_hit = np.array([aligner.hits(own, video) for own, video in rows])
        attempts.append(HeldOutDrafts(use, videos, part, drafts, confidence, is_hit))
    return max(attempts, key=lambda attempt: int(attempt.is_hit.sum()))


CONFIDENCES = (0.7, 0.5, 0.3)  # drafts of at least one of these may count
NO_DRAFTS = 1.0  # no draft is as sure as this
_LEVEL = 0.95  # of the one-sided test


def choose_confidence(parts: Sequence[tuple[Task, Sequence[Video]]]) -> float:
    """Choose from which confidence on drafts count for the graph."""
    alone = _held_out_fit(parts, NO_DRAFTS)
    gains = {least: _held_out_fit(parts, least) - alone for least in CONFIDENCES}
    better = [least for least in CONFIDENCES if all(map(_is_positive, gains[least].T))]
    return max(better, key=lambda least: float(gains[least].sum()), default=NO_DRAFTS)


def _held_out_fit(parts: Sequence[tuple[Task, Sequence[Video]]], least: float) -> FloatArray:
    """log p of each held-out video, and of the order of its steps alone; shape (n, 2)."""
    fits = []
    for task, held_out in parts:
        likelihood = SequenceLikelihood(infer(task.with_sure_drafts(least).with_first_labels()))
        fits += [(likelihood.log_probability(video), likelihood.order_log_probability(video)) for video in held_out]
    return np.array(fits)


def _is_positive(differences: FloatArray) -> bool:
    """Whether the mean is above zero by a one-sided t-test."""
    from scipy.special import stdtrit

    count = len(differences)
    return bool(differences.mean() > stdtrit(count - 1, _LEVEL) * differences.std(ddof=1) / np.sqrt(count))


UNCHECKED = 0.4
"""Part of the model's own confidence that is written where no labels check it: on other tasks it was too sure."""


@options_class
class LabelOptions:
    """How labels are drafted (`msg2 label`)."""

    any_order: bool = False
    """The steps are listed in no particular order; by default the list has them in their usual one."""
    presence: Probability = 0.5
    """A step is drafted in a video that shows it with at least this probability."""
    discovered: Count = 12
    """Steps that are proposed where none are named."""
    alignment: AlignmentOptions = field(default_factory=AlignmentOptions)


@dataclass(frozen=True, slots=True)
class LabelResult:
    """Labels of a task: those that were given, verbatim, and drafts of the other videos."""

    task: Task
    way: str
    """What the steps are known from: "step names", "labels" or "narration"; or "scores of frames"."""
    steps: tuple[Step, ...]
    """In their usual order, as far as it is known."""
    notes: tuple[str, ...]
    calibration: DraftCalibration | None
    """How true the confidences are; None where there are too few labelled videos to tell."""
    graph_confidence: float
    """Drafts count for the graph from this confidence on: 0 where there are no labels, `NO_DRAFTS` if none count."""
    discovered: tuple[DiscoveredStep, ...] = ()

    @property
    def drafted(self) -> int:
        """How many labels are drafts."""
        return sum(segment.source in (DRAFT, LLM) for video in self.task for segment in video.segments)

    def for_graph(self) -> Task:
        """The labels that a graph is to be learned from: drafts only where they are sure enough."""
        return self.task.with_sure_drafts(self.graph_confidence)


def draft_with(aligner: Aligner, task: Task, options: LabelOptions) -> LabelResult:
    """Draft the labels of a task whose narration is prepared."""
    with_labels = {video.id for video in task if video.segments}
    labelled = [number for number, video in enumerate(aligner.grid.videos) if video.id in with_labels]
    held_out = held_out_drafts(aligner, labelled) if len(labelled) >= LEAST_VIDEOS else None
    use = held_out.use if held_out is not None else FEW_LABELS if labelled else NO_LABELS
    drafts = aligner.draft(labelled, use)
    confidence, calibration, least, notes = UNCHECKED * drafts.confidence, None, NO_DRAFTS if labelled else 0.0, []
    if held_out is None or held_out.is_hit.size < LEAST_DRAFTS:
        count = f"{len(labelled)} labelled videos are too few" if labelled else "without labels there is no way"
        enough = f"labels of {-(-LEAST_DRAFTS // max(len(task.steps), 1))} videos would do"
        notes.append(f"{count} to tell how true the confidences are: they are the model's own, not checked; {enough}")
    else:
        calibration = check_calibration(cross_fitted(held_out.confidence, held_out.is_hit), held_out.is_hit)
        calibrate = fit_calibrator(held_out.confidence.ravel(), held_out.is_hit.ravel())
        confidence = calibrate(drafts.confidence)
        least = choose_confidence(_held_out_parts(aligner, task, held_out, calibrate, options.presence))
    drafted = aligner.add_drafts(task, drafts, confidence, labelled=labelled, presence=options.presence)
    return LabelResult(drafted, "labels" if labelled else "step names", task.steps, tuple(notes), calibration, least)


def _held_out_parts(
    aligner: Aligner, task: Task, held_out: HeldOutDrafts, calibrate: Calibrator, presence: float
) -> list[tuple[Task, list[Video]]]:
    """For every fold, the task as if it had no labels there, with the drafts that follow; and the labels there."""
    parts = []
    for fold, drafts in enumerate(held_out.drafts):
        known = held_out.videos[held_out.fold != fold].tolist()
        ids = {aligner.grid.videos[number].id for number in held_out.videos[held_out.fold == fold]}
        rest = task.with_videos(video for video in task if video.id not in ids)
        rest = aligner.add_drafts(rest, drafts, calibrate(drafts.confidence), labelled=known, presence=presence)
        parts.append((rest, [video for video in task if video.id in ids]))
    return parts


PHRASE_MODEL = "en_core_web_sm"


def label(
    data: str | Path | None = None,
    steps: str | Path | Sequence[Step] | None = None,
    labels: Demonstrations | None = None,
    *,
    scores: str | Path | None = None,
    graph: GraphSource | None = None,
    fps: float | None = None,
    task: str | None = None,
    text_encoder: str = "words",
    features: str | Path | None = None,
    captions: str | Path | None = None,
    speech_model: str | None = None,
    phrase_model: str | None = None,
    llm: ChatClient | None = None,
    options: LabelOptions | None = None,
    jobs: int = 1,
    engine: str = "local",
    progress: Progress = no_progress,
) -> LabelResult:
    """Draft the labels of videos from what is said in them, or from what a recogniser makes of their frames.

    Parameters
    ----------
    data : str or Path, optional
        A folder of videos, captions or transcripts of one task; None with `scores`.
    steps : path or sequence of Step, optional
        Names of the steps: a list, a text with one step per line, or a graph file.
    labels : path, Task, data frame, iterable or mapping, optional
        The labels of some of the videos, with times: whatever `msg2.infer` takes.
    scores : str or Path, optional
        A folder with the probability of each step in each frame: a file per video (.npy, .npz, .csv), a column per
        step. A graph, or labels to learn one from, says in which order steps come.
    graph : SubtaskGraph, path or mapping, optional
        With `scores`.
    fps : float, optional
        Frames per second of scores without times.
    task : str, optional
        Name of the task: of several in `labels`, the one that is meant; else what the result is called.
    text_encoder : str
        "words", or the folder or name of a sentence encoder.
    features : str or Path, optional
        The feature store of the videos: their frames join what is said.
    captions : str or Path, optional
        A folder of captions; by default they lie beside the videos.
    speech_model : str, optional
        A Whisper model for videos without captions.
    phrase_model : str, optional
        A spaCy model for the discovery of steps, where none are named.
    llm : ChatClient, optional
        A language model that names the steps, where none are named, and drafts the labels, in the place of msg2.
    options : LabelOptions, optional
    jobs, engine : int, str
        How many processes recognise speech, and where: "local", on this machine, or "ray", on a cluster.
    progress : Progress
        Called after every video.

    Returns
    -------
    LabelResult

    Raises
    ------
    InputError
        Where there is no narration, or no step to look for; for scores that are no probabilities.

    >>> result = label("transcripts", steps="steps.txt")  # doctest: +SKIP
    >>> result = label(scores="probabilities", graph="toast.json", fps=5)  # doctest: +SKIP
    >>> msg2.infer(result.for_graph())  # doctest: +SKIP
    """
    options = options or LabelOptions()
    labelled = None if labels is None else _read_labels(labels, task)
    if scores is not None:
        require(data is None and steps is None, "scores are the data: give neither videos nor steps beside them")
        return _label_from_scores(scores, graph, labelled, fps, progress)
    require(graph is None and fps is None, "graph and fps go with scores", hint="name the steps with `steps`")
    if data is None:
        raise InputError("there is nothing to label", hint="give a folder of videos, or scores")
    listed = None if steps is None else read_steps(steps)
    name = task or (labelled.name if labelled is not None else Path(data).resolve().stem)
    discovers = listed is None and labelled is None
    if llm is not None:
        require(labelled is None, "a language model drafts without labels", hint="leave out either")
        said = read_transcripts(
            data, captions=captions, speech_model=speech_model, jobs=jobs, engine=engine, progress=progress
        )
        return _label_by_model(llm, name, listed, said, progress)
    read = partial(
        read_transcripts, data, captions=captions, speech_model=speech_model, jobs=jobs, engine=engine,
        progress=progress,
    )  # fmt: skip
    said = read(exact=discovers)
    encode = make_encoder(text_encoder)
    discovered: tuple[DiscoveredStep, ...] = ()
    notes = [] if listed is None else [*listed.notes]
    if discovers:
        extractor = VerbPhraseExtractor(phrase_model or PHRASE_MODEL)
        phrases = {video: extractor.extract_timed(pieces) for video, pieces in said.items()}
        discovered = tuple(discover_steps(phrases, encode, options.discovered))
        listed = StepList(tuple(step.name for step in discovered))
        said = read()
        notes.append(
            f"no steps were named: {len(discovered)} were found in what is said; edit the list and give it with --steps"
        )
    videos, unknown = _join_videos(said, labelled, Path(data))
    known = () if labelled is None else labelled.steps
    ordered = tuple(dict.fromkeys([*(listed.steps if listed else ()), *known]))
    ranked = listed is not None and not options.any_order and not set(known) - set(listed.steps)
    whole = Task(name, ordered, videos)
    frames = None if features is None else _read_frames(Path(features), whole)
    aligner = Aligner.prepare(
        whole, ordered if ranked else None, encode, options.alignment, frames=frames, progress=progress
    )
    drafted = draft_with(aligner, whole, options)
    way = "narration" if discovers else "labels" if labelled is not None else "step names"
    notes += [*unknown, *drafted.notes]
    return replace(drafted, way=way, steps=ordered, notes=tuple(notes), discovered=discovered)


def _label_by_model(
    llm: ChatClient, task: str, listed: StepList | None, said: Mapping[str, tuple[Sentence, ...]], progress: Progress
) -> LabelResult:
    """Let a language model name the steps, where they are not listed, and draft the labels."""
    proposed = propose_steps(llm, said, progress) if listed is None else []
    discovered = tuple(DiscoveredStep(step.name, step.videos, 0.0, step.quotes) for step in proposed)
    steps = tuple(step.name for step in proposed) if listed is None else listed.steps
    require(steps or llm.dry, "the language model has found no step", hint="name the steps in a file with --steps")
    videos = draft_labels(llm, said, steps, progress) if steps else []
    notes = ("the confidences are those of the language model, not checked", llm.usage.words())
    return LabelResult(Task(task, steps, videos), "a language model", steps, notes, None, 0.0, discovered)


def _label_from_scores(
    scores: str | Path, graph: GraphSource | None, labelled: Task | None, fps: float | None, progress: Progress
) -> LabelResult:
    """The graph is learned from the labels where none is given."""
    if graph is not None:
        chosen = load_graph(graph)
    elif labelled is not None:
        chosen = infer(labelled)
    else:
        raise InputError("scores alone do not tell in which order steps come", hint="give a graph, or labels of videos")
    task, notes = ground_scores(scores, chosen, labelled, fps, progress)
    least = 0.0 if labelled is None else NO_DRAFTS
    return LabelResult(task, "scores of frames", chosen.steps, tuple(notes), None, least)


def _read_frames(folder: Path, task: Task) -> dict[str, VideoFeatures]:
    """Features of the videos of a task, as far as the store has them."""
    store = open_store(folder)
    features = {video.id: store.features(task.name, video.id) for video in task}
    with_frames = {video: each for video, each in features.items() if each is not None and len(each.frames)}
    require(with_frames, "has no frames of these videos", where=folder, hint="make it with: msg2 features")
    return with_frames


def _read_labels(labels: Demonstrations, task: str | None) -> Task:
    if isinstance(labels, Task):
        return labels
    where = labels if isinstance(labels, str | Path) else "labels"
    chosen = choose_task(to_tasks_with_repeats(labels), task, where)
    if not all(video.is_timed for video in chosen):
        raise InputError("the labels have no times", where=where, hint="drafts need start and end on every row")
    return chosen


def _join_videos(
    said: Mapping[str, tuple[Sentence, ...]], labelled: Task | None, where: Path
) -> tuple[list[Video], list[str]]:
    """The videos with what is said in them and their labels; a video is called as in the labels where it has some."""
    labels = {} if labelled is None else {video.id: video for video in labelled if video.segments}
    find = name_finder(said)
    names = {video: find(video) for video in labels}
    missing = [video for video, name in names.items() if name is None]
    if names and len(missing) == len(names):
        what = f"none of the labelled videos has narration here, not {short_repr(missing[0])} either"
        raise InputError(what, where=where, hint="files are called after the videos")
    notes = [f"{len(missing)} labelled videos have no narration here: {', '.join(missing[:5])}"] if missing else []
    called = {name: video for video, name in names.items() if name is not None}
    videos = [
        Video(called.get(name, name), labels[called[name]].segments if name in called else (), sentences)
        for name, sentences in said.items()
    ]
    return [*videos, *(labels[video] for video in missing)], notes

"""In which order videos are labelled, and how the graph of the first n agrees with that of all: edge F1(n).

The annotator has the true labels. A way to choose sees what the workbench sees before a video is labelled: its drafts,
if there are any, and the labels of the videos before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.bootstrap_intervals import Numbers
from msg2 import metrics
from msg2.graph import SubtaskGraph
from msg2.inference import infer
from msg2.inference.inference import run_inference
from msg2.labelling.video_selection import GraphStability, graph_stability, rank_videos
from msg2.server.dataset_functions import SAMPLES
from msg2.task import Segment, Task, Video

SIZES = (1, 2, 3, 5, 7, 10, 14, 20, 28, 40, 56, 80, 112, 160, 224)
"""Numbers of labelled videos after which the graph is learned, each about √2 times the one before; then all videos."""
CURVE_VIDEOS = 40
"""The area under a curve is that of so many videos; after them, videos are not ranked anew."""
CLOSE = 0.95
"""Edge F1 from which on a graph is within 5 % of that of all labels."""


@dataclass(frozen=True, slots=True)
class ChosenOrder:
    """All videos in the order in which they are labelled, and what the workbench says after the first `curve_sizes`."""

    videos: tuple[str, ...]
    stability: tuple[GraphStability, ...]


def curve_sizes(videos: int) -> list[int]:
    """Numbers of labelled videos at which a task with so many is looked at, its last video included.

    >>> curve_sizes(13)
    [1, 2, 3, 5, 7, 10, 13]
    """
    return [*(size for size in SIZES if size < videos), videos]


def workbench_order(task: Task, drafts: Mapping[str, Video]) -> ChosenOrder:
    """Label the videos that the workbench proposes, the first one each time.

    Parameters
    ----------
    task : Task
        With its true labels, each of which is seen once its video is chosen.
    drafts : mapping of str to Video
        The drafts of videos, by id; a video that is not in it has none.

    Returns
    -------
    ChosenOrder
        Between two of `curve_sizes` and after the first `CURVE_VIDEOS` the ranking stays as it was, where the workbench
        would make one after every video: graphs of bootstrap samples take time.
    """
    videos = {video.id: video for video in task}
    if not drafts:  # all are alike to the ranking, whatever the graphs say: they come by name
        return ChosenOrder(tuple(sorted(videos)), ())
    order: list[str] = []
    stability: list[GraphStability] = []
    graphs: Sequence[SubtaskGraph] = ()
    for size in curve_sizes(len(videos)):
        labelled = task.with_videos([videos[name] for name in order])
        unlabelled = [drafts.get(name, Video(name, ())) for name in videos if name not in order]
        ranked = rank_videos(unlabelled, labelled, graphs)
        if size > CURVE_VIDEOS:
            return ChosenOrder((*order, *(choice.video for choice in ranked)), tuple(stability))
        order += [choice.video for choice in ranked[: size - len(order)]]
        graphs = _bootstrap_graphs(task.with_videos([videos[name] for name in order]))
        stability.append(graph_stability(graphs, size))
    return ChosenOrder(tuple(order), tuple(stability))


def _bootstrap_graphs(labelled: Task) -> Sequence[SubtaskGraph]:
    """As the workbench learns them."""
    found = run_inference(labelled.with_first_labels(), samples=SAMPLES).frequencies
    return () if found is None else found.graphs


def random_order(task: Task, seed: int) -> tuple[str, ...]:
    """All videos at random.

    Parameters
    ----------
    task : Task
    seed : int

    Returns
    -------
    tuple of str
    """
    names = sorted(video.id for video in task)
    return tuple(names[number] for number in np.random.default_rng(seed).permutation(len(names)))


def agreement_curve(task: Task, order: Sequence[str], truth: SubtaskGraph) -> list[float]:
    """Edge F1 of the graphs of the first videos, against the graph of all.

    Parameters
    ----------
    task : Task
        With its true labels.
    order : sequence of str
        All videos in the order in which they are labelled.
    truth : SubtaskGraph
        The graph of all labels.

    Returns
    -------
    list of float
        One for each of `curve_sizes`.
    """
    videos = {video.id: video for video in task}
    found = []
    for size in curve_sizes(len(order)):
        graph = infer(task.with_videos([videos[name] for name in order[:size]]).with_first_labels())
        found.append(metrics.edge_scores(graph, truth, ends=True).f1 or 0.0)
    return found


def first_close(sizes: Sequence[int], agreement: Sequence[float]) -> int:
    """How many videos it takes until the graph is close for the first time.

    Parameters
    ----------
    sizes : sequence of int
    agreement : sequence of float
        Edge F1, one for each size; with all videos it is 1.

    Returns
    -------
    int

    >>> first_close([1, 2, 3, 4], [0.5, 0.96, 0.9, 1.0])
    2
    """
    return next(size for size, value in zip(sizes, agreement, strict=True) if value >= CLOSE)


def close_for_good(sizes: Sequence[int], agreement: Sequence[float]) -> int:
    """How many videos it takes until the graph is close, and stays so at all sizes after that.

    Parameters
    ----------
    sizes : sequence of int
    agreement : sequence of float
        Edge F1, one for each size; with all videos it is 1.

    Returns
    -------
    int

    >>> close_for_good([1, 2, 3, 4], [0.5, 0.96, 0.9, 1.0])
    4
    """
    far = [place for place, value in enumerate(agreement) if value < CLOSE]
    return sizes[far[-1] + 1 if far else 0]


def mean_agreement(sizes: Sequence[int], agreement: Sequence[float], videos: int = CURVE_VIDEOS) -> float:
    """Mean edge F1 over the first videos: the area under the curve, which is straight between two sizes.

    Parameters
    ----------
    sizes : sequence of int
    agreement : sequence of float
        Edge F1, one for each size.
    videos : int
        How many count; fewer where there are fewer.

    Returns
    -------
    float

    >>> mean_agreement([1, 2, 4], [0.0, 0.4, 0.8])
    0.45
    """
    every = np.arange(1, min(videos, sizes[-1]) + 1)
    return float(np.interp(every, sizes, agreement).mean())


def labels_within(task: Task, order: Sequence[str], videos: int) -> int:
    """How many labels the first videos of an order take.

    Parameters
    ----------
    task : Task
    order : sequence of str
    videos : int

    Returns
    -------
    int
    """
    first = set(order[:videos])
    return sum(len(video.segments) for video in task if video.id in first)


def most_drafted_first(task: Task, drafts: Mapping[str, Video]) -> tuple[str, ...]:
    """The videos with drafts of the most steps first, equal ones by name.

    Parameters
    ----------
    task : Task
    drafts : mapping of str to Video

    Returns
    -------
    tuple of str
    """
    steps = {name: len({segment.step for segment in video.segments}) for name, video in drafts.items()}
    return tuple(sorted((video.id for video in task), key=lambda name: (-steps.get(name, 0), name)))


def simulated_drafts(task: Task, shown: float, absent: float, seed: int) -> dict[str, Video]:
    """Draft steps at random: those that a video shows, and those that it does not, at one rate each.

    Parameters
    ----------
    task : Task
        With its true labels.
    shown, absent : float
        Probability of a draft of a step that a video shows, and of one that it does not show.
    seed : int

    Returns
    -------
    dict of str to Video
        All drafts are as sure as each other, and one after the other: their times mean nothing.
    """
    random = np.random.default_rng(seed)
    found = {}
    for video in sorted(task, key=lambda video: video.id):
        true = {segment.step for segment in video.segments}
        drawn: Numbers = random.random(len(task.steps))
        steps = [
            step
            for step, number in zip(task.steps, drawn, strict=True)
            if number < (shown if step in true else absent)
        ]  # fmt: skip
        found[video.id] = Video(video.id, [Segment(step, at, at + 1) for at, step in enumerate(steps)])
    return found

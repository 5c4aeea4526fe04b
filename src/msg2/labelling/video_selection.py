"""Which video to label next, and whether the labels are enough: both from graphs of bootstrap samples of the videos.

Two steps a, b have one of four outcomes in a graph (a first, b first, never both, free); p are their shares among the
bootstrap graphs, n the labelled videos that show both. With one pseudo-video that is spread evenly, q = (n p + ¼) /
(n + 1), and another video that shows both lowers the expected disagreement 1 − Σ q² by about (1 − Σ q²) / (n + 2). A
video is worth Σ P(a) P(b) (1 − Σ q²) / (n + 2) over all pairs, where P is how probably it shows a step.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from msg2.graph import PairKind, SubtaskGraph
from msg2.metrics import PairDifference
from msg2.sequences import FloatArray
from msg2.task import Step, Task, Video

ENOUGH = 0.05  # share of the pairs of steps that may come out differently with other videos of the same kind
FEWEST_VIDEOS = 5  # with fewer labelled videos, samples of them look too much alike to tell
UNKNOWN_CONFIDENCE = 0.5  # of a draft that has none
_OUTCOMES = 4


@dataclass(frozen=True, slots=True)
class VideoChoice:
    """A video that has no labels yet, how much its labels are expected to tell, and what that rests on, in words."""

    video: str
    gain: float
    reason: str


@dataclass(frozen=True, slots=True)
class GraphStability:
    """How much the graph still moves. The shares are of pairs of steps; None where there are too few videos to tell."""

    videos: int
    movement: float | None
    """On which two graphs differ that are learned from samples of the videos."""
    enough: bool
    sentence: str


def draft_presence(drafts: Video) -> dict[Step, float]:
    """How probably a video shows each step, by its drafts: 1 − Π (1 − confidence) over the drafts of the step.

    >>> from msg2.task import Segment
    >>> draft_presence(Video("v", [Segment("fry", 0, 1, 0.5, "draft"), Segment("fry", 5, 6, 0.5, "draft")]))
    {'fry': 0.75}
    """
    absent: dict[Step, float] = {}
    for segment in drafts.segments:
        sure = UNKNOWN_CONFIDENCE if segment.confidence is None else segment.confidence
        absent[segment.step] = absent.get(segment.step, 1.0) * (1 - sure)
    return {name: 1 - share for name, share in absent.items()}


def rank_videos(unlabelled: Iterable[Video], labelled: Task, graphs: Sequence[SubtaskGraph]) -> list[VideoChoice]:
    """Rank the videos without labels by how much their labels are expected to tell about the graph, the best first."""
    videos = list(unlabelled)
    shown = [{segment.step for segment in video.segments} for video in labelled]
    steps = sorted({*labelled.steps, *(segment.step for video in videos for segment in video.segments)})
    together = np.array([[sum({a, b} <= each for each in shown) for b in steps] for a in steps], dtype=np.float64)
    smoothed = (together[..., None] * _outcome_shares(steps, graphs) + 1 / _OUTCOMES) / (together[..., None] + 1)
    gain = (1 - (smoothed**2).sum(axis=2)) / (together + 2)
    average = {name: sum(name in each for each in shown) / max(len(shown), 1) for name in steps}
    choices = []
    for video in videos:
        presence = draft_presence(video) or average
        there = np.array([presence.get(name, 0.0) for name in steps])
        worth = np.triu(np.outer(there, there) * gain, 1)
        reason = _reason(steps, worth, together, bool(video.segments))
        choices.append(VideoChoice(video.id, float(worth.sum()), reason))
    return sorted(choices, key=lambda choice: (-round(choice.gain, 9), choice.video))


def graph_stability(graphs: Sequence[SubtaskGraph], videos: int) -> GraphStability:
    """Tell how much the graph still moves, and whether the labels are enough."""
    missing = FEWEST_VIDEOS - videos
    if missing > 0 or len(graphs) < 2:
        more = f"{missing} more video" + ("" if missing == 1 else "s")
        sentence = f"Too early to tell: label {more}." if missing > 0 else "Too early to tell: label more steps."
        return GraphStability(videos, None, False, sentence)
    movement = graph_movement(graphs)
    enough = movement <= ENOUGH
    answer, percent = "Probably enough" if enough else "Not yet", f"{'only ' * enough}{100 * movement:.0f} %"
    sentence = f"{answer}: with other videos of this kind, {percent} of the pairs of steps would come out differently."
    return GraphStability(videos, movement, enough, sentence)


def graph_movement(graphs: Sequence[SubtaskGraph]) -> float:
    """Share of the pairs of steps on which two of the graphs differ, on average over all two of them.

    They also differ where only one says that the one step must follow the other.

    >>> from msg2.graph import step
    >>> graph_movement([SubtaskGraph("t", "abc", {"b": step("a")}), SubtaskGraph("t", "abc", {})])
    0.3333333333333333
    """
    steps = sorted(set().union(*(graph.steps for graph in graphs)))
    upper = np.triu_indices(len(steps), 1)
    if not len(upper[0]) or len(graphs) < 2:
        return 0.0
    alike = (_outcome_shares(steps, graphs, with_responses=True)[upper] ** 2).sum(axis=1)
    return float((1 - alike).mean() * len(graphs) / (len(graphs) - 1))


def differing_pairs(first: SubtaskGraph, second: SubtaskGraph) -> tuple[PairDifference, ...]:
    """List the pairs of steps whose kind differs, in their order; the two graphs may have different steps."""
    differences = []
    for a, b in combinations(sorted({*first.steps, *second.steps}), 2):
        ways = [PairDifference(*pair, _kind(first, *pair), _kind(second, *pair)) for pair in ((a, b), (b, a))]
        if changed := [way for way in ways if way.first != way.second]:
            differences.append(next((way for way in changed if way.second != "free"), changed[0]))
    return tuple(differences)


def _kind(graph: SubtaskGraph, before: Step, after: Step) -> PairKind:
    return graph.kind(before, after) if before in graph.steps and after in graph.steps else "free"


def _outcome_shares(steps: Sequence[Step], graphs: Sequence[SubtaskGraph], with_responses: bool = False) -> FloatArray:
    """Share of the graphs in which a pair has each outcome, shape (steps, steps, 4); even where no graph has both.

    With responses, each outcome counts apart where one step must follow the other, shape (steps, steps, 8).
    """
    counts = np.zeros((len(steps), len(steps), _OUTCOMES * (1 + with_responses)))
    index = {name: number for number, name in enumerate(steps)}
    for graph in graphs:
        kinds, numbers = graph.pair_kinds, np.array([index[name] for name in graph.steps], dtype=np.intp)
        free = ~(kinds.before | kinds.before.T | kinds.exclusive)
        outcomes = np.stack([kinds.before, kinds.before.T, kinds.exclusive, free], axis=2)
        if with_responses:
            must = graph.relation((a, formula.name) for a, formula in graph.responses if formula.kind == "step")
            must = (must | must.T)[:, :, None]
            outcomes = np.concatenate([outcomes & ~must, outcomes & must], axis=2)
        counts[np.ix_(numbers, numbers)] += outcomes
    total = counts.sum(axis=2, keepdims=True)
    return np.asarray(np.where(total > 0, counts / np.maximum(total, 1), 1 / counts.shape[2]))


def _reason(steps: Sequence[Step], worth: FloatArray, together: FloatArray, drafted: bool) -> str:
    """What a choice rests on."""
    if not worth.any():
        return "nothing is known about it"
    a, b = divmod(int(np.argmax(worth)), len(steps))
    pair, count = f"“{steps[a]}” and “{steps[b]}”", int(together[a, b])
    if not drafted:
        return f"it has no drafts, so it counts as an average video; most is open about {pair}"
    if count >= 3:
        return f"its drafts show {pair}, whose order the labels leave open"
    seen = ("no labelled video shows", "only 1 labelled video shows", "only 2 labelled videos show")[count]
    return f"its drafts show {pair}, which {seen} together"

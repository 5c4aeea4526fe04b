"""How difficult simulated features are, measured without any model of ours: a linear classifier on single vectors.

Multinomial logistic regression p(k | x) ∝ exp(w_k · x + b_k), which minimises Σ −log p(k_i | x_i) + λ/2 · |W|², is
fitted to the training videos of a world and asked about the others: which step does this frame show, which step does
this sentence mention? `FeatureOptions.clutter` was chosen by it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp

from experiments.result_tables import Table
from msg2.assist.next_step_evaluation import TEST_SHARE, train_test_split
from msg2.formats.feature_store import VideoFeatures
from msg2.progress import Progress, no_progress
from msg2.simulation import Simulation, household_worlds, simulate, simulate_features, video_storyboard
from msg2.simulation.simulated_features import FeatureOptions
from msg2.simulation.simulator import SimulationOptions

PENALTY = 1.0
"""λ of the ridge penalty λ/2 · |W|², beside the sum of the cross-entropies; the intercepts are free."""
TOLERANCE = 1e-4
"""The search ends when no slope of the mean objective per example is steeper."""
CLUTTERS = (2.0, 4.0, 6.0, FeatureOptions().clutter, 8.0, 10.0, 14.0)
"""Values of the master difficulty in the table."""


@dataclass(frozen=True, slots=True, eq=False)
class ProbeExamples:
    """n vectors, shape (n, width), with the step that each is about (the number of a class) and its video."""

    vectors: NDArray[np.float64]
    classes: NDArray[np.int64]
    videos: NDArray[np.str_]

    def of(self, videos: Collection[str]) -> ProbeExamples:
        """The examples of these videos only."""
        kept = np.isin(self.videos, list(videos))
        return ProbeExamples(self.vectors[kept], self.classes[kept], self.videos[kept])


@dataclass(frozen=True, slots=True, eq=False)
class LinearClassifier:
    """The K classes it has seen, its weights W, shape (K, width), and intercepts b, shape (K,)."""

    classes: NDArray[np.int64]
    weights: NDArray[np.float64]
    intercepts: NDArray[np.float64]

    def predict(self, vectors: NDArray[np.float64]) -> NDArray[np.int64]:
        """The most probable class of each vector."""
        best: NDArray[np.int64] = self.classes[(vectors @ self.weights.T + self.intercepts).argmax(axis=1)]
        return best


def fit_linear_classifier(
    vectors: NDArray[np.float64], classes: NDArray[np.int64], penalty: float = PENALTY, tolerance: float = TOLERANCE
) -> LinearClassifier:
    """Fit a multinomial logistic regression by L-BFGS; the problem is convex, so where it starts does not matter.

    Parameters
    ----------
    vectors : array of shape (examples, width)
        The examples.
    classes : array of shape (examples,)
        Their classes; any numbers.
    penalty : float
        λ of the ridge penalty.
    tolerance : float
        The steepest slope, per example, at which the search ends.

    Returns
    -------
    LinearClassifier
        Of the classes that were seen.

    >>> far_apart = np.array([[-1.0], [-0.9], [0.8], [1.0]])
    >>> fit_linear_classifier(far_apart, np.array([3, 3, 7, 7])).predict(np.array([[-2.0], [2.0]])).tolist()
    [3, 7]
    """
    known, targets = np.unique(classes, return_inverse=True)
    count, width = vectors.shape
    rows = np.arange(count)
    shape = (len(known), width + 1)  # the last column holds the intercepts
    given = np.hstack([vectors, np.ones((count, 1))])

    def objective(flat: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        """The mean per example, and its gradient."""
        parameters = flat.reshape(shape)
        penalised = parameters * (np.arange(width + 1) < width)
        scores = given @ parameters.T
        logs = scores - logsumexp(scores, axis=1, keepdims=True)
        residuals = np.exp(logs)
        residuals[rows, targets] -= 1
        value = -logs[rows, targets].sum() + penalty / 2 * (penalised**2).sum()
        return value / count, ((residuals.T @ given + penalty * penalised) / count).ravel()

    found = minimize(
        objective, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B",
        options={"gtol": tolerance, "ftol": 0.0, "maxiter": 10_000, "maxfun": 20_000},
    )  # fmt: skip
    best = found.x.reshape(shape)
    return LinearClassifier(known, best[:, :-1], best[:, -1])


def frame_examples(simulation: Simulation, seen: Mapping[str, VideoFeatures]) -> ProbeExamples:
    """Collect all frames inside performed segments, with their step.

    Segments count whether or not they are labelled. Frames that show nothing of the step, or another one beside it, are
    among them: the classifier gets what there is.

    Parameters
    ----------
    simulation : Simulation
        The videos.
    seen : mapping of str to VideoFeatures
        The features of every video, by its id.

    Returns
    -------
    ProbeExamples
        Of all videos.
    """
    frames = []
    for show in simulation.demonstrations:
        features = seen[show.video]
        starts, ends = (np.array([getattr(segment, side) for segment in show.performed]) for side in ("start", "end"))
        times = features.frame_times[:, None]
        frame, segment = np.nonzero((starts <= times) & (times < ends))
        steps = np.array([simulation.graph.steps.index(segment.step) for segment in show.performed], dtype=np.int64)
        frames.append(_video_examples(features.frames[frame], steps[segment], show.video))
    return _concatenate(frames)


def frame_and_sentence_examples(
    simulation: Simulation, options: FeatureOptions, seed: int
) -> tuple[ProbeExamples, ProbeExamples]:
    """Simulate features, and label their frames and sentences.

    Parameters
    ----------
    simulation : Simulation
        The videos.
    options : FeatureOptions
        Of the features.
    seed : int
        Of the features.

    Returns
    -------
    tuple of ProbeExamples
        The frames (see `frame_examples`), and all sentences that mention a step.
    """
    seen = simulate_features(simulation, options, seed)
    sentences = []
    for show in simulation.demonstrations:
        sentence, step = np.nonzero(video_storyboard(simulation, show, options, seed).mentioned)
        sentences.append(_video_examples(seen[show.video].sentences[sentence], step, show.video))
    return frame_examples(simulation, seen), _concatenate(sentences)


def probe_accuracy(simulation: Simulation, examples: ProbeExamples) -> float:
    """Fit the classifier to the training videos, and measure its accuracy on the held-out ones.

    Parameters
    ----------
    simulation : Simulation
        Its videos are split by `train_test_split`.
    examples : ProbeExamples
        Of all its videos.

    Returns
    -------
    float
        The share of the examples of held-out videos that the classifier gets right.
    """
    training, test = (examples.of([video.id for video in part]) for part in train_test_split(simulation.task))
    classifier = fit_linear_classifier(training.vectors, training.classes)
    return float((classifier.predict(test.vectors) == test.classes).mean())


def difficulty_table(
    clutters: Sequence[float] = CLUTTERS,
    options: FeatureOptions | None = None,
    progress: Progress = no_progress,
) -> Table:
    """Measure how difficult simulated features are.

    Parameters
    ----------
    clutters : sequence of float
        Values of `FeatureOptions.clutter`.
    options : FeatureOptions or None
        The other options of the features; None: the defaults.
    progress : Progress
        Called before every clutter.

    Returns
    -------
    Table
        The accuracy of the probe on frames and on sentences in percent, mean over the twelve worlds, by clutter.
    """
    base = options or FeatureOptions()
    simulations = [simulate(world, SimulationOptions(), 0) for world in household_worlds()]
    rows: list[list[float]] = []
    for number, clutter in enumerate(clutters):
        progress(number, len(clutters), f"clutter {clutter:g}")
        chosen = replace(base, clutter=clutter)
        accuracies = [
            [probe_accuracy(simulation, examples) for examples in frame_and_sentence_examples(simulation, chosen, 0)]
            for simulation in simulations
        ]
        rows.append([clutter, *(100 * np.mean(accuracies, axis=0)).tolist()])
    held_out = 100 * TEST_SHARE
    return Table(
        "Which step? A linear classifier on single vectors, percent",
        ["clutter", "frames of performed steps", "sentences that mention a step"],
        rows,
        [f"Mean of the twelve worlds, {held_out:g} % of the videos held out; the default is {base.clutter:g}."],
    )


def _video_examples(vectors: NDArray[np.float32], classes: NDArray[np.int64], video: str) -> ProbeExamples:
    return ProbeExamples(vectors.astype(np.float64), classes, np.full(len(classes), video))


def _concatenate(parts: Sequence[ProbeExamples]) -> ProbeExamples:
    return ProbeExamples(*(np.concatenate([getattr(part, name) for part in parts]) for name in ProbeExamples.__slots__))

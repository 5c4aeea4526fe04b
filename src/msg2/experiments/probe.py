"""How difficult simulated features are, measured without any model of ours: a linear classifier on single vectors.

Multinomial logistic regression p(k | x) ∝ exp(w_k · x + b_k), which minimises Σ −log p(k_i | x_i) + λ/2 · |W|², is
fitted to the training videos of a world and asked about the others: which step does this frame show, which step does
this sentence mention? `FeatureOptions.clutter` was chosen by it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import logsumexp

from msg2.assist import split
from msg2.experiments.tables import Table
from msg2.media.features import Features
from msg2.options import SEED, FeatureOptions, ProbeOptions, SplitOptions, WorldOptions
from msg2.worlds import Simulation, script_of, simulate, simulated_features, worlds

CLUTTERS = (2.0, 4.0, 6.0, FeatureOptions().clutter, 8.0, 10.0, 14.0)
"""Values of the master difficulty in the table."""


@dataclass(frozen=True, slots=True, eq=False)
class Examples:
    """n vectors, shape (n, width), with the step that each is about (the number of a class) and its video."""

    vectors: NDArray[np.float64]
    classes: NDArray[np.int64]
    videos: NDArray[np.str_]

    def of(self, videos: Collection[str]) -> Examples:
        """The examples of these videos only."""
        kept = np.isin(self.videos, list(videos))
        return Examples(self.vectors[kept], self.classes[kept], self.videos[kept])


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


def linear_classifier(
    vectors: NDArray[np.float64], classes: NDArray[np.int64], options: ProbeOptions
) -> LinearClassifier:
    """Multinomial logistic regression by L-BFGS; the problem is convex, so where it starts does not matter.

    >>> far_apart = np.array([[-1.0], [-0.9], [0.8], [1.0]])
    >>> linear_classifier(far_apart, np.array([3, 3, 7, 7]), ProbeOptions()).predict(np.array([[-2.0], [2.0]])).tolist()
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
        value = -logs[rows, targets].sum() + options.penalty / 2 * (penalised**2).sum()
        return value / count, ((residuals.T @ given + options.penalty * penalised) / count).ravel()

    found = minimize(
        objective, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B",
        options={"gtol": options.tolerance, "ftol": 0.0, "maxiter": 10_000, "maxfun": 20_000},
    )  # fmt: skip
    best = found.x.reshape(shape)
    return LinearClassifier(known, best[:, :-1], best[:, -1])


def frames_of(simulation: Simulation, seen: Mapping[str, Features]) -> Examples:
    """All frames inside performed segments, with their step, of videos that are `seen` as these features.

    Segments count whether or not they are labelled. Frames that show nothing of the step, or another one beside it, are
    among them: the classifier gets what there is.
    """
    frames = []
    for show in simulation.demonstrations:
        features = seen[show.video]
        starts, ends = (np.array([getattr(segment, side) for segment in show.performed]) for side in ("start", "end"))
        times = features.frame_times[:, None]
        frame, segment = np.nonzero((starts <= times) & (times < ends))
        steps = np.array([simulation.graph.steps.index(segment.step) for segment in show.performed], dtype=np.int64)
        frames.append(_examples(features.frames[frame], steps[segment], show.video))
    return _together(frames)


def examples_of(simulation: Simulation, options: FeatureOptions, seed: int) -> tuple[Examples, Examples]:
    """(frames, sentences) of simulated features: `frames_of` them, and all mentions of a step with it."""
    seen = simulated_features(simulation, options, seed)
    sentences = []
    for show in simulation.demonstrations:
        sentence, step = np.nonzero(script_of(simulation, show, options, seed).mentioned)
        sentences.append(_examples(seen[show.video].sentences[sentence], step, show.video))
    return frames_of(simulation, seen), _together(sentences)


def probe_accuracy(simulation: Simulation, examples: Examples, options: ProbeOptions, parts: SplitOptions) -> float:
    """Share of the examples of held-out videos that the classifier, fitted to those of the others, gets right."""
    training, test = (examples.of([video.id for video in part]) for part in split(simulation.task, parts))
    classifier = linear_classifier(training.vectors, training.classes, options)
    return float((classifier.predict(test.vectors) == test.classes).mean())


def difficulty(
    clutters: Sequence[float] = CLUTTERS,
    options: FeatureOptions | None = None,
    report: Callable[[str], None] = lambda _: None,
) -> Table:
    """Accuracy of the probe on frames and on sentences, percent, mean over the twelve worlds, for each `clutter`."""
    base = options or FeatureOptions()
    simulations = [simulate(world, WorldOptions(), SEED) for world in worlds()]
    rows: list[list[float]] = []
    for clutter in clutters:
        report(f"clutter {clutter:g}")
        chosen = replace(base, clutter=clutter)
        accuracies = [
            [
                probe_accuracy(simulation, examples, ProbeOptions(), SplitOptions())
                for examples in examples_of(simulation, chosen, SEED)
            ]
            for simulation in simulations
        ]
        rows.append([clutter, *(100 * np.mean(accuracies, axis=0)).tolist()])
    held_out = 100 * SplitOptions().test_share
    return Table(
        "Which step? A linear classifier on single vectors, percent",
        ["clutter", "frames of performed steps", "sentences that mention a step"],
        rows,
        [f"Mean of the twelve worlds, {held_out:g} % of the videos held out; the default is {base.clutter:g}."],
    )


def _examples(vectors: NDArray[np.float32], classes: NDArray[np.int64], video: str) -> Examples:
    return Examples(vectors.astype(np.float64), classes, np.full(len(classes), video))


def _together(parts: Sequence[Examples]) -> Examples:
    return Examples(*(np.concatenate([getattr(part, name) for part in parts]) for name in Examples.__slots__))

"""GRProp, graph reward propagation (Sohn et al., 2018; Sec. 5.2): follow the gradient of the reward through the graph.

Completion x_n ∈ {0, 1} is made differentiable by softening the graph. With p_n the softened precondition of step n,

    progress       x̃_n = x_n if n is completed, else λ_or p_n + (1 − λ_or) x_n        (p_n = 1 without precondition)
    OR             p(a | b | …)     = Σ_k softmax(w_or a)_k a_k
    AND            p(a & b & ¬c …)  = ζ(mean(a, b, …) − w_and Σ p(c)),   ζ(z) = log(1 + exp(β_and z)) / β_and
    reward         U = Σ_n r_n x̃_n,   r_n = λ^Δ[n]
    policy         π(n) ∝ exp(T ∂U/∂x_n)   over the steps that are eligible and not completed

A step is worth its own reward and a share of the reward of everything it helps to open up. What is negated is read
from the completion x itself: only a completed step blocks. Δ is the number of steps since n first became eligible; a
step that has never been eligible has the full reward. Formulas may nest: the rules apply from the inside out.

The equations follow a public implementation of the policy, with these departures: a single step as precondition is
taken as it is (no ζ), an AND of negations alone starts from 1, and a completed step counts exactly 1.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from msg2.assist.next_step import Ranker, eligible_probabilities
from msg2.assist.run_state import RunStateTracker
from msg2.graph import Formula, SubtaskGraph
from msg2.task import Step

DISCOUNT = 0.9
"""λ: reward lost per step since the precondition of a step was satisfied. The other values are those of a public
implementation of the policy."""
TEMPERATURE = 200.0
"""T: how sharply the policy prefers the steepest reward."""
OR_SHARE = 0.8
"""λ_or: share of its precondition in the progress of an incomplete step; the rest is its completion."""
OR_SHARPNESS = 2.0
"""w_or: sharpness of the softened OR; 0 is the mean, infinity the maximum."""
AND_SHARPNESS = 8.0
"""β_and: sharpness of the softened AND's lower bound at 0."""
NEGATIVE_WEIGHT = 3.0
"""w_and: how strongly a completed step blocks an AND that negates it."""


def grprop(graph: SubtaskGraph) -> Ranker:
    """The GRProp policy as a ranker; where nothing is eligible, all steps that are left are equal.

    >>> from msg2.graph import step
    >>> graph = SubtaskGraph("t", "abcd", {"c": step("b"), "d": step("b")})
    >>> chances = grprop(graph)([])
    >>> max(chances, key=chances.get)  # b opens c and d, a opens nothing
    'b'
    """
    tracker = RunStateTracker(graph)

    def probabilities_after(done: Sequence[Step]) -> Mapping[Step, float]:
        state = tracker.state_after(done)
        completion = np.array([name in state.completed for name in graph.steps], dtype=np.float64)
        rewards = np.array([DISCOUNT ** state.waited.get(name, 0) for name in graph.steps])
        _, slope = softened_reward(graph, completion, rewards)
        logits = dict(zip(graph.steps, (TEMPERATURE * slope).tolist(), strict=True))
        highest = max((logits[name] for name in state.eligible - state.completed), default=0.0)
        return eligible_probabilities(graph, state, lambda name: math.exp(logits[name] - highest))

    return probabilities_after


def softened_reward(
    graph: SubtaskGraph, completion: NDArray[np.float64], rewards: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """U and its gradient ∂U/∂x.

    Parameters
    ----------
    graph : SubtaskGraph
        What the steps need.
    completion : array of shape (steps,)
        x, in the order of `graph.steps`.
    rewards : array of shape (steps,)
        r, likewise.

    Returns
    -------
    float
        U.
    array of shape (steps,)
        ∂U/∂x.
    """
    size = len(graph.steps)
    raw = {n: _Soft(float(x), unit) for n, x, unit in zip(graph.steps, completion, np.eye(size), strict=True)}
    soft: dict[Step, _Soft] = {}
    for name in graph.steps:  # parents come first: steps are sorted by layer
        own = raw[name]
        if own.value >= 1:
            soft[name] = own
            continue
        before = _soften(graph.precondition(name), soft, raw)
        soft[name] = _Soft(
            OR_SHARE * before.value + (1 - OR_SHARE) * own.value, OR_SHARE * before.slope + (1 - OR_SHARE) * own.slope
        )
    reward = sum(r * soft[name].value for name, r in zip(graph.steps, rewards.tolist(), strict=True))
    slopes = np.array([soft[name].slope for name in graph.steps]).reshape(size, size)
    return float(reward), rewards @ slopes


@dataclass(frozen=True, slots=True)
class _Soft:
    """A softened truth value and its slope, the gradient with respect to x, shape (steps,)."""

    value: float
    slope: NDArray[np.float64]


def _soften(formula: Formula, soft: Mapping[Step, _Soft], raw: Mapping[Step, _Soft]) -> _Soft:
    """The softened `formula`; steps take their values from `soft`, and from `raw` under a negation."""
    size = len(raw)
    match formula.kind:
        case "true":
            return _Soft(1.0, np.zeros(size))
        case "step":
            return soft[formula.name]
        case "not":
            inner = _soften(formula.operands[0], raw, raw)
            return _Soft(1 - inner.value, -inner.slope)
        case "all":
            positive = [_soften(o, soft, raw) for o in formula.operands if o.kind != "not"]
            negated = [_soften(o.operands[0], raw, raw) for o in formula.operands if o.kind == "not"]
            z, slope = 1.0, np.zeros(size)  # an AND of nothing holds
            if positive:
                z = sum(part.value for part in positive) / len(positive)
                slope = np.mean([part.slope for part in positive], axis=0)
            for part in negated:
                z, slope = z - NEGATIVE_WEIGHT * part.value, slope - NEGATIVE_WEIGHT * part.slope
            rising = np.exp(-np.logaddexp(0, -AND_SHARPNESS * z))  # ζ'(z), without overflow
            return _Soft(float(np.logaddexp(0, AND_SHARPNESS * z)) / AND_SHARPNESS, rising * slope)
        case "any":
            parts = [_soften(operand, soft, raw) for operand in formula.operands]
            values, slopes = np.array([p.value for p in parts]), np.array([p.slope for p in parts])
            weights = np.exp(OR_SHARPNESS * (values - values.max()))
            weights /= weights.sum()
            mean = float(weights @ values)
            return _Soft(mean, (weights * (1 + OR_SHARPNESS * (values - mean))) @ slopes)

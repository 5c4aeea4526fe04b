"""Whether what a graph forbids is a mistake: the demonstrations say how often it happens.

Of the n training videos that could break a rule of the graph, k do. Either that is usual, at any rate up to h; or it is
always a mistake, and then rarely seen, at a rate from Beta(1, b) with the mean 1 / (1 + b):

    H(k, n) = B(k + 1, n − k + 1) / h,   E(k, n) = b B(k + 1, n − k + b)

h is 1; for the order of two steps it is one half, since the graph has the order that most videos have.

With w the share of the graph's rules that are real requirements,

    p = w E(k, n) / (w E(k, n) + (1 − w) H(k, n))

is the probability that breaking the rule is a mistake. w and b are estimated from the same videos, over all rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, lgamma, log, log1p

PRIOR_MISTAKE_RATE = 0.05
"""How often a real requirement is broken, by a belief that counts as much as one rule of the graph does."""
EM_ROUNDS = 50
"""Of expectation maximisation, with which the videos correct that belief."""
_FEW_TERMS = 1000
"""Terms of a sum that are added one by one."""


@dataclass(frozen=True, slots=True)
class RequirementModel:
    """`genuine`, w: the share of the graph's rules that are real requirements; `rarity`, b: how seldom they break.

    `highest`, h: the highest rate at which it may be usual to break a rule.
    """

    genuine: float
    rarity: float
    highest: float = 1.0

    @staticmethod
    def fit(rules: Sequence[tuple[int, int]], least_rarity: float = 1.0, highest: float = 1.0) -> RequirementModel:
        """Expectation maximisation from full trust in the graph.

        Beforehand w is Beta(2, 2), and 1 / (1 + b) is `PRIOR_MISTAKE_RATE`. A rate θ from Beta(1, b), met k times in
        n, has the mean E[−log(1 − θ)] = Σ_{j = 0 … k} 1 / (b + n − k + j), from which b is 1 over its mean over real
        requirements.
        """
        shares = [1.0] * len(rules)  # how probably each rule is a real requirement
        believed = rarity = 1 / PRIOR_MISTAKE_RATE - 1
        for _ in range(EM_ROUNDS):
            logs = [sum_of_inverses(rarity + n - k, k + 1) for k, n in rules]
            total = 1 / believed + sum(share * log for share, log in zip(shares, logs, strict=True))
            rarity = max(least_rarity, (1 + sum(shares)) / total)
            model = RequirementModel((1 + sum(shares)) / (2 + len(shares)), rarity, highest)
            shares = [mistake_probability(times, chances, model) for times, chances in rules]
        return model


def sum_of_inverses(first: float, count: int) -> float:
    """Σ 1 / (first + j) for j = 0 … count − 1."""
    alone = min(count, _FEW_TERMS)
    total = sum(1 / (first + j) for j in range(alone))
    return total if alone == count else total + _digamma(first + count) - _digamma(first + alone)


def _digamma(x: float) -> float:
    """ψ(x) of a large x."""
    return log(x) - 1 / (2 * x) - 1 / (12 * x**2) + 1 / (120 * x**4)


def mistake_probability(times: int, chances: int, model: RequirementModel) -> float:
    """w E / (w E + (1 − w) H): whether what some videos do is a mistake, each time, or usual."""
    k, n, b = times, chances, model.rarity
    mistake = log(model.genuine) + log(b) + lgamma(n - k + b) - lgamma(n + 1 + b)
    usual = log1p(-model.genuine) + lgamma(n - k + 1) - lgamma(n + 2) - log(model.highest)
    return 1 / (1 + exp(min(usual - mistake, 700.0)))

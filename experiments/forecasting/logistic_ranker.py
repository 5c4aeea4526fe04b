"""The strongest simple baseline of the next step: a logistic regression on what is done and what was done last."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from msg2.assist import Ranker
from msg2.assist.conditional_logit import ChoiceSets, ObservedChoices, Penalty, fit_conditional_logit
from msg2.assist.contexts import Contexts, PastChoices, encode_contexts
from msg2.assist.learned_forecaster import step_indices
from msg2.graph import SubtaskGraph
from msg2.task import Step, Task

_PENALTY = 1.0
"""As scikit-learn has it by default (C = 1)."""


def logistic_ranker(task: Task) -> Ranker:
    """Learnt from the videos of `task`; one coefficient per step done, step done last, and step to come.

    >>> from msg2.task import Segment, Video
    >>> task = Task("t", "abc", [Video(f"v{n}", map(Segment, "abc")) for n in range(9)])
    >>> best = logistic_ranker(task)(["a"])
    >>> max(best, key=best.get)
    'b'
    """
    graph = SubtaskGraph(task.name, task.steps, {})  # only fixes the order of steps
    past = PastChoices.from_sequences([step_indices(video.sequence(), graph) for video in task], len(graph.steps))
    observed = ObservedChoices(_choice_sets(past.contexts), past.chosen)
    model = fit_conditional_logit(observed, Penalty(_PENALTY, _PENALTY), np.zeros(0))

    def probabilities_after(done: Sequence[Step]) -> Mapping[Step, float]:
        prefix = step_indices(done, graph)
        chances = np.exp(model.log_probabilities(_choice_sets(encode_contexts([prefix], len(graph.steps))))[0]).tolist()
        return {name: chances[place] for place, name in enumerate(graph.steps) if place not in prefix}

    return probabilities_after


def _choice_sets(seen: Contexts) -> ChoiceSets:
    context = np.hstack([np.ones((len(seen.done), 1)), seen.done, seen.last])
    return ChoiceSets(context, np.zeros((*seen.done.shape, 0)), seen.left)

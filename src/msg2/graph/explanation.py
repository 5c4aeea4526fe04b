"""A precondition and its evidence in plain words."""

from __future__ import annotations

from collections.abc import Iterator

from msg2.graph.formula import TRUE, Formula
from msg2.graph.support import StepEvidence
from msg2.task import Step

NAMED_VIDEOS = 8
"""Videos that are named one by one; of the others only the number is given."""


def explain(step: Step, precondition: Formula, evidence: StepEvidence) -> str:
    """Say what a step needs and what the videos say about it.

    Parameters
    ----------
    step : str
        The name of the step.
    precondition : Formula
        Its precondition.
    evidence : StepEvidence
        What the videos say; what is unknown is left out.

    Returns
    -------
    str
        One sentence per line.

    >>> from msg2.graph.formula import step as s
    >>> evidence = StepEvidence(videos=10, holds=9, violations=("v7",))
    >>> print(explain("flip bread", s("heat pan"), evidence))
    'flip bread' needs 'heat pan'.
    It held in 9 of the 10 videos with this step (90 %).
    It did not hold in: v7.
    """
    return "\n".join(_sentences(step, precondition, evidence))


def _sentences(step: Step, precondition: Formula, evidence: StepEvidence) -> Iterator[str]:
    yield f"'{step}' needs {_in_words(precondition)}."
    if evidence.optional is not None:
        without, videos = evidence.optional
        yield f"It is optional: {without} of {videos} videos do without it, and no step needs it."
    if evidence.instead:
        yield f"Videos show it or {' or '.join(map(repr, evidence.instead))}, hardly ever both."
    if precondition == TRUE:
        if evidence.videos == 0:
            yield "No video shows this step."
        return
    if evidence.confidence is not None:
        yield f"So say {round(100 * evidence.confidence)} % of the samples of the videos."
    if evidence.videos and evidence.holds is not None:
        share = round(100 * evidence.holds / evidence.videos)
        yield f"It held in {evidence.holds} of the {evidence.videos} videos with this step ({share} %)."
    if evidence.examples:
        yield f"It held, for instance, in: {_name_videos(evidence.examples)}."
    if evidence.violations:
        yield f"It did not hold in: {_name_videos(evidence.violations)}."
    for before, support in sorted(evidence.edges.items()):
        if support.weak and support.together is not None:
            yield f"Little support: '{before}' and '{step}' are ordered in only {support.together} videos."
    second = evidence.runner_up
    if second is not None and second.score is not None and evidence.score is not None:
        scores = f"score {second.score:.3f} against {evidence.score:.3f}"
        yield f"Next best: {_in_words(second.precondition)} ({scores})."


def _name_videos(videos: tuple[str, ...]) -> str:
    more = f" and {len(videos) - NAMED_VIDEOS} more" if len(videos) > NAMED_VIDEOS else ""
    return ", ".join(videos[:NAMED_VIDEOS]) + more


def _in_words(formula: Formula) -> str:
    return "nothing before it" if formula == TRUE else formula.to_english()

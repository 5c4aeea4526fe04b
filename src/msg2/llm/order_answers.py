"""What a model says of the order of steps: one question for each pair, answered with a direction and a confidence."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from msg2.inference.likelihood.statements import OrderStatements
from msg2.llm.chat_client import ChatClient, Question
from msg2.progress import Progress, no_progress
from msg2.task import Step

LLM_SOURCE = "llm"
_SURE = 0.5
"""What a model says with less confidence counts as "neither"."""
_INSTRUCTIONS = (
    "You know how everyday tasks and work are done. The user names a task, all its steps in no particular order, and "
    "two of them, first and second. Is one of the two strictly required to be done before the other, because the other "
    "is impossible, unsafe or pointless otherwise? Usual order alone is not enough: then answer neither."
)


class OrderAnswer(BaseModel):
    """Which of two steps must come before the other."""

    required_before: Literal["first", "second", "neither"]
    confidence: Annotated[float, Field(ge=0, le=1)]


def ask_order(
    client: ChatClient, task: str, steps: Sequence[Step], progress: Progress = no_progress
) -> OrderStatements:
    """Ask a model about every pair of steps.

    Parameters
    ----------
    client : ChatClient
        The model.
    task : str
        Its name.
    steps : sequence of str
        All steps.
    progress : Progress
        Is told after every answer.

    Returns
    -------
    OrderStatements
        For `msg2.infer(data, statements=[…])`; of pairs without a usable answer it says nothing.
    """
    pairs = list(combinations(sorted(steps), 2))
    questions = [
        Question(_INSTRUCTIONS, {"task": task, "steps": sorted(steps), "first": a, "second": b}, OrderAnswer)
        for a, b in pairs
    ]
    before, silent = set(), set()
    for (a, b), answer in zip(pairs, client.ask(questions, progress), strict=True):
        if answer is None:
            silent.add(frozenset((a, b)))
        elif answer.required_before != "neither" and answer.confidence >= _SURE:
            before.add((a, b) if answer.required_before == "first" else (b, a))
    return OrderStatements(LLM_SOURCE, frozenset(steps), frozenset(before), frozenset(silent))

"""What a model is asked: which step must come before which, what the steps are, and when they are done in a video.

A transcript is data: every one is a request of its own, and an answer can only name listed steps, at times of that
transcript, with a quote that stands in it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from msg2.inference.likelihood.statements import OrderStatements
from msg2.llm.chat_client import ChatClient, Question
from msg2.progress import Progress, no_progress
from msg2.task import LLM, Segment, Sentence, Step, Video
from msg2.text import name_fault

_SURE = 0.5
"""What a model says with less confidence counts as "neither"."""
_ORDER = (
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
        Question(_ORDER, {"task": task, "steps": sorted(steps), "first": a, "second": b}, OrderAnswer) for a, b in pairs
    ]
    before, silent = set(), set()
    for (a, b), answer in zip(pairs, client.ask(questions, progress), strict=True):
        if answer is None:
            silent.add(frozenset((a, b)))
        elif answer.required_before != "neither" and answer.confidence >= _SURE:
            before.add((a, b) if answer.required_before == "first" else (b, a))
    return OrderStatements(LLM, frozenset(steps), frozenset(before), frozenset(silent))


WINDOW = 12_000
"""Characters of a transcript that are sent at once."""
_LABEL = (
    "The user sends the names of the steps of a task, and what is said in one video of it, with seconds. Say which of "
    "the steps are really done in the video, when each begins and ends in seconds, and quote the words that tell. "
    "Leave out steps that are only announced, greetings and farewells."
)
_PROPOSE = (
    "The user sends what is said in one video of a task. List the steps of the task that are done, in their order, "
    "each as a short imperative such as 'loosen the nuts', with a quote. Warnings, greetings and chatter are no steps."
)
_MERGE = (
    "The user sends names of steps that were collected from several videos of one task, in their usual order. Put "
    "those that mean the same into one group, and name every group by a short imperative; keep the order."
)


class DraftedLabel(BaseModel):
    """A step that is done in a video."""

    step: str
    start: float
    end: float
    quote: str
    confidence: Annotated[float, Field(ge=0, le=1)]


class LabelAnswer(BaseModel):
    """The steps that are done in a video."""

    labels: list[DraftedLabel]


class QuotedStep(BaseModel):
    """A step, and what is said of it."""

    name: str
    quote: str


class StepsAnswer(BaseModel):
    """The steps of a video."""

    steps: list[QuotedStep]


class StepGroup(BaseModel):
    """Names that mean the same."""

    name: str
    members: list[str]


class GroupAnswer(BaseModel):
    """The steps of a task."""

    steps: list[StepGroup]


@dataclass(frozen=True, slots=True)
class ProposedStep:
    """A step that a model has found in transcripts."""

    name: Step
    videos: int
    """In which it was found."""
    quotes: tuple[str, ...]
    """What is said there, three of them."""


def draft_labels(
    client: ChatClient, said: Mapping[str, Sequence[Sentence]], steps: Sequence[Step], progress: Progress = no_progress
) -> list[Video]:
    """Draft the labels of videos from what is said in them; each has the source "llm" and the model's confidence.

    Parameters
    ----------
    client : ChatClient
        The model; what it makes up is counted as dropped.
    said : mapping of str to sequence of Sentence
        The transcripts of the videos.
    steps : sequence of str
        The steps to look for.
    progress : Progress
        Is told after every answer.

    Returns
    -------
    list of Video
    """
    windows = [(video, part) for video, sentences in said.items() for part in _windows(sentences)]
    questions = [Question(_LABEL, {"steps": [*steps], "transcript": _lines(part)}, LabelAnswer) for _, part in windows]
    found: dict[str, list[Segment]] = {video: [] for video in said}
    for (video, part), answer in zip(windows, client.ask(questions, progress), strict=True):
        for label in answer.labels if answer is not None else ():
            first, last = part[0].start, part[-1].end
            if label.step in steps and first <= label.start <= label.end <= last + 1 and _is_said(label.quote, part):
                found[video].append(Segment(label.step, label.start, label.end, label.confidence, LLM))
            else:
                client.drop()
    return [Video(video, segments, said[video]) for video, segments in found.items()]


def propose_steps(
    client: ChatClient, said: Mapping[str, Sequence[Sentence]], progress: Progress = no_progress
) -> list[ProposedStep]:
    """Propose the steps of a task: those that are found in transcripts, with synonyms merged.

    Parameters
    ----------
    client : ChatClient
        The model.
    said : mapping of str to sequence of Sentence
        The transcripts of the videos.
    progress : Progress
        Is told after every answer.

    Returns
    -------
    list of ProposedStep
        In their usual order; where there are several videos, those that are in two of them.
    """
    windows = [(video, part) for video, sentences in said.items() for part in _windows(sentences)]
    questions = [Question(_PROPOSE, {"transcript": _lines(part)}, StepsAnswer) for _, part in windows]
    quotes: dict[str, dict[str, str]] = defaultdict(dict)
    for (video, part), answer in zip(windows, client.ask(questions, progress), strict=True):
        for step in answer.steps if answer is not None else ():
            if name_fault(step.name) or not _is_said(step.quote, part):
                client.drop()
            else:
                quotes[step.name].setdefault(video, step.quote)
    (merged,) = client.ask([Question(_MERGE, {"names": [*quotes]}, GroupAnswer)]) if quotes else (None,)
    groups = {name: [name] for name in quotes}
    if merged is not None and not any(name_fault(group.name) for group in merged.steps):
        groups = {group.name: [name for name in group.members if name in quotes] for group in merged.steps}
    least = min(2, len(said))
    proposed = []
    for name, members in groups.items():
        by_video = {video: quote for member in members for video, quote in quotes[member].items()}
        if len(by_video) >= least:
            proposed.append(ProposedStep(name, len(by_video), tuple(by_video.values())[:3]))
    return proposed


def _windows(sentences: Sequence[Sentence]) -> Iterator[Sequence[Sentence]]:
    """Parts of a transcript that are not too long to be sent."""
    first, size = 0, 0
    for place, sentence in enumerate(sentences):
        if size and size + len(sentence.text) > WINDOW:
            yield sentences[first:place]
            first, size = place, 0
        size += len(sentence.text)
    if first < len(sentences):
        yield sentences[first:]


def _lines(sentences: Sequence[Sentence]) -> list[str]:
    return [f"{sentence.start:.1f}-{sentence.end:.1f}: {sentence.text}" for sentence in sentences]


def _is_said(quote: str, sentences: Sequence[Sentence]) -> bool:
    """Whether these words stand in a transcript, one after the other."""
    words = re.findall(r"\w+", quote.casefold())
    every = re.findall(r"\w+", " ".join(sentence.text for sentence in sentences).casefold())
    return bool(words) and f" {' '.join(words)} " in f" {' '.join(every)} "

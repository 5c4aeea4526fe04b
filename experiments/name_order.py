"""An order from the names of the steps alone, by rules that were written down before they were tried.

1. Every step has a stage: that of the first word in its name that tells one (`STAGES`), else the middle one.
2. a → b where a has the earlier stage and the two are alike (they speak of the same thing: cos ≥ similarity), or a is a
   beginning, or b is an end.
3. "b after x" says so itself: the step most alike to x comes first; "a before x" the other way round. Where rules
   contradict each other, this one wins.

A stand-in for a language model that was trained on scripts (`experiments.scripts`), and what such a model has to beat.
The videos have no part in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from msg2.errors import require
from msg2.graph import SubtaskGraph, all_of, step
from msg2.graph.closure import transitive_closure, transitive_reduction
from msg2.inference import METHODS, infer
from msg2.inference.registry import Method, register
from msg2.inference.result import LearnedPreconditions
from msg2.sequences import Sequences
from msg2.task import Step, Task
from msg2.text_encoders import HashedWords


@dataclass(frozen=True, slots=True)
class NameOrderOptions:
    """Of the method `name-order`: an order from the names of the steps alone."""

    similarity: float = 0.15
    """Cosine from which two names speak of the same thing: about one word in common of three or four."""

    def __post_init__(self) -> None:
        require(0 < self.similarity <= 1, f"similarity is {self.similarity}, it must be above 0 and at most 1")


Encoder: TypeAlias = Callable[[Sequence[str]], NDArray[np.float32]]
"""n texts -> vectors of shape (n, width) and length 1, or 0 where a text says nothing."""

BEGINNING, PREPARING, MIDDLE, CHANGING, END = range(5)
STAGES: Mapping[int, str] = {
    BEGINNING: "begin buy check choose collect decide find first gather get open park plan preheat start unpack",
    PREPARING: "chop clean crack crush cut dice fill grate grind loosen marinate measure melt mince peel prepare rinse "
    "season separate slice soak squeeze unscrew wash",
    CHANGING: "bake chill cook cool drain dry flip freeze fry grill refrigerate rest roast simmer strain test tighten "
    "toast turn wait",
    END: "close decorate drink eat enjoy finally finish garnish last serve store top wipe",
}
"""Words that tell how far a task has come; verbs as in a recipe, whatever the task."""
_STAGE_OF = {word: stage for stage, words in STAGES.items() for word in words.split()}
STOP_WORDS = "a an and as at by for from in into it its of off on onto or out over that the them to up with"
"""Words that make no two steps alike."""
_ORDER_WORDS = {"after": True, "once": True, "before": False, "until": False}
"""Whether what follows the word came earlier."""


def learn(sequences: Sequences, options: NameOrderOptions, encoder: Encoder | None = None) -> LearnedPreconditions:
    """Learn one conjunction per step, from the names of the steps.

    Parameters
    ----------
    sequences : Sequences
        Of the task; only its `steps` are read.
    options : NameOrderOptions
        How similar names must be.
    encoder : callable or None
        n texts -> unit vectors of shape (n, width), which say what names are similar; None: hashed words.

    Returns
    -------
    LearnedPreconditions
        A step needs all steps directly before it.
    """
    steps = sequences.steps
    edges = transitive_reduction(_precedence(steps, options.similarity, encoder or HashedWords()))
    return LearnedPreconditions(
        {name: all_of(step(steps[parent]) for parent in np.flatnonzero(edges[:, n])) for n, name in enumerate(steps)}
    )


METHOD = Method(NameOrderOptions, learn, "An order from the names of the steps alone, by fixed rules.")
"""As the registry of inference holds methods."""


@contextmanager
def register_name_order() -> Iterator[None]:
    """Make the method known to `msg2.inference.infer` as `name-order`, for the time of a `with` block."""
    register("name-order", METHOD)
    try:
        yield
    finally:
        del METHODS["name-order"]


def infer_by_names(task: Task) -> SubtaskGraph:
    """Return the graph of a task by the names of its steps."""
    with register_name_order():
        return infer(task, "name-order")


def stage(name: Step) -> int:
    """How far the task has come where this step is done, from `BEGINNING` to `END`.

    >>> stage("slice the lemon") < stage("mix all") < stage("serve")
    True
    """
    return next((_STAGE_OF[word] for word in _words(name) if word in _STAGE_OF), MIDDLE)


def _precedence(steps: Sequence[Step], similarity: float, encoder: Encoder) -> NDArray[np.bool_]:
    """Shape (steps, steps): [a, b] where a comes before b; acyclic."""
    vectors = encoder([_content_words(_words(name)) for name in steps])
    stages = np.array([stage(name) for name in steps])
    bound = (stages == BEGINNING)[:, None] | (stages == END)[None, :]
    guessed = (stages[:, None] < stages[None, :]) & (bound | (_cosines(vectors, vectors) >= similarity))
    said = np.zeros_like(guessed)
    for place, name in enumerate(steps):
        for earlier, about in _explicit_order(name):
            alike = _cosines(vectors, encoder([about]))[:, 0]
            alike[place] = -1.0
            if alike.max() >= similarity:
                other = int(alike.argmax())
                said[(other, place) if earlier else (place, other)] = True
    # Every circle has something said in it, since guesses only go to later stages: guesses give way, then what is said.
    order: NDArray[np.bool_] = (guessed & ~transitive_closure(guessed | said).T) | (said & ~transitive_closure(said).T)
    return order


def _cosines(ones: NDArray[np.float32], others: NDArray[np.float32]) -> NDArray[np.float64]:
    """Of vectors (n, width) and (m, width), shape (n, m); rounded, so that what is equally alike ties everywhere."""
    return np.round(ones.astype(np.float64) @ others.T, 6)


def _explicit_order(name: Step) -> Iterator[tuple[bool, str]]:
    """(whether it came earlier, what) for every "after x" and "before x" in a name.

    >>> list(_explicit_order("rinse rice before boiling it"))
    [(False, 'boiling')]
    """
    words = _words(name)
    for place, end in pairwise([*(place for place, word in enumerate(words) if word in _ORDER_WORDS), len(words)]):
        if about := _content_words(words[place + 1 : end]):
            yield _ORDER_WORDS[words[place]], about


def _content_words(words: Sequence[str]) -> str:
    return " ".join(word for word in words if word not in STOP_WORDS.split())


def _words(name: Step) -> list[str]:
    return re.findall(r"\w+", name.casefold())

"""Names of steps from narration alone: verb phrases that are said in many videos, clustered by their meaning.

Phrases are merged by average linkage of 1 − cos(p, q) + w |place(p) − place(q)| with their median places in the
videos: nuts are loosened early and tightened late, though the words are alike. A cluster is named after the phrase with
the largest Σ videos(q) cos(p, q) over its phrases q, and clusters are ranked by the number of videos in which one of
them is said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from msg2.errors import InputError
from msg2.labelling.narration_grid import EncodeTexts
from msg2.task import Sentence

CLOSEST = 0.35
"""Mean distance up to which phrases belong together."""
_PLACE_WEIGHT = 0.7
"""w: half a video apart is as far as `CLOSEST` by meaning."""
_MOST_PHRASES = 3000
"""Phrases that are clustered, those of the most videos."""
TALK = frozenset(
    ["allow", "appreciate", "ask", "be", "believe", "call", "check", "click", "come", "comment", "do", "enjoy",
     "explain", "feel", "find", "finish", "follow", "get", "give", "go", "guess", "happen", "have", "hope",
     "join", "keep", "know", "learn",
     "leave", "let", "like", "look", "love", "make", "mean", "mention", "need", "remember", "say", "see", "share",
     "show", "start", "subscribe", "talk", "tell", "thank", "think", "try", "understand", "use", "visit", "wait",
     "want", "watch", "welcome", "wonder", "work"]
)  # fmt: skip
"""Verbs of talk about the video and verbs that mean nothing without more: phrases of a single object with them say no
step."""
PRONOUNS = frozenset(
    ["everything", "it", "me", "one", "that", "them", "these", "they", "this", "those", "us", "you"]
)  # fmt: skip
"""They are left out: "flip it over" says "flip over", and "cut it" no step."""


@dataclass(frozen=True, slots=True)
class DiscoveredStep:
    """A cluster of phrases."""

    name: str
    videos: int
    """In which one of its phrases is said."""
    position: float
    """Median place in these videos, from 0 to 1."""
    phrases: tuple[str, ...]
    """The most typical first."""


def discover_steps(said: Mapping[str, Sequence[Sentence]], encode: EncodeTexts, most: int = 12) -> list[DiscoveredStep]:
    """Propose names of steps.

    Parameters
    ----------
    said : mapping of str to sequence of Sentence
        Verb phrases by video.
    encode : callable
        From texts to vectors of length 1.
    most : int
        How many steps are proposed.

    Returns
    -------
    list of DiscoveredStep
        By their usual place in the videos.

    Raises
    ------
    InputError
        Where no phrase is said in two videos.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    videos: dict[str, set[str]] = defaultdict(set)
    places: dict[str, list[float]] = defaultdict(list)
    for video, phrases in said.items():
        last = max((phrase.end for phrase in phrases), default=1.0) or 1.0
        for phrase in phrases:
            words = [word for word in phrase.text.casefold().split() if word not in PRONOUNS]
            if len(words) > 1 and words[0] not in TALK:
                text = " ".join(words)
                videos[text].add(video)
                places[text].append(phrase.start / last)
    common = sorted((text for text in videos if len(videos[text]) > 1), key=lambda text: (-len(videos[text]), text))
    if len(common) < 2:
        raise InputError("hardly any phrase is said in two videos", hint="name the steps in a file with --steps")
    common = common[:_MOST_PHRASES]
    vectors = np.asarray(encode(common), np.float64)
    cosines = np.clip(vectors @ vectors.T, -1, 1)
    place = np.array([np.median(places[text]) for text in common])
    distances = 1 - (cosines + cosines.T) / 2 + _PLACE_WEIGHT * np.abs(place[:, None] - place)
    np.fill_diagonal(distances, 0)
    labels = fcluster(linkage(squareform(distances, checks=False), "average"), CLOSEST, "distance")
    weight = np.array([len(videos[text]) for text in common], np.float64)
    found = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        typical = cosines[np.ix_(members, members)] @ weight[members] * weight[members] ** 0.5
        ordered = [common[members[place]] for place in np.argsort(-typical, kind="stable")]
        shown_in = set().union(*(videos[text] for text in ordered))
        position = float(np.median([place for text in ordered for place in places[text]]))
        found.append(DiscoveredStep(ordered[0], len(shown_in), position, tuple(ordered)))
    ranked = sorted(found, key=lambda step: (-step.videos, step.name))[:most]
    return sorted(ranked, key=lambda step: (step.position, step.name))

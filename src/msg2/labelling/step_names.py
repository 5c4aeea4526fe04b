"""Names of steps: read from a file, or discovered in narration.

A file is a plain list, a text with one step per line (as on wikiHow), or a graph. Steps are discovered as verb phrases
that are said in many videos, clustered by their meaning: phrases are merged by average linkage of
1 − cos(p, q) + w |position(p) − position(q)| with their median positions in the videos, since nuts are loosened early
and tightened late, though the words are alike. A cluster is named after the phrase with the largest
Σ videos(q) cos(p, q) over its phrases q, and clusters are ranked by the number of videos in which one of them is said.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np

from msg2.errors import InputError, require
from msg2.formats.graph_reader import read_graph
from msg2.formats.source import Source
from msg2.labelling.narration_grid import EncodeTexts
from msg2.task import Sentence, Step
from msg2.text import short_repr

_BULLET = re.compile(r"^(?:(?:step\s*)?\d+\s*[.):]\s*|step\s+\d+\s+|[-*•–]\s+)", re.IGNORECASE)


class StepList(NamedTuple):
    """Names of steps in the order of the file, and what was done to the lines."""

    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()


def read_steps(path: str | Path | Sequence[Step]) -> StepList:
    """Read names of steps, or take those that are listed; numbers and bullets in front of them are left out."""
    where = path if isinstance(path, str | Path) else None
    listed = _read_step_file(path) if isinstance(path, str | Path) else StepList(tuple(path))
    if twice := [step for step, count in Counter(listed.steps).items() if count > 1]:
        raise InputError(f"the step {short_repr(twice[0])} is listed twice", where=where)
    require(listed.steps, "lists no step", where=where, hint="write one step per line")
    return listed


def _read_step_file(path: str | Path) -> StepList:
    source = Source.at(path)
    require(not source.is_folder, "is a folder, not a list of steps", where=path)
    if source.kind.startswith("JSON"):
        return StepList(read_graph(path).steps, ("the steps and their order are those of a graph",))
    if {"video", "step"} <= {cell.strip().lower() for cell in re.split(r"[,;\t]", next(source.lines(), ""))}:
        hint = "write one step per line, or give the table with --labels"
        raise InputError("is a table of labels, not a list of steps", where=path, hint=hint)
    lines = [" ".join(line.split()) for line in source.lines() if not line.strip().startswith("#")]
    names = [_BULLET.sub("", line).rstrip(".") for line in lines]
    changed = sum(name != line.rstrip(".") for name, line in zip(names, lines, strict=True))
    notes = (f"numbers or bullets were left out in {changed} lines of {Path(path).name}",) if changed else ()
    return StepList(tuple(name for name in names if name), notes)


CLOSEST = 0.35  # mean distance up to which phrases belong together
_POSITION_WEIGHT = 0.7  # w: half a video apart is as far as `CLOSEST` by meaning
_MOST_PHRASES = 3000  # phrases that are clustered, those of the most videos
_TALK = frozenset(files("msg2.labelling").joinpath("talk_verbs.txt").read_text("utf-8").split())
"""Verbs of talk about the video and verbs that mean nothing without more: phrases that begin with them are no steps."""
_PRONOUNS = frozenset(["everything", "it", "me", "one", "that", "them", "these", "they", "this", "those", "us", "you"])
"""They are left out: "flip it over" says "flip over", and "cut it" is no step."""


@dataclass(frozen=True, slots=True)
class DiscoveredStep:
    """A cluster of phrases."""

    name: str
    videos: int  # in which one of its phrases is said
    position: float  # median position in these videos, from 0 to 1
    phrases: tuple[str, ...]  # the most typical first


def discover_steps(said: Mapping[str, Sequence[Sentence]], encode: EncodeTexts, most: int = 12) -> list[DiscoveredStep]:
    """Propose names of steps."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    videos: dict[str, set[str]] = defaultdict(set)
    positions: dict[str, list[float]] = defaultdict(list)
    for video, phrases in said.items():
        last = max((phrase.end for phrase in phrases), default=1.0) or 1.0
        for phrase in phrases:
            words = [word for word in phrase.text.casefold().split() if word not in _PRONOUNS]
            if len(words) > 1 and words[0] not in _TALK:
                text = " ".join(words)
                videos[text].add(video)
                positions[text].append(phrase.start / last)
    common = sorted((text for text in videos if len(videos[text]) > 1), key=lambda text: (-len(videos[text]), text))
    require(len(common) >= 2, "hardly any phrase is said in two videos", hint="name the steps in a file with --steps")
    common = common[:_MOST_PHRASES]
    vectors = np.asarray(encode(common), np.float64)
    cosines = np.clip(vectors @ vectors.T, -1, 1)
    middle = np.array([np.median(positions[text]) for text in common])
    distances = 1 - (cosines + cosines.T) / 2 + _POSITION_WEIGHT * np.abs(middle[:, None] - middle)
    np.fill_diagonal(distances, 0)
    labels = fcluster(linkage(squareform(distances, checks=False), "average"), CLOSEST, "distance")
    weight = np.array([len(videos[text]) for text in common], np.float64)
    clusters = []
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        typical = cosines[np.ix_(members, members)] @ weight[members] * weight[members] ** 0.5
        ordered = [common[member] for member in members[np.argsort(-typical, kind="stable")]]
        shown_in = set().union(*(videos[text] for text in ordered))
        position = float(np.median([position for text in ordered for position in positions[text]]))
        clusters.append(DiscoveredStep(ordered[0], len(shown_in), position, tuple(ordered)))
    ranked = sorted(clusters, key=lambda step: (-step.videos, step.name))[:most]
    return sorted(ranked, key=lambda step: (step.position, step.name))

"""What trials teach about attaching parts: how often it is a mistake, and what is there already when it is right.

Trials of the same toy count fully, those of its family and of all other toys by weights u and v, as far as they have
parts of the same names: n = n_toy + u n_family + v n_other. A rate of mistakes is drawn towards a more general one, p:
(k + s p) / (n + s).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import TypeAlias

from experiments.mistake_detection.assembly_trials import Action, Joint, Trial

Thing: TypeAlias = str | Joint
"""What can be there in an assembly: a part that is attached to anything, or two that are attached to each other."""
Key: TypeAlias = tuple[Thing | bool, ...]
"""What is counted; its first word says of what kind it is."""

SHARE_OF_MISTAKES = 0.2
"""Before anything is counted."""


@dataclass(frozen=True, slots=True)
class EvidenceWeights:
    """u and v: what a trial of the family, or of another toy, counts; s: what the more general rate counts."""

    family: float
    other: float
    smoothing: float


@dataclass(frozen=True, slots=True)
class Experience:
    """Counts of the trials of a toy, of its family without it, and of all other toys."""

    toy: Mapping[Key, int]
    family: Mapping[Key, int]
    other: Mapping[Key, int]
    weights: EvidenceWeights
    joints: frozenset[Joint]
    """Those that were rightly attached in trials of the toy or its family."""

    @staticmethod
    def of(trial: Trial, trials: Iterable[Trial], weights: EvidenceWeights) -> Experience:
        """What other trials teach about one.

        Parameters
        ----------
        trial : Trial
            Whose toy it is about; nothing else of it is looked at.
        trials : iterable of Trial
            To learn from, with their labels.
        weights : EvidenceWeights
            What they count.

        Returns
        -------
        Experience
        """
        toy, family, other = Counter[Key](), Counter[Key](), Counter[Key]()
        joints: set[Joint] = set()
        for one in trials:
            level = toy if one.toy == trial.toy else family if one.family == trial.family else other
            level.update(count_events(one))
            if one.family == trial.family:
                joints |= right_joints(one)
        return Experience(toy, family, other, weights, frozenset(joints))

    def count(self, *key: Thing | bool) -> float:
        """n, over all trials."""
        u, v = self.weights.family, self.weights.other
        return self.toy.get(key, 0) + u * self.family.get(key, 0) + v * self.other.get(key, 0)

    def presence(self, thing: Thing) -> float:
        """How probably a trial of this toy comes to have it: other toys, then the family, then the toy itself."""
        share = 0.5
        for level, weight in ((self.other, self.weights.other), (self.family, self.weights.family), (self.toy, 1.0)):
            trials, s = level.get(("trial",), 0), self.weights.smoothing / weight
            share = (level.get(("has", thing), 0) + s * share) / (trials + s)
        return share

    def rate(self, verb: str, thing: Thing | None = None) -> float:
        """How often it is a mistake to attach or to detach a part, two parts, or anything.

        Parameters
        ----------
        verb : str
            attach or detach.
        thing : Thing, optional
            The rate of two parts is drawn to the mean of theirs, that of a part to that of the verb.

        Returns
        -------
        float
        """
        if thing is None:
            return self._draw(SHARE_OF_MISTAKES, ("rate", verb))
        general = self.rate(verb) if isinstance(thing, str) else sum(self.rate(verb, part) for part in thing) / 2
        return self._draw(general, ("rate", verb, thing))

    def rate_beside(self, thing: Thing, other: Thing, there: bool) -> float:
        """How often attaching a thing is a mistake where another one is there, or is not there yet.

        Parameters
        ----------
        thing : Thing
            What is attached.
        other : Thing
            The other one.
        there : bool
            Whether it is there.

        Returns
        -------
        float
        """
        return self._draw(self.rate("attach", thing), ("beside", thing, other, there))

    def order_log_odds(self, thing: Thing, other: Thing) -> float:
        """Log-odds that another thing is there already, in place of not yet, when this one is rightly attached.

        Parameters
        ----------
        thing : Thing
            What is attached.
        other : Thing
            The other one.

        Returns
        -------
        float
        """
        there, not_yet = (self.count("beside", thing, other, where, "right") for where in (True, False))
        return log((there + self.weights.smoothing) / (not_yet + self.weights.smoothing))

    def _draw(self, general: float, key: Key) -> float:
        wrong, right = self.count(*key, "wrong"), self.count(*key, "right")
        return (wrong + self.weights.smoothing * general) / (wrong + right + self.weights.smoothing)


@lru_cache(maxsize=4096)
def count_events(trial: Trial) -> Mapping[Key, int]:
    """Of every action whether it was wrong, by its names and by what was there and what was not yet.

    What the trial never rightly attaches says nothing about an order, and is not counted as missing.
    """
    joints = right_joints(trial)
    ever: frozenset[Thing] = frozenset({*joints, *parts_of(joints)})
    counts = Counter[Key]({("trial",): 1})
    counts.update(("has", thing) for thing in ever)
    there: set[Joint] = set()
    for action in trial.actions:
        judged, joint = "wrong" if action.mistake else "right", action.joint
        verb = "detach" if action.detaches else "attach"
        counts[("rate", verb, judged)] += 1
        things: set[Thing] = {joint, *joint}
        counts.update(("rate", verb, thing, judged) for thing in things)
        if action.detaches:
            there.discard(joint)
            continue
        present = there | parts_of(there)
        for thing in things:
            others = (other for other in ever - things if isinstance(other, str) == isinstance(thing, str))
            counts.update(("beside", thing, other, other in present, judged) for other in others)
        there.add(joint)
    return counts


def right_joints(trial: Trial) -> frozenset[Joint]:
    """What a trial attaches without a mistake."""
    return frozenset(action.joint for action in trial.actions if _is_right(action))


def parts_of(joints: Iterable[Joint]) -> frozenset[str]:
    """All parts that are attached to anything."""
    return frozenset(part for joint in joints for part in joint)


def _is_right(action: Action) -> bool:
    return not action.mistake and not action.detaches

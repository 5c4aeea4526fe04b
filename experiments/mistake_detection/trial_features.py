"""What an action looks like when it begins: the assembly so far, what other trials say, and earlier estimates.

The assembly is the graph of the parts that are attached to each other. A running estimate of what is wrong in it comes
from the probabilities that the model gave to earlier actions, never from their labels: a joint is wrong as probably as
it was a mistake to attach it, and one that was detached was wrong as probably as that was no mistake.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import log, log1p

import networkx as nx
import numpy as np

from experiments.logistic_regression import Numbers
from experiments.mistake_detection.assembly_experience import Experience, Thing, parts_of
from experiments.mistake_detection.assembly_trials import Action, Joint, Trial

ATTACHING = (
    "mistake rate of the joint",
    "usual joint",
    "joint never right in this toy",
    "mistake rate without another joint",
    "mistake rate without another part",
    "mistake rate beside another joint",
    "a part that usually precedes is missing",
    "a part that usually follows is there",
    "a joint that usually follows is there",
    "joints that usually follow are there",
    "times attached before",
    "something new since it was detached",
    "right after it was detached",
    "this is loose",
    "that is loose",
    "both in one piece",
    "detachments so far",
    "seconds since the last action",
    "number of the step",
)
"""Features of putting parts together, without estimates of earlier actions."""
ESTIMATED = ("wrong joints", "wrong joint at this or that", "last action wrong", "was wrong last time")
"""Features of putting parts together, from estimates of earlier actions."""
DETACHING = (
    "attached wrongly",
    "mistake rate of attaching the joint",
    "mistake rate of the joint",
    "not attached",
    "right after it was attached",
    "seconds since it was attached",
    "seconds it took to attach",
    "attached to it since",
    "times detached before",
    "after a detachment",
    "wrong joints",
    "wrong joint at this or that",
    "seconds since the last action",
)
"""Features of taking parts apart."""


@dataclass
class AssemblyState:
    """One trial so far: its actions, the joints that are there, and how probably each is wrong."""

    actions: list[Action] = field(default_factory=list)
    estimates: list[float] = field(default_factory=list)
    there: dict[Joint, float] = field(default_factory=dict)
    """Joint -> how probably it is wrong."""
    taken_apart: dict[Joint, float] = field(default_factory=dict)
    """Joint that was detached -> how probably it was wrong the last time."""

    def add(self, action: Action, estimate: float) -> None:
        """Go on after an action.

        Parameters
        ----------
        action : Action
            What was done.
        estimate : float
            How probably it is a mistake.
        """
        if action.detaches:
            self.there.pop(action.joint, None)
            self.taken_apart[action.joint] = 1 - estimate
        else:
            self.there[action.joint] = estimate
        self.actions.append(action)
        self.estimates.append(estimate)

    def places(self, joint: Joint, detaches: bool) -> list[int]:
        """Where the joint was attached or detached.

        Parameters
        ----------
        joint : Joint
            The two parts.
        detaches : bool
            Whether it is asked for detaching.

        Returns
        -------
        list[int]
            Places of actions, from 0.
        """
        same = (action.joint == joint and action.detaches == detaches for action in self.actions)
        return [place for place, found in enumerate(same) if found]


def describe_trial(trial: Trial, experience: Experience, estimates: Sequence[float]) -> list[Mapping[str, float]]:
    """Features of every action of a trial, from what came before it.

    Parameters
    ----------
    trial : Trial
        Its labels are not looked at.
    experience : Experience
        What other trials teach.
    estimates : sequence of float
        How probably each action is a mistake; that of an action plays a part for later ones only.

    Returns
    -------
    list of mapping
        Feature -> value, for every action.
    """
    state = AssemblyState()
    found: list[Mapping[str, float]] = []
    for action, estimate in zip(trial.actions, estimates, strict=True):
        describe = describe_detaching if action.detaches else describe_attaching
        found.append({**dict(describe(action, state, experience)), **dict(_describe_any(action, state))})
        state.add(action, estimate)
    return found


def to_matrix(features: Sequence[Mapping[str, float]], names: Sequence[str]) -> Numbers:
    """The named features as columns.

    Parameters
    ----------
    features : sequence of mapping
        Of every action.
    names : sequence of str
        Of the columns.

    Returns
    -------
    Numbers
        Shape (actions, names).
    """
    return np.array([[of_action[name] for name in names] for of_action in features]).reshape(len(features), len(names))


def describe_attaching(action: Action, state: AssemblyState, experience: Experience) -> Iterator[tuple[str, float]]:
    """Name and value of the features of an action that puts parts together.

    Parameters
    ----------
    action : Action
        The action.
    state : AssemblyState
        Before it.
    experience : Experience
        What other trials teach.

    Yields
    ------
    tuple of str and float
    """
    joint = action.joint
    joints, parts = state.there.keys() - {joint}, parts_of(state.there) - {*joint}
    missing_joints = experience.joints - joints - {joint}
    missing_parts = parts_of(experience.joints) - parts - {*joint}
    late = [max(0.0, -experience.order_log_odds(joint, other)) for other in joints]
    late_parts = (-experience.order_log_odds(part, other) for part in joint for other in parts)
    early = (
        experience.presence(other) * experience.order_log_odds(part, other) for part in joint for other in missing_parts
    )
    yield "mistake rate of the joint", _log_odds(experience.rate("attach", joint))
    yield "usual joint", _log_odds(experience.presence(joint))
    yield "joint never right in this toy", float(not experience.toy.get(("has", joint)))
    yield "mistake rate without another joint", _largest(_missing_rates(experience, [joint], missing_joints))
    yield "mistake rate without another part", _largest(_missing_rates(experience, joint, missing_parts))
    yield "mistake rate beside another joint", _largest(_rise(experience, joint, other, True) for other in joints)
    yield "a part that usually precedes is missing", _largest(early)
    yield "a part that usually follows is there", _largest(late_parts)
    yield "a joint that usually follows is there", _largest(late)
    yield "joints that usually follow are there", sum(late)
    detached = state.places(joint, detaches=True)
    new = detached and any(not later.detaches for later in state.actions[detached[-1] + 1 :])
    pieces = nx.Graph(joints)
    loose = [part not in pieces for part in (action.this, action.that)]
    yield "times attached before", log1p(len(state.places(joint, detaches=False)))
    yield "something new since it was detached", float(bool(new))
    yield "right after it was detached", float(bool(detached) and detached[-1] == len(state.actions) - 1)
    yield "this is loose", float(loose[0])
    yield "that is loose", float(loose[1])
    yield "both in one piece", float(not any(loose) and nx.has_path(pieces, action.this, action.that))
    yield "detachments so far", log1p(sum(earlier.detaches for earlier in state.actions))
    yield "number of the step", log1p(len(state.actions))
    yield "last action wrong", state.estimates[-1] if state.actions else 0.0
    yield "was wrong last time", 0.0 if joint in state.there else state.taken_apart.get(joint, 0.0)


def describe_detaching(action: Action, state: AssemblyState, experience: Experience) -> Iterator[tuple[str, float]]:
    """Name and value of the features of an action that takes parts apart.

    Parameters
    ----------
    action : Action
        The action.
    state : AssemblyState
        Before it.
    experience : Experience
        What other trials teach.

    Yields
    ------
    tuple of str and float
    """
    joint = action.joint
    attached = state.places(joint, detaches=False)
    last = state.actions[attached[-1]] if attached else None
    since = state.actions[attached[-1] + 1 :] if attached else []
    onto = sum(not later.detaches and not {*joint}.isdisjoint(later.joint) for later in since)
    rate = experience.rate("attach", joint)
    yield "attached wrongly", _log_odds(state.there.get(joint, rate))
    yield "mistake rate of attaching the joint", _log_odds(rate)
    yield "mistake rate of the joint", _log_odds(experience.rate("detach", joint))
    yield "not attached", float(joint not in state.there)
    yield "right after it was attached", float(bool(attached) and not since)
    yield "seconds since it was attached", log1p(max(0.0, action.start - last.end)) if last else 0.0
    yield "seconds it took to attach", log1p(min(last.end, action.start) - last.start) if last else 0.0
    yield "attached to it since", log1p(onto)
    yield "times detached before", log1p(len(state.places(joint, detaches=True)))
    yield "after a detachment", float(bool(state.actions) and state.actions[-1].detaches)


def _describe_any(action: Action, state: AssemblyState) -> Iterator[tuple[str, float]]:
    others = {joint: wrong for joint, wrong in state.there.items() if joint != action.joint}
    near = (wrong for joint, wrong in others.items() if not {*joint}.isdisjoint(action.joint))
    yield "wrong joints", sum(others.values())
    yield "wrong joint at this or that", _largest(near)
    gap = action.start - state.actions[-1].end if state.actions else 0.0
    yield "seconds since the last action", log1p(max(0.0, gap))


def _missing_rates(experience: Experience, things: Iterable[Thing], missing: Iterable[Thing]) -> Iterator[float]:
    """By how much the log-odds of a mistake rise without each of what is missing, where the toy comes to have that."""
    others = list(missing)
    return (experience.presence(one) * _rise(experience, thing, one, False) for thing in things for one in others)


def _rise(experience: Experience, thing: Thing, other: Thing, there: bool) -> float:
    rate = experience.rate("attach", thing)
    return _log_odds(experience.rate_beside(thing, other, there)) - _log_odds(rate)


def _largest(values: Iterable[float]) -> float:
    """The largest value, or 0 where none is above it."""
    return max([0.0, *values])


def _log_odds(probability: float) -> float:
    return log(probability / (1 - probability))

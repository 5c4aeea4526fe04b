"""In what groups of runs differ: which steps are done, done again, and in which order, each with a test.

Every comparison is of two shares, by Fisher's exact test: what shuffling the runs between the groups would give. Of the
many comparisons, those are told whose p-values hold after Benjamini's and Hochberg's correction.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from msg2.sequences import Sequences
from msg2.task import Step

SIGNIFICANT = 0.05
"""The corrected p-value up to which a difference is told: of these, so many are chance at most, on average."""
_WORDS = {"done": "is done", "repeated": "is done again", "order": "comes before"}


@dataclass(frozen=True, slots=True)
class GroupDifference:
    """How often runs of a group do something, and how often the others do."""

    group: str
    kind: Literal["done", "repeated", "order"]
    """Whether a step is done; done again, where it is done; or before another one, where they are in an order."""
    step: Step
    after: Step | None
    """The other step of an order."""
    inside: tuple[int, int]
    """Runs of the group that do so, of how many."""
    outside: tuple[int, int]
    """The same of the other runs."""
    p_value: float
    corrected: float
    """The p-value after the correction for all comparisons."""

    @property
    def difference(self) -> float:
        """The share in the group less that in the others."""
        return self.inside[0] / self.inside[1] - self.outside[0] / self.outside[1]

    def to_english(self) -> str:
        """A plain sentence."""
        (one, ones), (other, others) = self.inside, self.outside
        after = "" if self.after is None else f" {self.after!r}"
        told = (
            f"in {one / ones:.0%} ({one} of {ones}) where {self.group}, in {other / others:.0%} ({other} of {others})"
        )
        return f"{self.step!r} {_WORDS[self.kind]}{after} {told} elsewhere; p = {self.corrected:.2g}"


def compare_groups(
    sequences: Sequences, groups: Mapping[str, tuple[NDArray[np.bool_], NDArray[np.bool_]]]
) -> tuple[GroupDifference, ...]:
    """Compare the runs of each group with the others.

    Parameters
    ----------
    sequences : Sequences
        All runs, with repeated steps.
    groups : mapping of str to two arrays of bool
        Name of a group -> which runs are in it, and with which it is compared, shape (runs,) each.

    Returns
    -------
    tuple of GroupDifference
        Every comparison that could differ, the significant ones first, of these the largest difference.

    >>> from msg2.task import Segment, Task, Video
    >>> runs = Sequences.from_task(Task("tea", ["boil", "pour"], [
    ...     Video(f"v{n:02}", [Segment("boil"), Segment("pour")] if n < 20 else [Segment("pour")]) for n in range(40)
    ... ]))
    >>> early = np.arange(40) < 20
    >>> compare_groups(runs, {"start<2012": (early, ~early)})[0].to_english()
    "'boil' is done in 100% (20 of 20) where start<2012, in 0% (0 of 20) elsewhere; p = 1.5e-11"
    """
    from scipy.stats import false_discovery_control, fisher_exact

    found = []
    for group, masks in groups.items():
        counted = [_shares(sequences.select(np.flatnonzero(mask))) for mask in masks]
        for (kind, step, after, *inside), (*_, yes, of) in zip(*counted, strict=True):
            if 0 < inside[0] + yes < inside[1] + of and inside[1] and of:
                p_value = fisher_exact([[inside[0], inside[1] - inside[0]], [yes, of - yes]]).pvalue
                found.append((group, kind, step, after, (inside[0], inside[1]), (yes, of), float(p_value)))
    corrected = false_discovery_control([each[-1] for each in found]) if found else []
    differences = [GroupDifference(*each, float(q)) for each, q in zip(found, corrected, strict=True)]
    return tuple(
        sorted(differences, key=lambda d: (d.corrected > SIGNIFICANT, -abs(d.difference), d.step, d.after or ""))
    )


def _shares(
    sequences: Sequences,
) -> Iterator[tuple[Literal["done", "repeated", "order"], Step, Step | None, int, int]]:
    """What is done, how often, and in how many runs it could be; of both orders of a pair, one is enough."""
    names, variants = sequences.steps, sequences.variants
    shown, before = (sequences.weight @ sequences.shown).tolist(), variants.before.tolist()
    for place, name in enumerate(names):
        yield "done", name, None, shown[place], len(sequences.videos)
        yield "repeated", name, None, int(variants.repeated[place]), shown[place]
        for other in range(place):
            yield "order", names[other], name, before[other][place], before[other][place] + before[place][other]

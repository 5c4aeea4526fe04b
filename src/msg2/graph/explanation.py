"""A precondition and its evidence in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msg2.graph.formula import TRUE, Formula, from_json
from msg2.task import Step

_NAMED_VIDEOS = 8


def explain(step: Step, precondition: Formula, evidence: Mapping[str, Any]) -> str:
    """What `step` needs and what the videos say; `evidence` is the step's entry in the graph file.

    >>> from msg2.graph.formula import step as s
    >>> print(explain("flip bread", s("heat pan"), {"videos": 10, "holds": 9, "violations": ["v7"]}))
    'flip bread' needs 'heat pan'.
    It held in 9 of the 10 videos with this step (90 %).
    It did not hold in: v7.
    """
    lines = [f"'{step}' needs {'nothing before it' if precondition == TRUE else precondition.words()}."]
    videos, holds = evidence.get("videos"), evidence.get("holds")
    if isinstance(videos, int) and isinstance(holds, int) and videos and precondition != TRUE:
        lines.append(
            f"It held in {holds} of the {videos} videos with this step ({holds / videos:.0%}).".replace("%", " %")
        )
    if precondition == TRUE and videos == 0:
        lines.append("No video shows this step.")
    violations = list(evidence.get("violations", []))
    if violations and precondition != TRUE:
        named = ", ".join(map(str, violations[:_NAMED_VIDEOS]))
        more = f" and {len(violations) - _NAMED_VIDEOS} more" if len(violations) > _NAMED_VIDEOS else ""
        lines.append(f"It did not hold in: {named}{more}.")
    for before, counts in sorted(evidence.get("edges", {}).items()):
        if counts.get("weak"):
            lines.append(f"Little support: '{before}' and '{step}' are ordered in only {counts['together']} videos.")
    runner_up = evidence.get("runner_up")
    if runner_up:
        formula = from_json(runner_up["precondition"])
        chosen = "nothing before it" if formula == TRUE else formula.words()
        lines.append(f"Next best: {chosen} (score {runner_up['score']:.3f} against {evidence['score']:.3f}).")
    return "\n".join(lines)

"""What the page of a graph says beyond the graph: which labels were filled in, and what that did to it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from statistics import fmean

from msg2.drawing.html_document import escape_name, inline_svg, table
from msg2.metrics import GraphScores
from msg2.task import PREDICTED, Segment, Step, Task

_ID = re.compile(r' id="[^"]*"')
"""They belong to the diagram at the top of the page, and lead from there to its table."""
_SCORE_COLUMNS = {"accuracy": "Accuracy", "spoc": "SPOC", "compatibility": "Compatibility", "f1": "Edge F1"}
_SCORE_EXPLANATIONS = {
    "accuracy": ("Accuracy", "how often a precondition says the same, over all sets of completed steps"),
    "spoc": ("SPOC", "how many pairs of steps are in the same order"),
    "precision": ("Edge precision", "arrows that are true, START and END included"),
    "recall": ("Edge recall", "true arrows that were found"),
    "f1": ("Edge F1", "harmonic mean of the two"),
}


def filling_section(task: Task, performed: Task | None = None) -> str:
    """List the labels that were added, by step and by video.

    Parameters
    ----------
    task : Task
        The labels; the added ones have the source "predicted".
    performed : Task, optional
        What was really done: then it is said how many of the added labels are right, and which are not.

    Returns
    -------
    str
        HTML.
    """
    truth = None if performed is None else {video.id: set(video.sequence()) for video in performed}
    added = {video.id: [segment for segment in video.segments if segment.source == PREDICTED] for video in task}
    count, filled = sum(map(len, added.values())), sum(map(bool, added.values()))
    wrong = {} if truth is None else {
        video: {segment.step for segment in segments} - truth.get(video, set()) for video, segments in added.items()
    }  # fmt: skip
    right = "" if truth is None else f" {count - sum(map(len, wrong.values()))} of them were really done."
    columns = ["Step", "Videos with its label", "Added to videos", "Mean confidence"]
    columns += [] if truth is None else ["Really done"]
    steps = table(columns, [_step_row(task, step, added, None if truth is None else wrong) for step in task.steps])
    videos = table(
        ["Video", "Added"],
        [
            [escape_name(video), ", ".join(_added_label(one, one.step in wrong.get(video, ())) for one in segments)]
            for video, segments in added.items()
            if segments
        ],
    )
    return (
        f"<h2>What was filled in</h2>\n<p>{count} labels were added to {filled} of {len(task)} videos: steps that "
        f"their labels lack, where what is seen and said tells that they were done.{right}</p>\n{steps}"
        f"<details><summary>Video by video</summary>\n{videos}</details>\n"
    )


def comparison_section(svg: str, scores: Mapping[str, GraphScores]) -> str:
    """Show the graph that the annotated labels alone give.

    Parameters
    ----------
    svg : str
        Its diagram, as an `<svg>` element.
    scores : mapping from str to GraphScores
        Where the truth is known, the scores of each graph by its name.

    Returns
    -------
    str
        HTML.
    """
    rows = [
        [escape_name(name), *(_percent(of_graph.to_json()[key]) for key in _SCORE_COLUMNS)]
        for name, of_graph in scores.items()
    ]
    scored = table(["Graph", *_SCORE_COLUMNS.values()], rows)
    scored = f"<p>Against the true graph, in percent:</p>\n{scored}" if rows else ""
    diagram = inline_svg(_ID.sub("", svg))
    return f"<h2>Before: from the annotated labels alone</h2>\n{scored}<figure>\n{diagram}</figure>\n"


def scores_section(scores: GraphScores) -> str:
    """The `scores` of the graph of the page against the true one, as HTML."""
    rows = [[name, _percent(scores.to_json()[key]), words] for key, (name, words) in _SCORE_EXPLANATIONS.items()]
    return f"<h2>Compared with the true graph</h2>\n{table(['Score', 'Percent', 'What it says'], rows)}"


def _percent(value: float | None) -> str:
    return "N/A" if value is None else f"{100 * value:.2f}"


def _step_row(
    task: Task, step: Step, added: Mapping[str, Sequence[Segment]], wrong: Mapping[str, set[Step]] | None
) -> list[str]:
    found = {video: one for video, segments in added.items() for one in segments if one.step == step}
    labelled = sum(step in video.sequence() for video in task) - len(found)
    sure = [one.confidence for one in found.values() if one.confidence is not None]
    mean = f"{100 * fmean(sure):.0f} %" if sure else ""
    row = [escape_name(step), str(labelled), str(len(found)) if found else "", mean]
    if wrong is not None:
        right = sum(step not in wrong[video] for video in found)
        row.append(f"{right} of {len(found)}" if found else "")
    return row


def _added_label(segment: Segment, wrong: bool) -> str:
    sure = "" if segment.confidence is None else f' <span class="quiet">({100 * segment.confidence:.0f} %)</span>'
    name = escape_name(segment.step)
    return f"<s>{name}</s>{sure}" if wrong else f"{name}{sure}"

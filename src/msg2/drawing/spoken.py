"""The page of what is said around the steps of tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msg2.drawing.markup import as_text, document, table
from msg2.media.around import Said
from msg2.task import Step, Task

_COLUMNS = ["Phrase", "Videos", "Around", "In all", "Times as often"]


def spoken_page(found: Sequence[tuple[Task, Mapping[Step, Sequence[Said]]]], seconds: float, most: int) -> str:
    """What is said from `seconds` before to as long after each step: `most` phrases of each step, as HTML."""
    sections = []
    for task, around in found:
        heard = sum(bool(video.sentences) for video in task)
        total = sum(len(video.sentences) for video in task)
        sections.append(
            f"<h2>{as_text(task.name)}</h2>\n<p>{heard} of {len(task)} videos have narration, {total} phrases in all."
            "</p>\n" + "".join(_step(task, step, around[step][:most]) for step in task.steps)
        )
    body = (
        f"<p>Phrases that are said around a step, from {seconds:g} seconds before it begins to {seconds:g} seconds "
        "after it ends, and more often there than phrases in general; the most telling first. <b>Videos</b>: in how "
        "many it is said around the step. <b>Around</b> and <b>in all</b>: how often. <b>Times as often</b>: as it "
        "would be if the step were all one to it.</p>\n" + "".join(sections)
    )
    return document("What is said around each step", body)


def _step(task: Task, step: Step, said: Sequence[Said]) -> str:
    videos = sum(step in video.sequence() for video in task)
    rows = [
        [as_text(one.phrase), str(one.videos), str(one.near), str(one.times), f"{one.lift:.1f}"] for one in said
    ] or [["nothing more than elsewhere", "", "", "", ""]]
    opened = f"<details open><summary>{as_text(step)} ({videos} videos)</summary>\n"
    return f"{opened}{table(_COLUMNS, rows)}</details>\n"

"""A page with the phrases of the narration around each step of tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msg2.drawing.html_document import document, escape_name, table
from msg2.media.step_phrases import PhraseStatistics
from msg2.task import Step, Task

_COLUMNS = ["Phrase", "Videos", "Around", "In all", "Times as often"]


def step_phrases_page(
    found: Sequence[tuple[Task, Mapping[Step, Sequence[PhraseStatistics]]]], seconds: float, most: int
) -> str:
    """Make a page with the phrases around each step.

    Parameters
    ----------
    found : sequence of (Task, mapping from str to sequence of PhraseStatistics)
        Per task, the phrases around each of its steps, the most telling first.
    seconds : float
        How far before and after a step the phrases were searched.
    most : int
        Phrases of each step that are shown.

    Returns
    -------
    str
        The HTML document.
    """
    sections = []
    for task, around in found:
        narrated = sum(bool(video.sentences) for video in task)
        total = sum(len(video.sentences) for video in task)
        sections.append(
            f"<h2>{escape_name(task.name)}</h2>\n<p>{narrated} of {len(task)} videos have narration, "
            f"{total} phrases in all.</p>\n"
        )
        sections += [_step_section(task, step, around[step][:most]) for step in task.steps]
    body = (
        f"<p>Phrases that are said around a step, from {seconds:g} seconds before it begins to {seconds:g} seconds "
        "after it ends, and more often there than phrases in general; the most telling first. <b>Videos</b>: in how "
        "many it is said around the step. <b>Around</b> and <b>in all</b>: how often. <b>Times as often</b>: as it "
        "would be if the step were all one to it.</p>\n" + "".join(sections)
    )
    return document("What is said around each step", body)


def _step_section(task: Task, step: Step, phrases: Sequence[PhraseStatistics]) -> str:
    videos = sum(step in video.sequence() for video in task)
    rows = [
        [escape_name(phrase.phrase), str(phrase.videos), str(phrase.near), str(phrase.times), f"{phrase.lift:.1f}"]
        for phrase in phrases
    ] or [["nothing more than elsewhere", "", "", "", ""]]
    summary = f"<details open><summary>{escape_name(step)} ({videos} videos)</summary>\n"
    return f"{summary}{table(_COLUMNS, rows)}</details>\n"

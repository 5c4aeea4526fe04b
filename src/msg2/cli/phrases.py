"""`msg2 phrases`: what is said around each step."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from msg2.cli import console
from msg2.cli.features import PhraseModel
from msg2.cli.shared_options import Data, GivenOptions, TaskName, read_tasks, reads_data
from msg2.drawing.page_parts import step_phrases_page
from msg2.files import write_whole
from msg2.media.feature_store import is_feature_store
from msg2.media.narration import AROUND_SECONDS, PhraseStatistics, add_narration, phrases_around_steps
from msg2.task import Step, Task

_LISTED = 15
"""Phrases of a step on the page."""
_SHOWN = 3
"""Phrases per step on the terminal."""

Found = Sequence[tuple[Task, Mapping[Step, Sequence[PhraseStatistics]]]]


@reads_data()
def phrases(
    data: Data,
    spoken: Annotated[
        Path, typer.Argument(metavar="NARRATION", help="A folder of captions, or a store made by `msg2 features`.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="A page (.html) or a table (.csv).")
    ] = None,
    model: PhraseModel = None,
    seconds: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Before and after a step that count as around it.")
    ] = AROUND_SECONDS,
    task: TaskName = None,
    *,
    reading: GivenOptions,
) -> None:
    """What is said around each step, and more often there than elsewhere: verb phrases, or sentences as they are.

    Example: `msg2 phrases crosstask_release transcripts --phrases en_core_web_sm -o spoken.html`
    """
    if output is not None and output.suffix.lower() not in _WRITERS:
        raise typer.BadParameter(f"-o {output} must end in {' or '.join(_WRITERS)}")
    if is_feature_store(spoken) and model is not None:
        raise typer.BadParameter("--phrases goes with captions; a store keeps what it was made with")
    tasks = read_tasks(data, task, repeats="keep", **reading)
    with console.progress_bar("reading narration") as progress:
        narrated = add_narration(tasks, spoken, model, progress=progress)
    found = [(one, phrases_around_steps(one, seconds)) for one in narrated]
    for one, around in found:
        rows = [
            (step, *(_format_phrase(phrase) for phrase in [*around[step], None, None, None][:_SHOWN]))
            for step in one.steps
        ]
        console.print_table(["step", "said most tellingly", "then", "then"], rows, title=one.name)
    if output is not None:
        write_whole(output, _WRITERS[output.suffix.lower()](found, seconds))
        console.print_line(f"\nwritten  {output}")


def _format_phrase(phrase: PhraseStatistics | None) -> str:
    return "" if phrase is None else f"{phrase.phrase} ({phrase.near}/{phrase.times})"


def _table(found: Found, _: float) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["task", "step", "phrase", "videos", "around", "in_all", "times_as_often", "g2"])
    for task, around in found:
        for step, said in around.items():
            for one in said:
                row = (one.phrase, one.videos, one.near, one.times, f"{one.lift:.4g}", f"{one.g2:.4g}")
                writer.writerow([task.name, step, *row])
    return text.getvalue()


_WRITERS: Mapping[str, Callable[[Found, float], str]] = {
    ".html": lambda found, seconds: step_phrases_page(found, seconds, _LISTED),
    ".csv": _table,
}

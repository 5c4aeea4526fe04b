"""`msg2 phrases`: what is said around each step."""

from pathlib import Path
from typing import Annotated

from msg2.cli import console, flags
from msg2.cli.features import PhraseModel
from msg2.cli.flags import argument, option, output_option
from msg2.drawing.page_parts import step_phrases_page
from msg2.files import write_whole
from msg2.formats.feature_store import is_feature_store
from msg2.media.narration import add_narration
from msg2.metrics.step_phrases import AROUND_SECONDS, phrases_around_steps

_LISTED = 15
"""Phrases of a step on the page."""
_SHOWN = 3
"""Phrases per step on the terminal."""


@flags.reads_data()
def phrases(
    data: flags.Data,
    spoken: Annotated[Path, argument("NARRATION", "A folder of captions, or a store made by `msg2 features`.")],
    reading: flags.GivenOptions,
    output: Annotated[Path | None, output_option("FILE", "A page (.html) or a table (.csv).")] = None,
    model: PhraseModel = None,
    seconds: Annotated[float, option("SECONDS", "Before and after a step: around it.", min=0)] = AROUND_SECONDS,
    task: flags.TaskName = None,
) -> None:
    """What is said around each step, and more often there than elsewhere: verb phrases, or sentences as they are.

    Example: `msg2 phrases crosstask_release transcripts --phrases en_core_web_sm -o spoken.html`
    """
    suffix = ".html" if output is None else output.suffix.lower()
    flags.usage_error_if(suffix not in (".html", ".csv"), f"-o {output} must end in .html or .csv")
    stored = model is not None and is_feature_store(spoken)
    flags.usage_error_if(stored, "--phrases goes with captions; a store keeps what it was made with")
    tasks = flags.read_tasks(data, task, repeats="keep", **reading)
    with console.progress_bar("reading narration") as progress:
        narrated = add_narration(tasks, spoken, model, progress=progress)
    spoken_around = [(each, phrases_around_steps(each, seconds)) for each in narrated]
    for each, around in spoken_around:
        shown = {step: [f"{p.phrase} ({p.near}/{p.times})" for p in around[step][:_SHOWN]] for step in each.steps}
        rows = [(step, *said, *[""] * (_SHOWN - len(said))) for step, said in shown.items()]
        console.print_table(["step", "said most tellingly", "then", "then"], rows, title=each.name)
    if output is not None:
        if suffix == ".csv":
            columns = ["task", "step", "phrase", "videos", "around", "in_all", "times_as_often", "g2"]
            said = [(each.name, step, p) for each, around in spoken_around for step in around for p in around[step]]
            lines = [(*of, p.phrase, p.videos, p.near, p.times, f"{p.lift:.4g}", f"{p.g2:.4g}") for *of, p in said]
            write_whole(output, flags.as_csv(columns, lines))
        else:
            write_whole(output, step_phrases_page(spoken_around, seconds, _LISTED))
        console.print_line(f"\nwritten  {output}")

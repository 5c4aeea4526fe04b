"""`msg2 check`: what went wrong in each video; with --online, as it happens."""

from pathlib import Path
from typing import Annotated

from msg2 import assist, drawing, formats
from msg2.assist.mistakes import ACCUSED
from msg2.cli import console, flags
from msg2.cli.flags import option, output_option, switch
from msg2.graph.evidence import demonstrations
from msg2.task import Absent

_ABSENT = "What has no label may only lack it, or was not done. Default: as the graph was learnt."


@flags.reads_data("repeats", "overlap", "order")
def check(
    graph: flags.GraphFile,
    data: flags.Data,
    reading: flags.GivenOptions,
    json: flags.Json = False,
    output: Annotated[Path | None, output_option("FILE", "Also draw the mistakes on the graph.")] = None,
    online: Annotated[bool, switch("--online", "Judge every step as it comes: how probably it is a mistake.")] = False,
    absent: Annotated[Absent | None, option(None, _ABSENT)] = None,
    jobs: Annotated[int, option("N", "Processes that share the videos.", min=1)] = 1,
    engine: flags.EngineName = "local",
) -> None:
    """What went wrong in each video: needs not met, order, both of an exclusive pair, steps left out, repetitions.

    Each has a probability, from the videos that the graph was learnt from; listed are those of one half or more. With
    --online every step is judged by what came before it only, as the assistant does.

    Examples: `msg2 check graph.json steps.csv -o mistakes.svg`, `msg2 check graph.json new.csv --online`
    """
    learned = formats.read_graph(graph)
    if online:
        flags.usage_error_if(output is not None, "--output draws the mistakes of whole videos, without --online")
        reading = {"repeats": "keep", **reading}  # repetitions are to be seen
        watched = flags.read_as_recorded(learned, data, **reading)
        with console.progress_bar("checking"):
            assessed = assist.check_online(learned, watched, absent=absent)
        _print_online(assessed, demonstrations(learned), json)
        return
    videos = flags.read_as_recorded(learned, data, **reading)
    with console.progress_bar("checking") as progress:
        report = assist.check(learned, videos, absent, jobs=jobs, engine=engine, progress=progress)
    if output is not None:
        drawing.show(learned, output, marks=report.marks())
    if json:
        console.print_json(report.to_json())
    else:
        _print_report(report, demonstrations(learned))


def _print_report(report: assist.CheckReport, noun: str) -> None:
    sure = [mistake for mistake in report.mistakes if mistake.probability >= ACCUSED]
    for mistake in sure:
        when = "" if mistake.position is None else f"{_format_time(mistake.start, mistake.position)}: "
        percent = console.format_probability(mistake.probability)
        console.print_line(f"{mistake.video}  {when}{mistake.to_english()} ({percent} %)")
    console.print_line("")
    rows = [(total.step, total.occurrences, total.mistakes, total.left_out) for total in report.totals]
    console.print_table(["step", "labels", "mistakes", "left out"], rows)
    accused = f"{len(report.accused)} of {report.videos} {noun} have a mistake that is more probable than not"
    others = f"{len(report.mistakes) - len(sure)} less probable ones and {len(report.not_seen)} steps"
    console.print_line(f"\n{accused}; --json has {others} that were not seen.")


def _print_online(report: assist.OnlineReport, noun: str, json: bool) -> None:
    """Print all assessments as JSON, else those that reach the operating point."""
    if json:
        console.print_json(report.to_json())
        return
    steps = [(video, assessment) for video, assessments in report.videos.items() for assessment in assessments]
    mistakes = [f"{video}  {_format_assessment(assessment)}" for video, assessment in steps if assessment.mistake]
    total = f"{len(mistakes)} of {len(steps)} labels in {len(report.videos)} {noun} are mistakes"
    least = f"with a probability of at least {report.threshold:g}; --json has all probabilities."
    console.print_line(*mistakes, f"\n{total} {least}")


def _format_assessment(assessment: assist.StepAssessment) -> str:
    when = _format_time(assessment.start, assessment.position)
    why = "; ".join(mistake.to_english() for mistake in assessment.mistakes)
    return f"{when}: {why} ({console.format_probability(assessment.probability)} %)"


def _format_time(start: float | None, position: int) -> str:
    return f"as step {position}" if start is None else f"at {console.format_clock(start)}"

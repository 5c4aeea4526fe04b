"""`msg2 next`: what comes next after some steps, and how often that is right about held-out videos."""

from pathlib import Path
from typing import Annotated

from msg2 import assist, formats
from msg2.assist.forecasting import Lookahead
from msg2.assist.next_step_evaluation import SPLITS, TEST_SHARE, limit_videos
from msg2.assist.rankers import DEFAULT_RANKER, LEARNED_RANKER
from msg2.cli import console, flags
from msg2.cli.flags import argument, option, switch
from msg2.inference.inference import keep_tasks_with_two_videos
from msg2.inference.registry import DEFAULT_METHOD
from msg2.progress import quiet_logs
from msg2.text import time_unit

_RANKERS = (
    "By rank only: recency, grprop; with probabilities, from videos: bigram, learned. By default "
    f"{LEARNED_RANKER} with data, else {DEFAULT_RANKER}."
)


@flags.reads_data("repeats", "overlap", "order")
def next(
    source: Annotated[Path, argument("GRAPH|DATA", "A graph file; with --evaluate, data.")],
    reading: flags.GivenOptions,
    done: Annotated[list[str] | None, option("STEP", "A step that is done, in order.")] = None,
    evaluate: Annotated[
        bool, switch("--evaluate", f"Accuracy on a held-out {TEST_SHARE:.0%} of DATA, of repeated steps too.")
    ] = False,
    ranker: Annotated[str | None, option("NAME", _RANKERS, autocompletion=flags.complete_ranker)] = None,
    data: Annotated[Path | None, option("DATA", "With a graph: videos to learn from, times too.")] = None,
    horizon: Annotated[int | None, option("N", "With a graph: also what comes within the next N steps.", min=1)] = None,
    json: flags.Json = False,
    task: flags.TaskName = None,
    method: Annotated[str | None, option("NAME", f"--evaluate: how graphs are learned; {DEFAULT_METHOD}.")] = None,
    settings: flags.Settings = None,
    splits: Annotated[int | None, option("N", f"--evaluate: seeded splits; default: {SPLITS}.", min=1)] = None,
) -> None:
    """What comes next after the steps that are done; or how often that is right on held-out videos.

    A graph alone ranks the steps. With --data it says how probably each comes, and in how many seconds: the median, and
    the range of four gaps in five.

    Examples: `msg2 next graph.json --done "boil water" --done "grind beans"`, `msg2 next steps.csv --evaluate`,
    `msg2 next graph.json --data steps.csv --done "boil water" --horizon 3`
    """
    known = ranker is None or ranker in assist.RANKERS
    flags.usage_error_if(not known, f"--ranker is {ranker!r}, it must be {', '.join(assist.RANKERS)}")
    if not evaluate:
        flags.refuse("--evaluate", set=settings, method=method, task=task, splits=splits)
        if data is None:
            flags.refuse("--data or --evaluate", **reading)
            learns = ranker is not None and assist.RANKERS[ranker].needs_videos
            flags.usage_error_if(learns, f"--ranker {ranker} learns from videos: give them with --data")
        graph = formats.read_graph(source)
        seen = None if data is None else flags.read_as_recorded(graph, data, **reading)
        with console.progress_bar("learning"):
            prediction = assist.forecast(graph, done or [], ranker, seen, horizon)
        _print_forecast(prediction, json)
        return
    flags.refuse("a graph, --evaluate with data", done=done, data=data, horizon=horizon)
    ranker, reading = ranker or LEARNED_RANKER, {"repeats": "keep", **reading}
    if not assist.RANKERS[ranker].needs_graph:
        flags.refuse("a ranker that uses a graph", set=settings, method=method)
    method = method or DEFAULT_METHOD
    options = flags.parse_settings(method, settings)
    tasks = [*map(limit_videos, keep_tasks_with_two_videos(flags.read_tasks(source, task, **reading), source))]
    with quiet_logs(), console.progress_bar("evaluating") as progress:
        splits = splits or SPLITS
        evaluation = assist.evaluate_next_step(tasks, ranker, method, splits=splits, progress=progress, **options)
    if json:
        console.print_json(evaluation.to_json())
        return
    shares = [*evaluation.tasks.items(), ("mean of tasks", evaluation.accuracy)]
    rows = [(name, console.format_percent(share)) for name, share in shares]
    console.print_table(["task", "accuracy in percent"], rows)


def _print_forecast(prediction: assist.NextStepForecast, json: bool) -> None:
    if json:
        console.print_json(prediction.to_json())
        return
    if not prediction.steps:
        console.print_line("Nothing is left: all steps are done.")
        return
    times = prediction.waiting_times or {}
    size, unit = time_unit(max((time.median for time in times.values() if time is not None), default=0.0))
    if size <= 60:
        size, unit = 1, "seconds"
    rows = []
    for ranked in prediction.steps:
        row: dict[str, object] = {"step": ranked.step}
        if ranked.probability is None:
            row["rank"] = ranked.rank
        else:
            row["percent"] = console.format_probability(ranked.probability)
        if prediction.lookahead is not None and prediction.calibrated:
            within = prediction.lookahead.within.get(ranked.step, 0.0)
            row[f"within {prediction.lookahead.horizon}"] = console.format_probability(within)
        if any(times.values()):
            time = times[ranked.step]
            shown = (
                () if time is None else [f"{t / size:.{int(size > 1)}f}" for t in (time.median, time.low, time.high)]
            )
            row[unit] = "{} ({} to {})".format(*shown) if shown else ""
        rows.append({**row, "still needs": _still_needs(ranked)})
    console.print_records(rows)
    if prediction.lookahead is not None:
        _print_lookahead(prediction.lookahead, prediction.calibrated)


def _still_needs(ranked: assist.RankedStep) -> str:
    """What keeps a step from being next: what it needs, what rules it out, what should come first."""
    if ranked.ruled_out_by:
        return f"ruled out by {' and '.join(map(repr, ranked.ruled_out_by))}"
    needs = " and ".join(clause.to_english() for clause in ranked.unmet)
    first = f"(after {' and '.join(map(repr, ranked.awaited))}, if done)" if ranked.awaited else ""
    return " ".join(filter(None, (needs, first)))


def _print_lookahead(ahead: Lookahead, calibrated: bool) -> None:
    sure = f" ({console.format_probability(ahead.path_probability)} %)" if calibrated else ""
    console.print_line(f"\nMost probable: {', then '.join(ahead.path)}{sure}.")
    if calibrated and ahead.end_probability:
        percent = console.format_probability(ahead.end_probability)
        console.print_line(f"Fewer than {len(ahead.path)} more steps come: {percent} %.")

"""`msg2 evaluate`, `next`, `check` and `show`: a graph at work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from msg2 import assist, drawing, metrics
from msg2.assist import LEARNT_RANKERS, RANKERS
from msg2.cli import console
from msg2.cli.ahead import ranker_of, say_accuracy, say_next
from msg2.cli.methods import Alpha, Delta, Literals, Method, Recency, method_options
from msg2.cli.reading import (
    Data,
    Json,
    Order,
    Overlap,
    Repeats,
    TaskName,
    read_as_learnt,
    read_tasks,
    refuse_without,
    with_enough_videos,
)
from msg2.cli.watching import say_verdicts
from msg2.inference import DEFAULT
from msg2.options import ExperimentOptions, NextStepOptions, SplitOptions
from msg2.readers import read_graph

_NEXT = NextStepOptions()

Graph = Annotated[Path, typer.Argument(metavar="GRAPH", help="A graph file.")]

Ranker = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help=f"How next steps are ranked: {', '.join(RANKERS)}; from videos: {', '.join(LEARNT_RANKERS)}.",
    ),
]


def evaluate(
    context: typer.Context,
    graph: Graph,
    truth: Annotated[Path, typer.Option(metavar="GRAPH", help="The true graph, or a CaptainCook4D task graph.")],
    data: Annotated[Path | None, typer.Option(metavar="DATA", help="Videos, for the compatibility.")] = None,
    json: Json = False,
    overlap: Overlap = None,
    repeats: Repeats = None,
    order: Order = None,
) -> None:
    """Compare a graph with the true one: accuracy, SPOC, compatibility, precision, recall and F1 of its edges.

    Edge scores are those of the transitive reductions, with START and END; `inner` ones are without them.

    Example: `msg2 evaluate graph.json --truth truth.json --data steps.csv`
    """
    if data is None:
        refuse_without("--data", context, "overlap", "repeats", "order")
    learnt, true = read_graph(graph), read_graph(truth)
    videos = () if data is None else read_as_learnt(learnt, data, overlap=overlap, repeats=repeats, order=order)
    found = metrics.scores(learnt, true, videos).to_json()
    if json:
        console.say_json(found)
    else:
        console.say_table(["metric", "percent"], [(name, console.percent(value)) for name, value in found.items()])


def next_(
    context: typer.Context,
    source: Annotated[Path, typer.Argument(metavar="GRAPH|DATA", help="A graph file; with --evaluate, data.")],
    done: Annotated[list[str] | None, typer.Option(metavar="STEP", help="A step that is done, in order.")] = None,
    evaluate: Annotated[
        bool,
        typer.Option(
            "--evaluate",
            help=f"Accuracy on held-out videos of DATA: {SplitOptions().test_share:.0%} test, seeded splits.",
        ),
    ] = False,
    ranker: Ranker = _NEXT.ranker,
    data: Annotated[
        Path | None, typer.Option(metavar="DATA", help="With a graph: videos to learn from; how long until they come.")
    ] = None,
    horizon: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="With a graph: also what comes within the next N steps.")
    ] = None,
    json: Json = False,
    method: Method = DEFAULT.method,
    task: TaskName = None,
    delta: Delta = None,
    alpha: Alpha = None,
    recency: Recency = None,
    max_literals: Literals = None,
    splits: Annotated[int, typer.Option(metavar="N", min=1, help="Seeded splits, with --evaluate.")] = (
        ExperimentOptions().splits
    ),
    overlap: Overlap = None,
    repeats: Repeats = None,
    order: Order = None,
) -> None:
    """What comes next after the steps that are done; or how often that is right on held-out videos.

    With --data it also says in how many seconds: the median, and the range of four gaps in five.

    Examples: `msg2 next graph.json --done "boil water" --done "grind beans"`, `msg2 next steps.csv --evaluate`,
    `msg2 next graph.json --data steps.csv --done "boil water" --ranker learned --horizon 3`
    """
    learning, reading = ("method", "delta", "alpha", "recency", "max_literals"), ("overlap", "repeats", "order")
    if ranker not in RANKERS and ranker not in LEARNT_RANKERS:
        raise typer.BadParameter(f"--ranker is {ranker!r}, it must be {', '.join([*RANKERS, *LEARNT_RANKERS])}")
    if not evaluate:
        refuse_without("--evaluate", context, *learning, "task", "splits")
        if data is None:
            refuse_without("--data or --evaluate", context, *reading)
            if ranker not in RANKERS:
                raise typer.BadParameter(f"--ranker {ranker} learns from videos: give them with --data")
        graph = read_graph(source)
        seen = None if data is None else read_as_learnt(graph, data, overlap=overlap, repeats=repeats, order=order)
        say_next(graph, done or [], ranker, seen, horizon, json)
        return
    refuse_without("a graph, --evaluate with data", context, "done", "data", "horizon")
    if ranker == "bigram":
        refuse_without("a ranker that uses a graph", context, *learning)
    options = method_options(method, delta, alpha, recency, max_literals)
    tasks = with_enough_videos(read_tasks(source, task, overlap=overlap, repeats=repeats, order=order), source)
    make = ranker_of(ranker, method, options)
    facts = {"ranker": ranker, "method": None if ranker == "bigram" else method, "splits": splits}
    say_accuracy(tasks, make, splits, facts, json)


def check(
    graph: Graph,
    data: Data,
    json: Json = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Also draw the mistakes on the graph.")
    ] = None,
    online: Annotated[
        bool, typer.Option("--online", help="Judge every step when it comes, with the probability of a mistake.")
    ] = False,
    training: Annotated[
        Path | None,
        typer.Option("--data", metavar="TRAINING", help="--online: videos to go by; else the other ones of DATA."),
    ] = None,
    overlap: Overlap = None,
    repeats: Repeats = None,
    order: Order = None,
) -> None:
    """Every step that ran before its precondition held, with the unmet clause; and the steps that were skipped.

    With --online every step is judged by what came before it only: premature, out of order, repeated or never seen,
    and which steps it lacks, each with a probability from the habits of other videos.

    Examples: `msg2 check graph.json steps.csv -o mistakes.svg`, `msg2 check graph.json new.csv --online --data old.csv`
    """
    learnt = read_graph(graph)
    if online:
        if output is not None:
            raise typer.BadParameter("--output draws the mistakes of whole videos, without --online")
        reading = {"overlap": overlap, "repeats": repeats or "keep", "order": order}  # repetitions are to be seen
        habits = None if training is None else read_as_learnt(learnt, training, **reading)
        say_verdicts(learnt, read_as_learnt(learnt, data, **reading), habits, json)
        return
    if training is not None:
        raise typer.BadParameter("--data goes with --online")
    report = assist.check(learnt, read_as_learnt(learnt, data, overlap=overlap, repeats=repeats, order=order))
    if output is not None:
        drawing.show(learnt, output, marks=_marks(report))
    if json:
        console.say_json(report.to_json())
        return
    for mistake in report.mistakes:
        when = f"at {mistake.start:.1f} s" if mistake.start is not None else f"as step {mistake.position}"
        unmet = " and ".join(clause.words() for clause in mistake.unmet)
        console.say(f"{mistake.video}  {when}: '{mistake.step}' before {unmet}")
    for skipped in report.skipped:
        console.say(f"{skipped.video}  without '{skipped.step}', needed by {_listed(skipped.needed_by)}")
    console.say("")
    console.say_table(
        ["step", "labels", "too early", "skipped"],
        [(total.step, total.occurrences, total.violations, total.skipped) for total in report.totals],
    )
    labels = sum(total.occurrences for total in report.totals)
    early, skips = len(report.mistakes), len(report.skipped)
    console.say(f"\n{early} of {labels} labels in {report.videos} videos too early, {skips} steps skipped.")


def show(
    context: typer.Context,
    graph: Graph,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Its suffix decides the format: " + " ".join(drawing.SUFFIXES)
        ),
    ],
    compare: Annotated[
        Path | None, typer.Option(metavar="TRUTH", help="Colour redundant edges blue and missing ones red.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DATA", help="On a page (.html): videos to play on the graph.")
    ] = None,
    media: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The video files, which then play along; with --data.")
    ] = None,
    overlap: Overlap = None,
    repeats: Repeats = None,
    order: Order = None,
) -> None:
    """Draw a graph, or write it in another format.

    A page (.html) needs nothing but a browser: click a step or an arrow to see why it is there, play videos on the
    graph, or tick off the steps of a checklist.

    Examples: `msg2 show graph.json -o graph.svg --compare truth.json`,
    `msg2 show graph.json -o page.html --data steps.csv --media videos`
    """
    learnt, truth, videos = read_graph(graph), None, None
    if compare is not None:
        truth = read_graph(compare)
        metrics.matched(learnt, truth)  # it says which step has no partner
        truth = metrics.matched(truth, learnt)
    if data is None:
        refuse_without("--data", context, "media", "overlap", "repeats", "order")
    else:
        videos = read_as_learnt(learnt, data, overlap=overlap, repeats=repeats, order=order)
    addresses = None if media is None or videos is None else drawing.films(videos, media, output)
    console.say(str(drawing.show(learnt, output, videos=videos, compare=truth, media=addresses)))


def _marks(report: assist.Report) -> dict[str, str]:
    marks = {}
    for total in report.totals:
        notes = [f"{total.violations} of {total.occurrences} too early"] if total.violations else []
        times = "once" if total.skipped == 1 else f"{total.skipped} times"
        notes += [f"skipped {times}"] if total.skipped else []
        if notes:
            marks[total.step] = ", ".join(notes)
    return marks


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)

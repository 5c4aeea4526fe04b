"""`msg2 show`: a graph as a picture, a page or a file of another format."""

from pathlib import Path
from typing import Annotated, Literal

from msg2 import drawing, formats, metrics
from msg2.cli import console, flags
from msg2.cli.flags import argument, option, output_option
from msg2.formats.reading import choose_task

_VIEW = "The graph, or of data how often one step came right after another."


@flags.takes_fields(drawing.PictureOptions, "picture", panel="Picture")
@flags.reads_data("repeats", "overlap", "order")
def show(
    graph: Annotated[Path, argument("GRAPH|DATA", "A graph file; for --view directly-follows, the data.")],
    output: Annotated[Path, output_option("FILE", "Its suffix decides the format: " + " ".join(drawing.SUFFIXES))],
    picture: drawing.PictureOptions,
    reading: flags.GivenOptions,
    compare: Annotated[Path | None, option("TRUTH", "Colour redundant edges blue and missing ones red.")] = None,
    data: Annotated[Path | None, option("DATA", "On a page (.html): videos to play on the graph.")] = None,
    media: Annotated[Path | None, option("FOLDER", "The video files, which then play along; with --data.")] = None,
    view: Annotated[Literal["graph", "directly-follows"], option(None, _VIEW)] = "graph",
    task: flags.TaskName = None,
) -> None:
    """Draw a graph, or write it in another format.

    A page (.html) needs nothing but a browser: click a step or an arrow to see why it is there, play videos on the
    graph, or tick off the steps of a checklist.

    Examples: `msg2 show graph.json -o graph.svg --compare truth.json`,
    `msg2 show graph.json -o figure.pdf --width 8.4cm --direction TB`,
    `msg2 show graph.json -o page.html --data steps.csv --media videos`,
    `msg2 show steps.csv -o data.svg --view directly-follows`
    """
    if view == "directly-follows":
        flags.refuse("--view graph", compare=compare, data=data, media=media)
        shown = choose_task(flags.read_tasks(graph, **{"repeats": "keep", "ties": "file", **reading}), task, graph)
        console.print_line(str(drawing.show_directly_follows(shown, output, picture)))
        return
    flags.refuse("--view directly-follows", task=task)
    learnt, truth = formats.read_graph(graph), None
    if compare is not None:
        truth = formats.read_graph(compare)
        metrics.match_step_names(learnt, truth)  # it says which step has no partner
        truth = metrics.match_step_names(truth, learnt)
    if data is None:
        flags.refuse("--data", media=media)
    videos = flags.read_if_given(learnt, data, reading)
    addresses = None if media is None or videos is None else drawing.find_video_links(videos, media, output)
    with console.progress_bar("drawing"):
        written = drawing.show(learnt, output, videos=videos, compare=truth, media=addresses, picture=picture)
    console.print_line(str(written))

"""`msg2 show`: a graph as a picture, a page or a file of another format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from msg2 import drawing, metrics
from msg2.cli import console
from msg2.cli.data_options import GraphFile, read_as_recorded, takes_reading_options, without_none
from msg2.cli.generated_options import GivenOptions, refuse_given
from msg2.formats import read_graph


@takes_reading_options("repeats", "overlap", "order")
def show(
    graph: GraphFile,
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
    *,
    reading: GivenOptions,
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
        metrics.match_step_names(learnt, truth)  # it says which step has no partner
        truth = metrics.match_step_names(truth, learnt)
    if data is None:
        refuse_given({**without_none({"media": media}), **reading}, "--data")
    else:
        videos = read_as_recorded(learnt, data, **reading)
    addresses = None if media is None or videos is None else drawing.find_video_links(videos, media, output)
    with console.progress_bar("drawing"):
        drawn = drawing.show(learnt, output, videos=videos, compare=truth, media=addresses)
    console.print_line(str(drawn))

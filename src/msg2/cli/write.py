"""`msg2 write`: a graph as a written procedure."""

from pathlib import Path
from typing import Annotated

from msg2.cli import console, flags
from msg2.cli.flags import option, output_option
from msg2.formats import read_graph


@flags.reads_data("repeats", "overlap", "order")
def write(
    graph: flags.GraphFile,
    output: Annotated[Path, output_option("FILE", "Its suffix decides the format: .html .md .docx .pdf.")],
    reading: flags.GivenOptions,
    data: Annotated[Path | None, option("DATA", "Recordings: their usual order, and how long steps take.")] = None,
    media: Annotated[Path | None, option("FOLDER", "Video files: a picture of every step; with --data.")] = None,
) -> None:
    """Write a graph as a procedure for people: numbered steps, what each needs, warnings, and the evidence.

    The order respects every arrow and every stated rule. Title, sentences, warnings, tools and who has reviewed it
    stand in the graph file; what nobody has reviewed is a draft, and says so on every page. Pictures may show people:
    ask them before you pass the procedure on.

    Examples: `msg2 write graph.json -o procedure.html`,
    `msg2 write graph.json -o procedure.docx --data steps.csv --media videos`
    """
    if data is None:
        flags.refuse("--data", media=media)
    learned = read_graph(graph)
    videos = flags.read_if_given(learned, data, reading)
    stills = None
    if media is not None and videos is not None:
        from msg2.media.stills import find_stills

        with console.progress_bar("pictures") as progress:
            stills = find_stills(videos, media, progress)
    console.print_line(str(learned.write(output, videos, stills)))

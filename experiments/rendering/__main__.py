"""`python -m experiments.rendering OUT`: the videos of a simulated world, drawn, with captions and maybe sound."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from experiments.rendering.scenes import RenderOptions
from experiments.rendering.video_writer import write_videos
from msg2.cli import console
from msg2.cli.app import main
from msg2.formats import read, read_graph
from msg2.simulation import Demonstration, Simulation

app = typer.Typer(
    name="python -m experiments.rendering", add_completion=False, pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip


@app.command()
def render(
    folder: Annotated[Path, typer.Argument(metavar="OUT", help="What msg2 simulate -o OUT has written.")],
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="That of the simulation.")] = 0,
    jobs: Annotated[int, typer.Option(metavar="N", min=1, help="Videos that are drawn at a time.")] = 1,
) -> None:
    """Draw the videos of a simulation, with captions and (with espeak-ng) sound: OUT/videos."""
    with console.progress_bar("drawing videos") as show:
        write_videos(folder / "videos", read_simulation(folder), RenderOptions(), seed, jobs=jobs, progress=show)
    console.print_line(str(folder / "videos"))


def read_simulation(folder: Path) -> Simulation:
    """Read what was performed in the videos of a simulation; who labelled what plays no part in how they look."""
    performed, graph = read(folder / "truth" / "performed.csv", repeats="keep"), read_graph(folder / "truth.json")
    demonstrations = tuple(
        Demonstration(video.id, (), video.segments, (None,) * len(video.segments)) for video in performed
    )
    return Simulation(performed, graph, demonstrations)


if __name__ == "__main__":
    main(app, "experiments")

"""`msg2 demo`: the whole system on a simulated task whose true graph is known."""

from pathlib import Path
from typing import Annotated

from msg2.cli import console
from msg2.cli.flags import output_option
from msg2.cli.run import SCORES, format_scores, print_runs
from msg2.pipeline import DEMO_WORLD, run_demo
from msg2.progress import quiet_logs


def demo(
    output: Annotated[Path, output_option("OUT", "Folder for the files of the demonstration.")] = Path("msg2-demo"),
) -> None:
    """The whole system on an embedded world, ending in a page that opens.

    Noisy demonstrations of a household task are simulated, with what is seen and said in them. Its subtask graph is
    learnt from the labels; the steps that nobody labelled are filled in, and it is learnt again. Both are compared with
    the true one, and drawn. The graphs of the other methods, the paper's (`msg2`) among them, are compared as well.

    Example: `msg2 demo -o my-demo`
    """
    with quiet_logs(), console.training_bar("learning to see steps") as progress:
        made = run_demo(output, progress=progress)
    videos = f"{made.videos} simulated videos with missing, swapped and wrong labels"
    console.print_line(f"'{DEMO_WORLD}': {videos}; {made.violation_rate:.0%} of the labels violate the true graph.")
    console.print_line(f"\nLearnt from the labels alone ({made.graph.method['name']}, the default method):")
    console.print_line(*(f"  {rule}" for rule in made.graph.explain().splitlines()))
    console.print_line("\nAgainst the true graph, percent:")
    console.print_table(["method", *SCORES], [(name, *format_scores(scores)) for name, scores in made.scores.items()])
    console.print_line("", *(f"{kind:8} {made.files[kind]}" for kind in ("labels", "graph", "truth", "compared")))
    if made.run is None or made.run.additions is None:
        extra = "fills in the steps that nobody labelled, and learns again"
        console.print_line(f"page     {made.files['page'].resolve()}")
        console.print_note(f"With pip install 'msg2[video]', the demonstration also {extra}.")
        return
    labels = made.run.additions
    added = f"State prediction added {labels.added} labels, {labels.right} of them of steps that were really done"
    console.print_line(f"\n{added}; the annotators had left out {labels.missing}:")
    print_runs([made.run])

"""`msg2 benchmark`: methods side by side."""

import re
from pathlib import Path
from typing import Annotated

from msg2 import benchmarking
from msg2.assist.next_step_evaluation import SPLITS, TEST_SHARE
from msg2.assist.rankers import DEFAULT_RANKER
from msg2.benchmarking import BENCHMARK_SUFFIXES, check_suffixes, format_value
from msg2.cli import console, flags
from msg2.cli.flags import option, output_option

_METHODS = "Methods with commas between them, options behind colons, or rankers; default: all methods."
_SEEDS = f"Splits, each with {TEST_SHARE:.0%} of the videos held out; {SPLITS} without --truth, else none."


@flags.reads_data("repeats", "overlap", "order")
def benchmark(
    data: flags.Data,
    reading: flags.GivenOptions,
    truth: Annotated[Path | None, option("GRAPHS", "The true graph, or a folder of them.")] = None,
    methods: Annotated[list[str] | None, option("A,B:X=1", _METHODS)] = None,
    ranker: Annotated[
        str, option("NAME", "How methods predict the next step.", autocompletion=flags.complete_ranker)
    ] = DEFAULT_RANKER,
    seeds: Annotated[int | None, option("N", _SEEDS, min=1)] = None,
    against: Annotated[str | None, option("METHOD", "Compare the others with this one: paired bootstrap.")] = None,
    output: Annotated[list[Path] | None, output_option("FILE", f"{' '.join(BENCHMARK_SUFFIXES)}; repeatable.")] = None,
    task: flags.TaskName = None,
    jobs: flags.Jobs = 1,
    json: flags.Json = False,
) -> None:
    """Compare methods: their graphs with the true ones, and how often they are right about the next step.

    With --truth, each method learns once, from all videos. With --seeds, or without --truth, it learns once per split,
    and predicts the next steps of the held-out videos. What was measured is kept beside the first FILE, in
    FILE.cells.json, so that an interrupted benchmark goes on where it was.

    Examples: `msg2 benchmark steps.csv --truth truth.json -o table.md`, `msg2 benchmark steps.csv --methods
    likelihood,always-before:delta=0.8,bigram --against bigram --seeds 5 -o table.tex -o table.csv -o plot.svg`
    """
    # A comma before a digit is inside an option, as in likelihood:levels=0.02,0.2.
    names = [name.strip() for text in methods or () for name in re.split(r",(?![\d.])", text) if name.strip()]
    with console.usage_errors():
        check_suffixes(output or ())
        for name in names:
            benchmarking.read_method(name)
    flags.refuse_clashes(output or (), data, truth)
    tasks = flags.read_tasks(data, task, **reading)
    with console.progress_bar("measuring") as progress:
        result = benchmarking.benchmark(
            tasks, truth, names or None, ranker=ranker, seeds=seeds, against=against, jobs=jobs, progress=progress,
            cells=output[0].with_suffix(".cells.json") if output else None,
        )  # fmt: skip
    if output:
        result.save(*output)
    if json:
        console.print_json(result.to_json())
        return
    compared = [result.differences()] if against is not None else []
    for table in (result.table(), *compared):
        console.print_line(f"{table.title}:")
        console.print_table(table.columns, [[*map(format_value, row)] for row in table.rows])
        console.print_line(*table.notes)
    console.print_line(*map(str, output or ()))

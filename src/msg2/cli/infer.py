"""`msg2 infer`: graphs from data."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

from msg2.cli import console, flags
from msg2.cli.flags import argument, option, output_option
from msg2.errors import InputError
from msg2.files import safe_names, write_together
from msg2.formats import read_sequences
from msg2.formats.reading import choose_task
from msg2.formats.recorded_reading import record_reading
from msg2.graph import SubtaskGraph
from msg2.graph.evidence import demonstrations
from msg2.graph.explanation import all_rules
from msg2.inference.bootstrap import choose_samples
from msg2.inference.constraints import read_constraints
from msg2.inference.inference import infer as run_infer
from msg2.inference.inference import run_inference_on_all
from msg2.inference.registry import DEFAULT_METHOD, find_method
from msg2.inference.result import Statistic
from msg2.sequences import Sequences
from msg2.task import Absent

MOST_RULES = 30
"""Rules of a graph that are printed; the others are counted."""
_known = partial(option, rich_help_panel="What you know, and how sure it is")


@flags.reads_data("repeats", "overlap", "order", "tier", "fps", "draft_confidence")
def infer(
    output: Annotated[Path, output_option("OUT", "Graph file, or folder for many tasks.")],
    reading: flags.GivenOptions,
    data: Annotated[Path | None, argument("DATA", flags.DATA_HELP)] = None,
    method: flags.MethodName = DEFAULT_METHOD,
    settings: flags.Settings = None,
    absent: Annotated[Absent | None, option(None, "Steps without label: maybe done, or not done.")] = None,
    task: flags.TaskName = None,
    seed: flags.Seed = 0,
    jobs: flags.Jobs = 1,
    engine: flags.RareEngineName = "local",
    require: Annotated[list[str] | None, _known("A<B", "B needs A; A<<B: A comes first if both are done.")] = None,
    forbid: Annotated[list[str] | None, _known("A<B", "B does not need A; A<<B: nor comes after it.")] = None,
    knowledge: Annotated[Path | None, _known("FILE", "A table of kind,before,after[,weight] of these.")] = None,
    text: Annotated[Path | None, _known("FILE", "A written procedure: .txt, .md or .docx.")] = None,
    llm: Annotated[str | None, _known("URL", "A model to ask about the order; with --llm-model NAME.")] = None,
    llm_model: flags.LlmModel = None,
    llm_dry_run: flags.LlmDryRun = False,
    samples: Annotated[int | None, _known("N", "Learn again from N samples of the videos.", min=1)] = None,
    confidence: Annotated[float | None, _known("P", "Keep what this share of them says.", min=0, max=1)] = None,
    stats: Annotated[Path | None, _known("FILE", "Write purities and scores as CSV.")] = None,
) -> None:
    """Learn the subtask graph of every task in DATA, print its rules, and write it to OUT.
    Examples: `msg2 infer steps.csv -o graph.json`, `msg2 infer log.xes -o graph.json --absent skipped`
    """
    names, others = _split_names(method, settings)
    options = flags.parse_settings(method, others, absent=absent)
    with console.usage_errors():
        choose_samples(samples, confidence)
        for option, rules in (("--require", require), ("--forbid", forbid)):
            for rule in rules or ():
                if "<" not in rule:
                    raise InputError(f"{option} is {rule!r}, it must be two steps with a '<' or '<<' in between")
    if data is None:
        flags.usage_error_if(text is None, "give DATA, a --text, or both")
        flags.refuse(
            "DATA",
            require=require,
            forbid=forbid,
            knowledge=knowledge,
            llm=llm,
            samples=samples,
            stats=stats,
            **reading,
        )
        flags.refuse_clashes([output], text)
        graph = run_infer(text=text)
        write_together({output: graph.dumps()})
        row = {"task": graph.task, "steps": len(graph.steps), "edges": len(graph.edges()), "file": output}
        console.print_records([row])
        _print_rules(graph, output)
        return
    with console.progress_bar("reading") as progress:
        tasks = read_sequences(data, engine=engine, jobs=jobs, progress=progress, **reading)
    tasks = tasks if task is None else [choose_task(tasks, task, data)]
    paths = _output_paths(tasks, output, data)
    flags.refuse_clashes([*paths, *([] if stats is None else [stats])], data, text)
    statements = []
    if (client := flags.make_client(llm, llm_model, llm_dry_run)) is not None:
        from msg2.llm import ask_order

        flags.usage_error_if(len(tasks) > 1, "--llm is asked about one task: choose it with --task")
        with console.progress_bar("asking") as progress:
            statements.append(ask_order(client, tasks[0].name, tasks[0].steps, progress))
        console.print_line(f"{'would take' if llm_dry_run else 'language model:'} {client.usage.words()}")
        if llm_dry_run:
            return
    constraints = read_constraints(tasks, require=require or (), forbid=forbid or (), file=knowledge)
    with console.progress_bar("learning") as progress:
        results = [*run_inference_on_all(
            tasks, method, jobs=jobs, engine=engine, progress=progress, seed=seed, constraints=constraints,
            samples=samples, confidence=confidence, names=names, text=text, statements=statements, **options,
        )]  # fmt: skip
    graphs = [record_reading(result.graph, reading) for result in results]
    contents = {path: graph.dumps() for path, graph in zip(paths, graphs, strict=True)}
    if stats is not None:
        statistics = [(result.graph.task, result.statistics()) for result in results]
        contents[stats] = flags.fields_as_csv(Statistic, statistics)
    write_together(contents)
    console.print_records([_summary(graph, path) for path, graph in zip(paths, graphs, strict=True)])
    if len(graphs) == 1:
        _print_rules(graphs[0], paths[0])


def _split_names(method: str, settings: Sequence[str] | None) -> tuple[str | None, list[str]]:
    """The encoder of `--set names=…`, which is no option of a method but of learning, and the other settings."""
    names = [text.partition("=")[2] for text in settings or () if text.startswith("names=")]
    with console.usage_errors():
        if names and not find_method(method).reads_names:
            raise InputError(f"the method {method!r} does not read the names of the steps: leave out --set names")
    return names[-1] if names else None, [text for text in settings or () if not text.startswith("names=")]


def _print_rules(graph: SubtaskGraph, path: Path) -> None:
    rules = graph.explain().splitlines() or ["no rule: the steps may come in any order"]
    console.print_line("", *rules[:MOST_RULES])
    if len(rules) > MOST_RULES:
        console.print_line(f"… and {len(rules) - MOST_RULES} more rules; every edge: msg2 explain {path}")
    if "bootstrap" not in graph.method and any(rule.weak for rule in all_rules(graph)):
        console.print_line("(how sure each of them is: --samples 200)")
    if "bootstrap" in graph.method:
        console.print_line(f"(%: of the {graph.method['bootstrap']['samples']} samples that say this)")


def _output_paths(tasks: Sequence[Sequences], output: Path, data: Path) -> list[Path]:
    if len(tasks) == 1 and not output.is_dir():
        return [output]
    if output.suffix == ".json" and not output.is_dir():
        what = f"holds {len(tasks)} tasks, {output} can hold only one graph"
        raise InputError(what, where=data, hint="give a folder as OUT, or choose one task with --task")
    return [output / f"{name}.json" for name in safe_names([task.name for task in tasks])]


def _summary(graph: SubtaskGraph, path: Path) -> dict[str, object]:
    """Column: value of one graph; which columns there are depends on what the method tells and takes."""
    method, edges = graph.method, graph.edges()
    row: dict[str, object] = {"task": graph.task, demonstrations(graph): len(method["videos"])}
    row |= {"steps": len(graph.steps), "edges": len(edges)}
    if "model" in method:  # it tells what is needed from what only comes first, and what may be left out
        after = sum(edge.kind == "after" for edge in edges)
        row |= {"after": after, "exclusive": len(graph.exclusive), "optional": len(graph.optional)}
    if "delta" in method["options"]:
        delta, chosen = method["options"]["delta"], " (chosen)" if "delta_chosen" in method else ""
        row["delta"] = "" if delta is None else f"{delta:g}{chosen}"
    return {**row, "file": path}

"""Graph files: our own and CaptainCook4D task graphs, which serve as truth, are read; GraphML and PDDL are written.

In GraphML, steps and operators are nodes, and `exclusive` is JSON, because GraphML knows no lists. Attributes that no
part of the graph needs are left out: without `kind`, all edges mean "needs". Everything but the evidence and the method
can be read back. In PDDL, each step is an action. Doing x makes (not-done-x) false, which order and exclusive groups
require, so plain STRIPS planners can read it; only a `not` in a precondition asks for more.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from itertools import chain, count
from os import PathLike
from pathlib import Path

from msg2.errors import InputError, errors_at, require
from msg2.formats.json_files import JsonItem, member, member_items
from msg2.formats.source import Source
from msg2.graph import END, START, Formula, SubtaskGraph, all_of
from msg2.graph import step as literal
from msg2.task import Step
from msg2.text import escape_control_characters, one_line, short_repr

MAX_DEPTH = 100  # levels of nesting in a graph file; formulas that people can read have few
_LONGEST = 48  # characters of an identifier, before the number that makes it unique
_RESERVED = ("and", "or", "not", "when", "imply", "forall", "exists", "either", "define", "domain", "object", "number")


def read_graph(path: str | Path) -> SubtaskGraph:
    """Read the graph in a file: our graph JSON or a CaptainCook4D task graph, recognised by its content.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "tea.json")
    ...     _ = path.write_text('{"steps": {"1": "boil", "2": "pour"}, "edges": [["1", "2"]]}')
    ...     print(read_graph(path).precondition("pour"))
    boil
    """
    source = Source.at(path)
    require(not source.is_folder, "is a folder, not a graph file", where=path, hint="name one of the files in it")
    if not source.kind.startswith("JSON"):
        # Where the file is no text at all, reading a line of it raises the error that says so.
        next(source.lines(), None)
        hint = "msg2 infer makes one of data"
        raise InputError("is not a graph file, which is one JSON object", where=path, hint=hint)
    document = source.whole_document
    require(not has_level(document, MAX_DEPTH), f"is nested more than {MAX_DEPTH} levels deep", where=path)
    if is_task_graph(document):
        return _parse_task_graph(document, source)
    try:
        return SubtaskGraph.from_json(document)
    except InputError as error:
        where = path if error.where is None else f"{path}, {error.where}"
        raise InputError(error.what, where=where, hint=error.hint) from None


def read_truths(path: str | PathLike[str], tasks: Iterable[str]) -> dict[str, SubtaskGraph]:
    """Read the true graph of each task that has one, from a graph file or a folder of them.

    A graph belongs to the task of its name, or of the name of its file; case, spaces and punctuation do not count. If
    there is one graph and one task, they belong together.
    """
    path, names = Path(path), list(tasks)
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    graphs = [read_graph(file) for file in files]
    if len(graphs) == len(names) == 1:
        return {names[0]: graphs[0]}
    known: dict[str, SubtaskGraph] = {}
    for file, graph in zip(files, graphs, strict=True):
        for key in {_bare(graph.task), _bare(file.stem)}:
            what = f"is the second graph of {short_repr(graph.task)}"
            require(known.setdefault(key, graph) is graph, what, where=file, hint="keep one graph for each task")
    found = {name: known[_bare(name)] for name in names if _bare(name) in known}
    if not found:
        what = f"is about {short_repr(graphs[0].task)}, which is no task of the data" if graphs else "holds no graph"
        raise InputError(what, where=path, hint="name one graph file, or a folder with one per task")
    return found


def _bare(name: str) -> str:
    return "".join(filter(str.isalnum, name)).casefold()


def has_level(value: object, level: int) -> bool:
    """Whether there is anything so many levels down in a JSON value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return level == 0 or any(has_level(item, level - 1) for item in inner)


def is_task_graph(document: object) -> bool:
    """Whether a JSON document is a CaptainCook4D task graph: `{"steps": {id: name}, "edges": [[before, after]]}`."""
    return isinstance(document, dict) and isinstance(document.get("steps"), dict) and "edges" in document


def _parse_task_graph(document: JsonItem, source: Source) -> SubtaskGraph:
    """The graph of a CaptainCook4D task graph: a step needs all its direct parents; START and END are left out."""
    root = f"{source.path}, $"
    names = {number: member(document["steps"], number, str, f"{root}.steps") for number in document["steps"]}
    inner = {number for number, name in names.items() if name not in (START, END)}
    parents: dict[Step, set[Step]] = {}
    for where, pair in member_items(document, "edges", list, root):
        edge = [str(number) for number in pair]
        require(len(edge) == 2 and set(edge) <= names.keys(), "is not a pair of step ids [before, after]", where=where)
        before, after = edge
        if before in inner and after in inner:
            parents.setdefault(names[after], set()).add(names[before])
    preconditions = {name: all_of([literal(parent) for parent in sorted(needed)]) for name, needed in parents.items()}
    with errors_at(source.path):
        return SubtaskGraph(source.stem, [names[number] for number in inner], preconditions)


def to_graphml(graph: SubtaskGraph) -> str:
    """The GraphML text of `graph`; `networkx.read_graphml` reads it."""
    import networkx

    network = graph.to_networkx()
    network.graph["task"] = escape_control_characters(graph.task)
    ids = {node["label"]: name for name, node in network.nodes(data=True) if node["kind"] == "step"}
    del network.graph["exclusive"]
    if graph.exclusive:
        network.graph["exclusive"] = json.dumps([[ids[step] for step in group] for group in graph.exclusive])
    for step, share in graph.repeats.items():
        network.nodes[ids[step]]["repeats"] = share
    for _, node in network.nodes(data=True):
        node["label"] = escape_control_characters(node["label"])
        if not graph.optional:
            node.pop("optional", None)
    for _, _, edge in network.edges(data=True):
        if not graph.order:
            del edge["kind"]
        if edge["support"] is None:
            del edge["support"]
    return "\n".join(networkx.generate_graphml(network)) + "\n"


# -- PDDL -------------------------------------------------------------------------------------------------------


def to_pddl(graph: SubtaskGraph) -> str:
    """The domain of `graph`: a step can be done where it is eligible, and that makes `(done-step)` true."""
    names = pddl_identifiers(graph.steps)
    kinds = frozenset().union(*(formula.kinds for formula in graph.preconditions.values()))
    beyond = {"any": ":disjunctive-preconditions", "not": ":negative-preconditions"}
    requirements = " ".join([":strips", *(need for kind, need in beyond.items() if kind in kinds)])
    hindering, choices = _hindering_steps(graph), _choices(graph)
    facts = [*(f"done-{names[step]}" for step in graph.steps), *(f"not-done-{names[step]}" for step in hindering)]
    predicates = "".join(f"\n    ({fact})" for fact in [*facts, *choices])
    actions = ""
    for step in graph.steps:
        condition, ruled_out = graph.precondition(step), sorted(graph.ruled_out_by(step))
        clauses = [_condition(clause, names) for clause in condition.clauses()]
        clauses += [f"(not-done-{names[other]})" for other in ruled_out]
        needed = f"(and {' '.join(clauses)})" if ruled_out else _condition(condition, names)
        effects = [f"(done-{names[step]})"]
        effects += [f"(not (not-done-{names[step]}))"] if step in hindering else []
        effects += [f"({choice})" for choice, group in choices.items() if step in group]
        effect = effects[0] if len(effects) == 1 else f"(and {' '.join(effects)})"
        actions += (
            f"\n\n  ; {one_line(step)}\n  (:action {names[step]}\n    :parameters ()\n"
            f"    :precondition {needed}\n    :effect {effect})"
        )
    return (
        f"; {one_line(graph.task)}\n(define (domain {_domain_name(graph)})\n"
        f"  (:requirements {requirements})\n"
        f"  (:predicates{predicates}){actions})\n"
    )


def to_pddl_problem(graph: SubtaskGraph) -> str:
    """Write the problem that goes with the domain; its goal leaves out what other steps of the goal need anyway."""
    names = pddl_identifiers(graph.steps)
    needs = graph.necessary
    if not graph.optional and not graph.exclusive:  # the planner chooses the branch of an "any"
        needs = {step: graph.parents(step) for step in graph.steps}
    needed = frozenset().union(*(needs[step] for step in graph.required))
    goal = [f"(done-{names[step]})" for step in graph.steps if step in graph.required - needed]
    goal += [f"({choice})" for choice in _choices(graph)]
    init = [f"(not-done-{names[step]})" for step in _hindering_steps(graph)]
    return (
        f"; {one_line(graph.task)}\n(define (problem do-{_domain_name(graph)})\n"
        f"  (:domain {_domain_name(graph)})\n"
        f"  ({' '.join([':init', *init])})\n  (:goal ({' '.join(['and', *goal])})))\n"
    )


def problem_path(domain: Path) -> Path:
    """The path of the problem, beside the file of its domain: tea-problem.pddl beside tea.pddl."""
    return domain.with_stem(f"{domain.stem}-problem")


def pddl_identifiers(names: Iterable[str]) -> Mapping[str, str]:
    """A different PDDL identifier for every name: a letter, then letters, digits and hyphens, all lower case."""
    taken = set(_RESERVED)
    identifiers: dict[str, str] = {}
    for name in names:
        letters = unicodedata.normalize("NFKD", name).replace("\N{FRACTION SLASH}", "-").encode("ascii", "ignore")
        plain = re.sub(r"[^a-z0-9]+", "-", letters.decode("ascii").lower()).strip("-")[:_LONGEST].rstrip("-")
        base = plain if plain[:1].isalpha() else f"step-{plain}".rstrip("-")
        numbered = chain([base], (f"{base}-{number}" for number in count(2)))
        identifiers[name] = next(candidate for candidate in numbered if candidate not in taken)
        taken.add(identifiers[name])
    return identifiers


def _domain_name(graph: SubtaskGraph) -> str:
    return pddl_identifiers([graph.task])[graph.task]


def _hindering_steps(graph: SubtaskGraph) -> dict[Step, None]:
    """The steps after which another one cannot be done, in the order of the graph."""
    hindering = frozenset().union(*map(graph.ruled_out_by, graph.steps))
    return dict.fromkeys(step for step in graph.steps if step in hindering)


def _choices(graph: SubtaskGraph) -> Mapping[str, tuple[Step, ...]]:
    """The groups of which one step must be done, by the predicate that says so."""
    groups = [group for group in graph.exclusive if graph.optional.isdisjoint(group)]
    return {f"one-of-{number}": group for number, group in enumerate(groups, start=1)}


def _condition(formula: Formula, names: Mapping[Step, str]) -> str:
    if formula.kind == "step":
        return f"(done-{names[formula.name]})"
    operator = {"true": "and", "all": "and", "any": "or", "not": "not"}[formula.kind]
    return "(" + " ".join([operator, *(_condition(operand, names) for operand in formula.operands)]) + ")"

"""The written procedure: the steps of a graph as a numbered list that people can follow, print and tick off.

The list is one order that respects every arrow and every stated rule. Each step has its sentence, what it needs, and
the evidence behind it; steps of which a run does only one share a number.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass
from html import escape
from itertools import chain
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from msg2.assist.time_left import times_unknown
from msg2.drawing.page_parts import data_uri, document, escape_name
from msg2.errors import InputError
from msg2.files import write_whole
from msg2.formats import to_task
from msg2.graph import SubtaskGraph
from msg2.graph.evidence import demonstrations
from msg2.graph.explanation import response_backing, sentences
from msg2.graph.formula import TRUE, Formula, all_of
from msg2.graph.graph_file import StatedRule
from msg2.task import Step, Task
from msg2.text import one_line

if TYPE_CHECKING:
    import networkx

    from msg2.formats.conversion import Demonstrations

DRAFT = "Draft — not reviewed"
PEOPLE = "The pictures show people who took part in the recordings: ask them before you pass this on."
PROCEDURE_SUFFIXES = (".html", ".md", ".docx", ".pdf")
"""The formats of a written procedure, by the suffix of the file."""
CHOICES = {
    "one": "Do one of these:",
    "one or none": "Do one of these, or none:",
    "some": "Do at least one of these:",
}
LineKind: TypeAlias = Literal[
    "title", "status", "heading", "item", "warning", "choice", "step", "must", "note", "still", "evidence"
]


class NumberedSteps(NamedTuple):
    """Steps that share a number: one step, or several of which a run does one, one or none, or at least one."""

    steps: tuple[Step, ...]
    choice: str = ""
    """A key of `CHOICES`; empty for a single step."""


class Still(NamedTuple):
    """A picture of a step."""

    jpeg: bytes
    caption: str
    """Which video it is from, and when."""


class Line(NamedTuple):
    """A paragraph of a procedure, for formats that have no more than paragraphs."""

    kind: LineKind
    text: str
    jpeg: bytes = b""


@dataclass(frozen=True, slots=True)
class ProcedureStep:
    """One step as people read it."""

    label: str
    """Its number, with a letter where it is one of several."""
    name: Step
    description: str
    warnings: tuple[str, ...]
    musts: tuple[str, ...]
    """Stated rules, as sentences."""
    notes: tuple[str, ...]
    """What else there is to know, as sentences."""
    evidence: tuple[str, ...]
    still: Still | None


@dataclass(frozen=True, slots=True)
class ProcedureBlock:
    """The steps that share a number, with what to do with them where there are several."""

    choice: str
    """Such as "Do one of these:"; empty for a single step."""
    steps: tuple[ProcedureStep, ...]


@dataclass(frozen=True, slots=True)
class Procedure:
    """A written procedure, whatever file it becomes."""

    title: str
    status: str
    """Who has reviewed it; or that it is a draft."""
    version: str | None
    tools: tuple[str, ...]
    warnings: tuple[str, ...]
    blocks: tuple[ProcedureBlock, ...]
    """In the order in which they are done."""
    basis: str
    """What it was learned from."""

    @property
    def steps(self) -> Iterator[ProcedureStep]:
        """All steps, in order."""
        return chain.from_iterable(block.steps for block in self.blocks)

    @property
    def has_stills(self) -> bool:
        """Whether there are pictures of the recordings in it."""
        return any(step.still for step in self.steps)

    @property
    def subtitle(self) -> str:
        """Version and status."""
        return " · ".join([*([f"Version {self.version}"] if self.version else []), self.status])

    def lines(self) -> Iterator[Line]:
        """The procedure as paragraphs, its evidence at the end."""
        yield Line("title", self.title)
        yield Line("status", self.subtitle)
        for heading, texts in (("You need", self.tools), ("Take care", self.warnings)):
            if texts:
                yield Line("heading", heading)
                yield from (Line("item", text) for text in texts)
        yield Line("heading", "Steps")
        for number, block in enumerate(self.blocks, start=1):
            if block.choice:
                yield Line("choice", f"{number}. {block.choice}")
            for step in block.steps:
                yield from (Line("warning", f"Take care: {text}") for text in step.warnings)
                yield Line("step", f"{step.label}. {step.name}{f' — {step.description}' if step.description else ''}")
                yield from (Line("must", text) for text in step.musts)
                if step.notes:
                    yield Line("note", " ".join(step.notes))
                if step.still:
                    yield Line("still", step.still.caption, step.still.jpeg)
        yield Line("heading", "How we know")
        yield Line("evidence", self.basis)
        for step in self.steps:
            yield Line("evidence", f"{step.label}. {' '.join(step.evidence)}")


def make_procedure(
    graph: SubtaskGraph, data: Demonstrations | None = None, stills: Mapping[Step, Still] | None = None
) -> Procedure:
    """Put a graph into a procedure.

    Parameters
    ----------
    graph : SubtaskGraph
        The graph; its `texts` have descriptions, warnings, tools, version and who has reviewed it.
    data : Task or anything that `msg2.infer` takes, optional
        Recordings of the task: of the orders that the graph allows, the usual one is taken; and how long steps take,
        where the times are working times.
    stills : mapping from str to Still, optional
        Pictures of steps.

    Returns
    -------
    Procedure

    >>> from msg2.graph import step
    >>> graph = SubtaskGraph("tea", ["boil", "pour", "sugar"], {"pour": step("boil")}, optional=["sugar"])
    >>> [step.name for step in make_procedure(graph).steps]
    ['boil', 'sugar', 'pour']
    """
    task, texts, pictures = None if data is None else to_task(data), graph.texts, stills or {}
    blocks = reading_order(graph, {} if task is None else _usual_places(task))
    labels = {
        name: f"{number}{_letters(place) if block.choice else ''}"
        for number, block in enumerate(blocks, start=1)
        for place, name in enumerate(block.steps)
    }
    seconds = {} if task is None or times_unknown(task, graph) else _seconds(task)
    reduced, reviewed = graph.transitive_reduction(), texts.reviewed

    def describe(name: Step, block: NumberedSteps) -> ProcedureStep:
        notes = [*_notes(reduced, name, block, labels)]
        if name in seconds:
            notes.append(f"Takes about {in_words(seconds[name])}.")
        musts = [_must(rule, labels) for rule in graph.rules if rule.after == name]
        own = tuple(caution.text for caution in texts.warnings if caution.step == name)
        why, description = tuple(sentences(graph, name)), texts.descriptions.get(name, "")
        return ProcedureStep(labels[name], name, description, own, tuple(musts), tuple(notes), why, pictures.get(name))

    learned, noun = graph.method.get("videos"), demonstrations(graph)
    status = DRAFT
    if reviewed is not None:
        status = f"Reviewed by {reviewed.by}{f', on {reviewed.on}' if reviewed.on else ''}"
    return Procedure(
        graph.task, status, texts.version, tuple(texts.tools),
        tuple(caution.text for caution in texts.warnings if caution.step is None),
        tuple(
            ProcedureBlock(CHOICES.get(block.choice, ""), tuple(describe(name, block) for name in block.steps))
            for block in blocks
        ),
        f"Learned from {len(learned)} {noun}." if isinstance(learned, list) else "Written down by people.",
    )  # fmt: skip


def _letters(place: int) -> str:
    """a, b, …, z, aa, ab, …"""
    return (_letters(place // 26 - 1) if place >= 26 else "") + chr(ord("a") + place % 26)


def reading_order(graph: SubtaskGraph, usual: Mapping[Step, float] | None = None) -> list[NumberedSteps]:
    """Find one order of the steps that respects every arrow and every stated rule.

    Of those that do, that of `usual`, where in a recording a step is usually done, from 0 to 1; without it, what most
    depends on comes first. Alternatives stand together where nothing must come in between.

    >>> from msg2.graph import any_of, step
    >>> ground = any_of([step("grind"), step("open")])
    >>> graph = SubtaskGraph("coffee", ["brew", "grind", "open"], {"brew": ground}, exclusive=[("grind", "open")])
    >>> reading_order(graph)
    [NumberedSteps(steps=('grind', 'open'), choice='one'), NumberedSteps(steps=('brew',), choice='')]
    """
    import networkx

    arrows = networkx.DiGraph([*graph.order, *graph.stated])
    arrows.add_nodes_from(graph.steps)
    negated = [(name, other) for name, f in graph.preconditions.items() for other, done in _literals(f) if not done]
    needed = ((other, name) for name, f in graph.preconditions.items() for other, done in _literals(f) if done)
    arrows.add_edges_from(needed)
    for pair in negated:  # what must not be done yet comes later, where it can
        arrows.add_edge(*pair)
        if not networkx.is_directed_acyclic_graph(arrows):
            arrows.remove_edge(*pair)
    block_of = {name: NumberedSteps((name,)) for name in graph.steps}
    for block in _choices(graph):
        joined = block_of | dict.fromkeys(block.steps, block)
        free = not any(block_of[name].choice for name in block.steps) and not arrows.subgraph(block.steps).edges
        if free and networkx.is_directed_acyclic_graph(_join(arrows, joined)):
            block_of = joined
    blocks = _join(arrows, block_of)
    depth: dict[NumberedSteps, int] = {}
    for block in reversed([*networkx.topological_sort(blocks)]):
        depth[block] = 1 + max((depth[after] for after in blocks.successors(block)), default=0)

    def rank(block: NumberedSteps) -> tuple[float, int, int]:
        places = [usual[name] for name in block.steps if name in usual] if usual else []
        return fmean(places) if places else 1.0, -depth[block], graph.index[block.steps[0]]

    return [*networkx.lexicographical_topological_sort(blocks, key=rank)]


def _choices(graph: SubtaskGraph) -> Iterator[NumberedSteps]:
    """The alternatives of a graph: exclusive groups, and optional steps of which one is needed."""
    for group in graph.exclusive:
        yield NumberedSteps(group, "one" if graph.optional.isdisjoint(group) else "one or none")
    for name, formula in graph.preconditions.items():
        for clause in formula.clauses():
            steps = tuple(sorted(clause.steps))
            if clause.kind == "any" and len(clause.operands) == len(steps) and graph.optional.issuperset(steps):
                yield NumberedSteps(steps, "some" if name in graph.required else "one or none")


def _join(arrows: networkx.DiGraph, block_of: Mapping[Step, NumberedSteps]) -> networkx.DiGraph:
    """The same arrows between blocks."""
    import networkx

    joined = networkx.DiGraph((block_of[a], block_of[b]) for a, b in arrows.edges)
    joined.add_nodes_from(block_of.values())
    return joined


def _literals(formula: Formula, done: bool = True) -> Iterator[tuple[Step, bool]]:
    """The steps of a formula, and whether they must be done or must not."""
    if formula.kind == "step":
        yield formula.name, done
    for operand in formula.operands:
        yield from _literals(operand, done != (formula.kind == "not"))


def _usual_places(task: Task) -> dict[Step, float]:
    """Where in a recording each step is done for the first time, from 0 to 1, on average."""
    places: dict[Step, list[float]] = {}
    for video in task:
        sequence = [*dict.fromkeys(video.sequence())]
        for place, name in enumerate(sequence):
            places.setdefault(name, []).append((place + 0.5) / len(sequence))
    return {name: fmean(own) for name, own in places.items()}


def _seconds(task: Task) -> dict[Step, float]:
    """How long each step takes, median."""
    lasted: dict[Step, list[float]] = {}
    for segment in chain.from_iterable(video.segments for video in task):
        if segment.start is not None and segment.end is not None and segment.end > segment.start:
            lasted.setdefault(segment.step, []).append(segment.end - segment.start)
    return {name: median(own) for name, own in lasted.items()}


def in_words(seconds: float) -> str:
    """A duration as people say it: "40 seconds", "5 minutes", "2 hours", "3 days"."""
    for unit, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= 1.5 * unit:
            count = round(seconds / unit)
            return f"{count} {name}{'s' * (count != 1)}"
    count = max(10 * round(seconds / 10) if seconds >= 20 else round(seconds), 1)
    return f"{count} second{'s' * (count != 1)}"


def _notes(graph: SubtaskGraph, name: Step, block: NumberedSteps, labels: Mapping[Step, str]) -> Iterator[str]:
    """What a graph says about a step, with the numbers of other steps."""

    def those(names: Set[Step], joint: str = "and") -> str:
        *others, last = sorted((labels[other] for other in names), key=lambda label: (len(label), label))
        if not others:
            return f"step {last}"
        return f"step{'s' * (joint == 'and')} {', '.join(others)} {joint} {last}"

    if name in graph.optional and not block.choice:
        yield "Optional."
    stated = {early for early, late in graph.stated if late == name}
    needed = all_of(clause for clause in graph.precondition(name).clauses() if clause.name not in stated)
    if needed != TRUE:
        yield f"Needs {needed.text(' and ', ' or ', 'not ', lambda other: f'step {labels[other]}')}."
    if before := graph.order_predecessors(name) - graph.parents(name) - stated:
        yield f"After {those(before)}, if done."
    if others := graph.partners(name).difference(block.steps):
        yield f"Not where {those(others, 'or')} {'is' if len(others) == 1 else 'are'} done."
    if together := labels.keys() & graph.step_evidence(name).together:
        yield f"At the same time as {those(together)}."
    for first, formula in graph.responses:
        doubtful = response_backing(graph, first, formula).weak
        if first == name and not doubtful and (follows := formula.steps - graph.required):
            yield f"{'Later' if name in graph.required else 'If you do this'}, {those(follows, 'or')} must follow."
    for loop in graph.loops:
        if name == loop.steps[-1]:
            yield f"If needed, go back to step {labels[loop.steps[0]]}."


def _must(rule: StatedRule, labels: Mapping[Step, str]) -> str:
    """A stated rule as a sentence at the later step."""
    said = ", ".join(part for part in (rule.by, rule.on) if part)
    place = f"step {labels[rule.before]}"
    what = f"Do not start before {place} is done" if rule.kind == "needs" else f"Only after {place}, if both are done"
    return f"{what}{f' ({said})' if said else ''}."


# -- files ----------------------------------------------------------------------------------------------------------


def write_procedure(
    graph: SubtaskGraph,
    path: Path,
    data: Demonstrations | None = None,
    stills: Mapping[Step, Still] | None = None,
) -> Path:
    """Write a graph as a procedure for people.

    Parameters
    ----------
    graph, data, stills
        As for `make_procedure`.
    path : Path
        The file to write: .html (one file, to print or to tick off on a phone), .md, .docx or .pdf.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        Where the suffix is none of these, a library that writes it is not installed, or the file cannot be written.
    """
    from msg2.drawing import procedure_files

    writers: tuple[Callable[[Procedure], str | bytes], ...]
    writers = (procedure_page, to_markdown, procedure_files.to_docx, procedure_files.to_pdf)
    if (suffix := path.suffix.lower()) not in PROCEDURE_SUFFIXES:
        raise InputError("is no format of a procedure", where=path, hint=f"use one of {' '.join(PROCEDURE_SUFFIXES)}")
    write = writers[PROCEDURE_SUFFIXES.index(suffix)]
    write_whole(path, write(make_procedure(graph, data, stills)))
    return path


_MARKDOWN: Mapping[LineKind, str] = {
    "title": "# {}\n", "status": "*{}*\n", "heading": "\n## {}\n", "item": "- {}", "warning": "\n> **{}**\n",
    "choice": "\n**{}**\n", "step": "\n**{}**\n", "must": "**{}**\n", "note": "{}\n", "still": "*({})*\n",
    "evidence": "{}\n",
}  # fmt: skip
_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_[]<>#|"})


def to_markdown(procedure: Procedure) -> str:
    """The procedure in Markdown; pictures are left out, their captions stay."""
    return "\n".join(_MARKDOWN[line.kind].format(one_line(line.text).translate(_MARKS)) for line in procedure.lines())


def procedure_page(procedure: Procedure) -> str:
    """The procedure as one HTML file, which prints on A4 and is a checklist on a phone."""
    lists = (("You need", procedure.tools), ("Take care", procedure.warnings))
    needed = [
        f"<h2>{heading}</h2><ul>{''.join(f'<li>{_html(text)}</li>' for text in texts)}</ul>"
        for heading, texts in lists
        if texts
    ]
    blocks = []
    for block in procedure.blocks:
        steps = "".join(_step_html(step) for step in block.steps)
        blocks.append(f"<li class=choice><p>{block.choice}</p><ol>{steps}</ol></li>" if block.choice else steps)
    draft = " draft" if procedure.status == DRAFT else ""
    people = f"<p>{PEOPLE}</p>" if procedure.has_stills else ""
    evidence = "".join(
        f'<li id="why-{step.label}"><b>{step.label}. {escape_name(step.name)}</b> {_html(" ".join(step.evidence))}</li>'
        for step in procedure.steps
    )
    body = (
        f'<p class="status{draft}">{_html(procedure.subtitle)}</p>{"".join(needed)}<h2>Steps</h2>'
        f"<ol class=steps>{''.join(blocks)}</ol><p><button type=button hidden>Start again</button></p>"
        f"<details class=evidence><summary>How we know</summary><p>{_html(procedure.basis)}</p>{people}"
        f"<ul>{evidence}</ul></details>"
    )
    names = "\0".join(f"{step.label} {step.name}" for step in procedure.steps)
    key = hashlib.sha256(names.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return document(procedure.title, body, {"key": key}, scripts=("procedure",), style="procedure.css")


def _step_html(step: ProcedureStep) -> str:
    """A step as an item of the list, with a box to tick."""
    care = "".join(f"<p class=care>Take care: {_html(text)}</p>" for text in step.warnings)
    musts = "".join(f"<p class=must>{_html(text)}</p>" for text in step.musts)
    notes = f"<p class=note>{_html(' '.join(step.notes))}</p>" if step.notes else ""
    description = f"<p>{_html(step.description)}</p>" if step.description else ""
    picture = ""
    if step.still:
        picture = (
            f'<figure><img src="{data_uri(step.still.jpeg)}" alt="">'
            f"<figcaption>{_html(step.still.caption)}</figcaption></figure>"
        )
    why = f'<a class=why href="#why-{step.label}" aria-label="Why step {step.label}?">why?</a>'
    return (
        f"<li>{care}<label><input type=checkbox> <b>{step.label}. {escape_name(step.name)}</b></label> {why}"
        f"{description}{musts}{notes}{picture}</li>"
    )


def _html(text: str) -> str:
    return escape(one_line(text))

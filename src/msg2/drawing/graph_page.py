"""One self-contained page: the graph to explore, the videos under it, and what they say about every step.

It loads nothing from outside, and without its script you can still read the diagram and the table. The script works
with plain values in which steps are numbers, so nothing depends on what names hold. Links to videos are relative.
"""

import hashlib
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

from msg2.assist import check
from msg2.assist.forecasting import fit_end_probability
from msg2.assist.learned_forecaster import QUICK_LABELS, fit_forecaster
from msg2.assist.mistakes import ACCUSED
from msg2.assist.rankers import RHO
from msg2.drawing.diagram import Diagram, build_diagram
from msg2.drawing.dot import render_svg, to_dot
from msg2.drawing.page_parts import asset, document, escape_name, fill, inline_svg, percents, table_row
from msg2.drawing.style import SIGNS, PictureOptions
from msg2.formats.video_files import find_video_files
from msg2.graph import SubtaskGraph
from msg2.graph.evidence import edge_backing
from msg2.graph.explanation import all_rules, comes_after, name_some, relations
from msg2.graph.formula import TRUE, Formula
from msg2.metrics import score_graph
from msg2.task import PREDICTED, Step, Task, Video
from msg2.text import one_line, truncate

MOST_VIDEOS = 2_000  # videos that a page holds; of more, it shows a sample
_LONGEST_LABEL = 400


def html_page(
    graph: SubtaskGraph,
    videos: Task | None = None,
    *,
    compare: SubtaskGraph | None = None,
    marks: Mapping[Step, str] | None = None,
    media: Mapping[str, str] | None = None,
    sections: str = "",
    reduce: bool = True,
    picture: PictureOptions | None = None,
) -> str:
    """The interactive page of a graph as HTML, in one piece.

    Parameters
    ----------
    graph : SubtaskGraph
        The graph.
    videos : Task, optional
        Labels that can be played on the page, of steps of the graph.
    compare, marks, reduce : optional
        As for `show`.
    media : mapping from str to str, optional
        By the id of a video, the address of its file, relative to the page.
    sections : str
        HTML that follows below; see `msg2.drawing.page_parts`.
    picture : PictureOptions, optional
        Of these, the page takes the direction.

    Returns
    -------
    str
        The HTML document.

    >>> from msg2.graph import step
    >>> html_page(SubtaskGraph("tea", ["boil", "pour"], {"pour": step("boil")}))[:15]
    '<!DOCTYPE html>'
    """
    diagram, options = build_diagram(graph, compare, marks, reduce), picture or PictureOptions()
    sample = None if videos is None else videos.sample(MOST_VIDEOS)
    steps, omitted = diagram.graph.steps, diagram.omitted_edges
    labels = [_accessible_label(graph, step) for step in steps]
    links = {step: f'<a href="#step-{number}">{escape_name(step)}</a>' for number, step in enumerate(steps)}
    also = {step: "<br>".join(_also(graph, step, links)) for step in steps}
    body = fill(
        "page.html",
        summary=_summary(graph, len(sample or ()), len(videos or ())),
        picture=inline_svg(render_svg(to_dot(diagram, options)), labels),
        kinds="".join(f"<li>{SIGNS[kind].html}{SIGNS[kind].words}</li>\n" for kind in diagram.drawn_kinds),
        legend=asset("comparison_legend.html") if diagram.compared else "",
        omitted_edges=f" Arrows that follow from others are left out ({omitted})." if omitted else "",
        compared="" if compare is None else fill("scores.html", **percents(score_graph(graph, compare))),
        also='<th scope="col">Also</th>' if any(also.values()) else "",
        rows="\n".join(_row(graph, step, number, links, also) for number, step in enumerate(steps)),
        sections=_weak_rules(graph) + sections,
    )
    return document(graph.task, body, page_data(graph, diagram, sample, media) | {"direction": options.direction})


def _summary(graph: SubtaskGraph, shown: int, total: int) -> str:
    """What the graph is about; and how many of the videos the page shows, if not all."""
    videos = graph.method.get("videos")
    method = graph.method.get("name")
    parts = [f"{len(graph.steps)} steps"]
    parts += [f"{len(videos)} videos"] if isinstance(videos, list) else []
    parts += [f"learnt with {escape_name(method)}"] if isinstance(method, str) else []
    parts += [f"{shown:,} of {total:,} videos can be played here, evenly spread"] if shown < total else []
    return " · ".join(parts)


def _accessible_label(graph: SubtaskGraph, step: Step) -> str:
    """Describe a step to screen readers."""
    formula = graph.precondition(step)
    needs = "nothing before it" if formula == TRUE else formula.text(" and ", " or ", "not ", one_line)
    more = (*comes_after(graph, step, one_line), *relations(graph, step, one_line))
    return truncate(" ".join([f"{one_line(step)}. Needs {needs}.", *more]), _LONGEST_LABEL)


def _weak_rules(graph: SubtaskGraph) -> str:
    """List the rules that may be chance."""
    weak = [f"<li><bdi>{escape(one_line(rule.text))}</bdi></li>" for rule in all_rules(graph) if rule.weak]
    return fill("weak_rules.html", count=len(weak), rules="\n".join(weak)) if weak else ""


def _row(graph: SubtaskGraph, step: Step, number: int, links: Mapping[Step, str], also: Mapping[Step, str]) -> str:
    """Write what is known about a step as a row of the table, with links to the rows of other steps."""
    precondition, evidence = graph.precondition(step), graph.step_evidence(step)
    held, not_held = "", ""
    if evidence.videos is not None and (precondition == TRUE or evidence.holds is None):
        held = f'<span class="number quiet">in {evidence.videos} videos</span>'
    elif evidence.videos is not None and evidence.holds is not None:
        percent = f" ({100 * evidence.holds / evidence.videos:.0f} %)" if evidence.videos else ""
        held = f'<span class="number">{evidence.holds} of {evidence.videos}{percent}</span>'
    if precondition != TRUE:
        not_held = name_some([escape_name(video) for video in evidence.violations or ()])
    runner_up, scores = "", ""
    if evidence.runner_up is not None:
        known = [f"{value:.3f}" for value in (evidence.runner_up.score, evidence.score) if value is not None]
        scores = f' <span class="quiet">(score {" against ".join(known)})</span>' if known else ""
        runner_up = _needs(evidence.runner_up.precondition, links)
    more = [also[step]] if any(also.values()) else []
    cells = (escape_name(step), _needs(precondition, links), *more, held, not_held, runner_up + scores)
    return table_row(*cells, mark=f' id="step-{number}"')


def _needs(formula: Formula, links: Mapping[Step, str]) -> str:
    if formula == TRUE:
        return '<span class="quiet">nothing before it</span>'
    return formula.text(" <b>and</b> ", " <b>or</b> ", "<b>not</b> ", lambda step: links.get(step) or escape_name(step))


def _also(graph: SubtaskGraph, step: Step, links: Mapping[Step, str]) -> Iterator[str]:
    """What the graph says about a step beyond what it needs."""
    yield from (*comes_after(graph, step, links.__getitem__), *relations(graph, step, links.__getitem__))


def find_video_links(videos: Task, folder: Path, page: Path) -> dict[str, str]:
    """Find the files of videos and write their addresses for a page.

    Parameters
    ----------
    videos : Task
        The videos.
    folder : Path
        Where their files are; the folders in it are searched too.
    page : Path
        The page that links to them.

    Returns
    -------
    dict from str to str
        By the id of a video that has a file, its address relative to the page.
    """
    recordings, _ = find_video_files(folder, wanted=[video.id for video in videos])
    home = page.resolve().parent
    return {
        recording.video: quote(Path(os.path.relpath(recording.media.resolve(), home)).as_posix())
        for recording in recordings
        if recording.media is not None
    }


StepNumbers: TypeAlias = Mapping[Step, int]
"""The number of each step on the page: its place among the steps of the diagram."""
PageObject: TypeAlias = dict[str, object]  # an object in the page, whose script (assets/*.js) says what it holds


def page_data(
    graph: SubtaskGraph, diagram: Diagram, videos: Task | None = None, media: Mapping[str, str] | None = None
) -> PageObject:
    """Collect the values that the page of a graph works with."""
    number, identity = diagram.graph.index, "\0".join([graph.task, *diagram.graph.steps])
    groups = [{"steps": [int(node[1:]) for node in group.nodes], "status": group.status} for group in diagram.groups]
    return _known({
        "task": one_line(graph.task),
        "key": hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:16],
        "compared": diagram.compared,
        "rho": RHO,
        "steps": [_step(graph, name, number, named=videos is None) for name in diagram.graph.steps],
        "arrows": [
            _known({
                "source": arrow.source, "target": arrow.target, "after": number[arrow.after], "status": arrow.status,
                "kind": None if arrow.kind == "needs" else arrow.kind, "trueKind": arrow.true_kind,
                "before": None if arrow.before is None else number[arrow.before],
            })
            for arrow in diagram.arrows
        ],
        "groups": groups or None,
        "loops": [int(loop.target[1:]) for loop in diagram.loops] or None,
        "videos": [] if videos is None else _videos(graph, videos, number, media or {}),
        "forecast": None if videos is None else _forecast(graph, videos, number),
    })  # fmt: skip


def _known(entry: PageObject) -> PageObject:
    return {key: value for key, value in entry.items() if value is not None}


def _step(graph: SubtaskGraph, name: Step, number: StepNumbers, named: bool) -> PageObject:
    """`named`: with the names of the videos that contradict the precondition, which are otherwise found from labels."""
    evidence, partners = graph.step_evidence(name), sorted(number[partner] for partner in graph.partners(name))
    violations = evidence.violations if named else None
    second = evidence.runner_up
    shown, edges = ("before", "together", "probability", "direct"), dict[int, PageObject]()
    for before, support in evidence.edges.items():
        if before in number:
            backing, counts = replace(edge_backing(graph, before, name), share=None), support.to_json()
            told = {"told": backing.words() or None, "doubt": backing.doubt or None}
            edges[number[before]] = _known({key: counts.get(key) for key in shown} | told)
    also = [text.split("\0") for text in relations(graph, name, lambda other: f"\0{number[other]}\0")]
    runner_up = None
    if second is not None and second.precondition.steps <= number.keys():
        runner_up = _known({"needs": second.precondition.to_json(number.__getitem__), "score": second.score})
    return _known({
        "name": one_line(name),
        "needs": graph.precondition(name).to_json(number.__getitem__),
        "videos": evidence.videos,
        "holds": evidence.holds,
        "confidence": evidence.confidence,
        "score": evidence.score,
        "violations": None if violations is None else [one_line(video) for video in violations[:MOST_VIDEOS]],
        "edges": {before: support for before, support in edges.items() if support} or None,
        "second": runner_up,
        "after": sorted(number[before] for before in graph.order_predecessors(name)) or None,
        "never": partners or None,
        "mayOmit": name in graph.optional - graph.required or None,
        "also": also or None,
    })  # fmt: skip


def _forecast(graph: SubtaskGraph, task: Task, number: StepNumbers) -> PageObject | None:
    """What the page needs to forecast the next step, and the end, as the library does; nothing without any label."""
    if not any(video.segments for video in task):
        return None
    first = task.with_first_labels()  # the checklist of the page ticks every step once
    learned = fit_forecaster(graph, first, labels=QUICK_LABELS).to_json()
    end = fit_end_probability(graph, first).to_json()
    return learned | {"steps": [number[name] for name in graph.steps], "end_terms": end["terms"]}


def _videos(graph: SubtaskGraph, task: Task, number: StepNumbers, media: Mapping[str, str]) -> list[PageObject]:
    report = check(graph, task)
    wrong = defaultdict[tuple[str, str], list[object]](list)  # by video, and by what it is on the page
    for reported, absence in ((report.mistakes, "leftOut"), (report.not_seen, "notSeen")):
        for mistake in reported:
            if mistake.probability < ACCUSED:
                continue
            unmet = [clause.to_json(number.__getitem__) for clause in mistake.unmet]
            if mistake.position is None:
                absent = wrong[mistake.video, absence]
                absent += [formula for formula in unmet or [number[mistake.step]] if formula not in absent]
            else:
                probability = None if mistake.probability == 1 else round(mistake.probability, 3)
                more = _known({"unmet": unmet or None, "probability": probability})
                wrong[mistake.video, "mistakes"].append({"at": mistake.position - 1, "kind": mistake.kind, **more})
    shown = []
    for video in task:
        steps = [number[segment.step] for segment in video.segments]
        added = [
            # The place of a predicted segment, and its confidence in percent where that is known.
            [place] if segment.confidence is None else [place, round(100 * segment.confidence)]
            for place, segment in enumerate(video.segments)
            if segment.source == PREDICTED
        ]
        mistakes = {key: wrong[video.id, key] for key in ("mistakes", "leftOut", "notSeen")}
        known = {"times": _times(video), "added": added, **mistakes, "file": media.get(video.id)}
        entry: PageObject = {"id": one_line(video.id), "steps": steps}
        shown.append(entry | {key: value for key, value in known.items() if value})
    return shown


def _times(video: Video) -> list[float]:
    """Start and end of every segment, to the millisecond and without ".0": a page holds many of them."""
    times = (time for segment in video.segments for time in (segment.start, segment.end) if time is not None)
    rounded = (round(float(time), 3) for time in times)
    return [int(time) if time.is_integer() and time < 1e9 else time for time in rounded]

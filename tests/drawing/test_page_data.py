"""What is embedded in a page: the same as the library says, small, and safe whatever names and evidence hold."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2 import drawing
from msg2.assist import check
from msg2.assist.forecasting import fit_end_probability
from msg2.assist.learned_forecaster import fit_forecaster
from msg2.drawing.diagram import build_diagram
from msg2.drawing.graph_page import page_data
from msg2.errors import InputError
from msg2.graph import Formula, SubtaskGraph, all_of, any_of, formula_from_json, step
from msg2.task import Segment, Task, Video
from msg2.text import name_fault, one_line

TASK = Task("tea", ["boil", "fill", "pour"], [
    Video("v1", [Segment("pour", 0, 1.23456), Segment("boil", 2, 3, 0.756, "predicted"), Segment("pour", 3, 4)]),
    Video("v2", [Segment("fill"), Segment("boil"), Segment("pour", source="predicted")]),
    Video("v3", []),
])  # fmt: skip
GRAPH = SubtaskGraph("tea", TASK.steps, {"boil": step("fill"), "pour": all_of([step("boil"), step("fill")])})


def embedded(html: str) -> Any:
    (text,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', html, re.DOTALL)
    return json.loads(text)


def named(formula: Any, steps: list[str]) -> Formula:
    """A formula of the page with its names."""

    def value(inner: Any) -> Any:
        if isinstance(inner, dict):
            return {kind: value(part) for kind, part in inner.items()}
        if isinstance(inner, list):
            return [value(part) for part in inner]
        return inner if inner is True else steps[inner]

    return formula_from_json(value(formula))


def test_the_graph_can_be_read_back(cpr: SubtaskGraph) -> None:
    data = embedded(drawing.html_page(cpr))
    steps = [entry["name"] for entry in data["steps"]]
    assert {name: named(entry["needs"], steps) for name, entry in zip(steps, data["steps"], strict=True)} == {
        name: cpr.precondition(name) for name in cpr.steps
    }
    entry = data["steps"][steps.index("open airway")]
    assert (entry["videos"], entry["holds"], entry["violations"]) == (12, 9, ["v1", "<i>v2</i>", "v3"])
    assert named(entry["second"]["needs"], steps) == step("check pulse")
    assert entry["edges"][str(steps.index("check response"))] == {
        "before": 2, "together": 3, "told": "2 of 3: few tell", "doubt": "few tell",
    }  # fmt: skip


def test_kinds_are_there_where_they_say_something(cpr: SubtaskGraph, coffee: SubtaskGraph) -> None:
    data = embedded(drawing.html_page(coffee))
    place = {entry["name"]: number for number, entry in enumerate(data["steps"])}
    more = {"after", "never", "mayOmit", "also"}

    def either(other: str) -> list[list[str]]:
        return [["A run does it or ", str(place[other]), " (48 of 50 videos), never both."]]

    assert {
        entry["name"]: found for entry in data["steps"] if (found := {key: entry[key] for key in entry.keys() & more})
    } == {
        "add sugar": {"mayOmit": True, "also": [["It is optional: 36 of 60 videos do without it."]]},
        "grind beans": {"never": [place["open ground coffee"]], "also": either("open ground coffee")},
        "open ground coffee": {"never": [place["grind beans"]], "also": either("grind beans")},
        "stir": {"after": [place["add sugar"]], "also": [["It is done again in 30 % of the videos with it."]]},
    }  # fmt: skip
    (after,) = [arrow for arrow in data["arrows"] if "kind" in arrow]
    assert (after["before"], after["after"], after["kind"]) == (place["add sugar"], place["stir"], "after")
    assert data["groups"] == [
        {"steps": [place["grind beans"], place["open ground coffee"]], "status": "common"},
    ]
    plain = embedded(drawing.html_page(cpr))
    assert "groups" not in plain
    assert not any(more & entry.keys() for entry in plain["steps"])
    assert not any("kind" in arrow for arrow in plain["arrows"])


def test_a_pair_of_another_kind(coffee: SubtaskGraph) -> None:
    truth = SubtaskGraph(coffee.task, coffee.steps, {"stir": step("add sugar")})
    arrows = embedded(drawing.html_page(coffee, compare=truth))["arrows"]
    assert [(arrow["status"], arrow["trueKind"]) for arrow in arrows if "trueKind" in arrow] == [("common", "needs")]


def test_steps_are_numbered_as_in_the_picture() -> None:
    """The reduction can move a step to an earlier layer; its id in the picture is what counts."""
    graph = SubtaskGraph("t", "abcz", {"b": step("a"), "a": step("z"), "c": any_of([step("b"), step("z")])})
    drawn = build_diagram(graph)
    order = [entry["name"] for entry in page_data(graph, drawn)["steps"]]
    assert order == list(graph.transitive_reduction().steps) != list(graph.steps)
    html = drawing.html_page(graph)
    for number, name in enumerate(order):
        assert re.search(
            rf'<g id="s{number}" class="node[^>]*>\n<title>{name}</title>\n<g><a href="#step-{number}"', html
        )
        assert f'<tr id="step-{number}"><th scope="row"><bdi>{name}</bdi>' in html


def test_videos_are_what_they_were() -> None:
    one, other, empty = page_data(GRAPH, build_diagram(GRAPH), TASK, {"v2": "films/v2.mp4"})["videos"]
    fill, boil, pour = range(3)
    assert one == {
        "id": "v1", "steps": [pour, boil, pour], "times": [0, 1.235, 2, 3, 3, 4], "added": [[1, 76]],
        "mistakes": [{"at": 1, "kind": "order", "unmet": [pour]}], "notSeen": [fill],
    }  # fmt: skip
    assert other == {"id": "v2", "steps": [fill, boil, pour], "added": [[2]], "file": "films/v2.mp4"}
    assert empty == {"id": "v3", "steps": []}
    logged = Task("tea", TASK.steps, TASK.videos, absent="skipped")
    assert page_data(GRAPH, build_diagram(GRAPH), logged)["videos"][0]["leftOut"] == [fill]


def test_a_forecaster_is_there_where_videos_tell_something() -> None:
    graph = SubtaskGraph("t", "abcz", {"b": step("a"), "a": step("z"), "c": any_of([step("b"), step("z")])})
    task = Task("t", "abcz", [Video("v1", map(Segment, "zcabc")), Video("v2", [])])
    data = page_data(graph, build_diagram(graph), task)
    names = [entry["name"] for entry in data["steps"]]
    found = data["forecast"]
    assert [names[number] for number in found["steps"]] == list(graph.steps) != names
    assert [[graph.steps[place] for place in sequence] for sequence in found["sequences"]] == [list("zcab")]
    first = task.with_first_labels()
    learned, end = fit_forecaster(graph, first).to_json(), fit_end_probability(graph, first).to_json()
    assert found == {**learned, "steps": found["steps"], "end_terms": end["terms"]}
    assert "forecast" not in page_data(graph, build_diagram(graph))
    assert "forecast" not in page_data(graph, build_diagram(graph), task.with_videos([Video("v2", [])]))


def test_mistakes_of_all_kinds(coffee: SubtaskGraph, monkeypatch: pytest.MonkeyPatch) -> None:
    orders = {
        "fine": ["boil water", "grind beans", "pour water", "stir"],
        "order": ["boil water", "grind beans", "pour water", "stir", "add sugar"],
        "exclusive": ["boil water", "grind beans", "open ground coffee", "pour water", "stir"],
        "need": ["boil water", "pour water", "stir"],
    }
    task = Task("t", coffee.steps, [Video(name, map(Segment, order)) for name, order in orders.items()], "skipped")
    graph = replace(coffee, evidence={})
    data = page_data(graph, build_diagram(graph), task)
    place = {entry["name"]: number for number, entry in enumerate(data["steps"])}
    found = {video["id"]: video for video in data["videos"]}
    assert not {"mistakes", "leftOut", "notSeen"} & found["fine"].keys()
    assert found["order"]["mistakes"] == [{"at": 4, "kind": "order", "unmet": [place["stir"]]}]
    assert found["exclusive"]["mistakes"] == [{"at": 2, "kind": "exclusive", "unmet": [place["grind beans"]]}]
    ways = {"any": [place["grind beans"], place["open ground coffee"]]}
    assert found["need"]["leftOut"] == [ways]
    assert "mistakes" not in found["need"]  # once is enough
    free = replace(graph, optional=[*graph.optional, "grind beans", "open ground coffee"])
    (need,) = [one for one in page_data(free, build_diagram(free), task)["videos"] if one["id"] == "need"]
    assert need["mistakes"] == [{"at": 1, "kind": "need", "unmet": [ways]}]
    assert "leftOut" not in need
    # What is probably no mistake is not shown, and how sure the others are is told.
    report = check(graph, task)
    for probability, shown in ((0.49, None), (0.8125, 0.812)):
        unsure = replace(report, mistakes=[replace(one, probability=probability) for one in report.mistakes])
        monkeypatch.setattr("msg2.drawing.graph_page.check", lambda *_, unsure=unsure: unsure)
        (video,) = [one for one in page_data(graph, build_diagram(graph), task)["videos"] if one["id"] == "order"]
        assert [mistake["probability"] for mistake in video.get("mistakes", [])] == ([] if shown is None else [shown])


def test_a_video_of_something_else_is_refused() -> None:
    with pytest.raises(InputError, match="'dance' is not a step of the graph"):
        drawing.html_page(GRAPH, Task("tea", ["dance"], [Video("v", [Segment("dance")])]))


@given(
    st.lists(
        st.text(min_size=1, max_size=30).filter(lambda text: not name_fault(text)), min_size=1, max_size=3, unique=True
    ),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=2)
            | st.dictionaries(
                st.sampled_from(["videos", "holds", "edges", "runner_up", "violations", "precondition", "score"]), inner
            )
        ),
    ),
)
def test_any_names_and_any_evidence(names: list[str], evidence: Any) -> None:
    graph = SubtaskGraph(
        names[0], names, {names[-1]: step(names[0])} if len(names) > 1 else {}, evidence=dict.fromkeys(names, evidence)
    )
    html = drawing.html_page(graph, Task("t", names, [Video(names[0], [Segment(name) for name in names])]))
    data = embedded(html)
    assert sorted(entry["name"] for entry in data["steps"]) == sorted(map(one_line, names))
    assert data["videos"][0]["id"] == one_line(names[0])
    assert html.count("<script") == 2
    html.encode("utf-8")


def test_style_and_script_are_those_of_the_policy(cpr: SubtaskGraph) -> None:
    html = drawing.html_page(cpr)
    policy = re.findall(r'Content-Security-Policy" content="([^"]+)"', html)[0]
    for kind, pattern in (("style", "<style>(.*?)</style>"), ("script", '<script type="module">(.*?)</script>')):
        (text,) = re.findall(pattern, html, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert "innerHTML" not in html
    assert "eval(" not in html


def test_films_are_found_from_the_page(tmp_path: Path) -> None:
    (tmp_path / "videos" / "more").mkdir(parents=True)
    for name in ("v1.mp4", "more/v2.webm", "v3.txt"):
        (tmp_path / "videos" / name).touch()
    found = drawing.find_video_links(TASK, tmp_path / "videos", tmp_path / "pages" / "tea.html")
    assert found == {"v1": "../videos/v1.mp4", "v2": "../videos/more/v2.webm"}
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no videos"):
        drawing.find_video_links(TASK, tmp_path / "empty", tmp_path / "tea.html")


def test_only_a_page_shows_videos(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is no page"):
        drawing.show(GRAPH, tmp_path / "tea.svg", videos=TASK)
    assert not list(tmp_path.iterdir())
    page = drawing.show(GRAPH, tmp_path / "tea.html", videos=TASK)
    assert [video["id"] for video in embedded(page.read_text("utf-8"))["videos"]] == ["v1", "v2", "v3"]


def test_of_very_many_videos_a_page_has_a_sample_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("msg2.drawing.graph_page.MOST_VIDEOS", 3)
    task = Task("tea", ["boil", "pour"], [Video(f"v{n}", map(Segment, ["boil", "pour"])) for n in range(7)])
    graph = SubtaskGraph("tea", task.steps, {"pour": step("boil")})
    page = drawing.html_page(graph, task)
    assert "3 of 7 videos can be played here, evenly spread" in page
    assert re.findall(r'"id": ?"(v\d)"', page) == ["v0", "v2", "v4"]
    assert "can be played here" not in drawing.html_page(graph, task.sample(3))

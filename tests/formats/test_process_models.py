"""BPMN and PNML of a graph: their complete runs, found by playing the token game, against those of the graph."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import xml.etree.ElementTree as ET
from itertools import permutations
from pathlib import Path

import pytest

from msg2.formats.process_blocks import to_blocks, to_powl, unsaid_rules
from msg2.formats.process_models import to_bpmn, to_pnml
from msg2.graph import Formula, SubtaskGraph, all_of, any_of, negation, step
from msg2.graph.graph_file import Loop
from msg2.text import escape_control_characters
from tests.formats.token_game import complete_runs, read_bpmn, read_pnml


def random_formula(rng: random.Random, names: list[str], depth: int, nots: bool) -> Formula:
    if depth == 0 or rng.random() < 0.4:
        return step(rng.choice(names))
    parts = [random_formula(rng, names, depth - 1, nots) for _ in range(rng.randint(1, 3))]
    return negation(parts[0]) if nots and rng.random() < 0.2 else rng.choice([all_of, any_of])(parts)


def random_graph(rng: random.Random, size: int, nots: bool = False) -> SubtaskGraph:
    names = list("abcde")[:size]
    constrained = [place for place in range(1, size) if rng.random() < 0.6]
    formulas = {names[place]: random_formula(rng, names[:place], 2, nots) for place in constrained}
    pairs = [(one, other) for place, one in enumerate(names) for other in names[place + 1 :]]
    return SubtaskGraph(
        "t",
        names,
        formulas,
        order=rng.sample(pairs, rng.randint(0, min(3, len(pairs)))),
        exclusive=[rng.sample(names, rng.randint(2, 3)) for _ in range(rng.randint(0, 2))] if size > 2 else [],
        optional=rng.sample(names, rng.randint(0, size)) if rng.random() < 0.7 else [],
    )


def test_the_runs_of_a_petri_net_are_those_of_the_graph() -> None:
    rng = random.Random(0)
    sizes = []
    for _ in range(150):
        graph = random_graph(rng, rng.randint(1, 4), nots=True)
        runs = complete_runs(graph)
        assert read_pnml(to_pnml(graph)).runs() == runs, graph.to_json()
        sizes.append(len(runs))
    assert min(sizes) == 0  # some graphs contradict themselves
    assert max(sizes) > 20


def test_a_process_allows_every_run_of_the_graph_and_only_those_where_it_says_all(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rng = random.Random(1)
    exact = wider = 0
    for _ in range(150):
        graph = random_graph(rng, rng.randint(1, 4), nots=True)
        caplog.clear()
        text = to_bpmn(graph)
        runs, allowed = complete_runs(graph), read_bpmn(text).runs()
        assert runs <= allowed, graph.to_json()
        told = "BPMN cannot express" in caplog.text
        assert told == ("documentation" in text)
        if not told:
            assert allowed == runs, graph.to_json()
            exact += 1
        wider += told and allowed > runs
    assert exact > 40
    assert wider > 10


def test_a_process_says_what_it_can() -> None:
    """Parallel, optional, one of several, needs of a choice: exactly."""
    formulas = {
        "pour": all_of([step("boil"), any_of([step("grind"), step("open")])]),
        "stir": step("pour"),
    }
    graph = SubtaskGraph(
        "coffee", ["boil", "grind", "open", "pour", "sugar", "stir"], formulas,
        order=[("sugar", "stir")], exclusive=[["grind", "open"]], optional=["sugar"],
    )  # fmt: skip
    text = to_bpmn(graph)
    assert "documentation" not in text
    runs = complete_runs(graph)
    assert read_bpmn(text).runs() == read_pnml(to_pnml(graph)).runs() == runs
    assert ("sugar", "boil", "open", "pour", "stir") in runs
    assert ("boil", "grind", "pour", "stir") in runs
    assert not any({"grind", "open"} <= set(run) for run in runs)


def test_what_a_process_cannot_say_stands_in_its_documentation() -> None:
    formulas = {"c": any_of([step("a"), step("b")]), "d": all_of([step("a"), negation(step("e"))])}
    graph = SubtaskGraph("t", "abcdef", formulas, optional="ef", order=[("e", "f")], exclusive=["ef", "fa"])
    notes = {
        task.attrib["name"]: str(task[0].text)
        for task in ET.fromstring(to_bpmn(graph)).iter("{http://www.omg.org/spec/BPMN/20100524/MODEL}task")
        if len(task)
    }
    assert notes["c"] == "needs a or b"
    assert notes["d"] == "needs not e; always done"  # it is done in the branch with a, and that is one of two
    assert notes.keys() == {"c", "d"}  # f is in the other branch of the choice with a and e


def test_the_diagram_of_a_process_is_complete_and_does_not_overlap() -> None:
    rng = random.Random(2)
    for _ in range(40):
        root = ET.fromstring(to_bpmn(random_graph(rng, 5)))
        names = {"b": "http://www.omg.org/spec/BPMN/20100524/MODEL", "d": "http://www.omg.org/spec/BPMN/20100524/DI"}
        process = root.find("b:process", names)
        assert process is not None
        drawn = [one.attrib["bpmnElement"] for one in root.iterfind(".//d:BPMNPlane/*", names)]
        assert sorted(drawn) == sorted(one.attrib["id"] for one in process)
        assert len({one.attrib["id"] for one in root.iter() if "id" in one.attrib}) == sum(
            "id" in one.attrib for one in root.iter()
        )
        boxes = [
            tuple(float(one.attrib[side]) for side in ("x", "y", "width", "height"))
            for one in root.iter("{http://www.omg.org/spec/DD/20100524/DC}Bounds")
        ]
        for place, (x, y, width, height) in enumerate(boxes):
            assert x > 0
            assert y > 0
            for other_x, other_y, other_width, other_height in boxes[:place]:
                apart = x >= other_x + other_width or other_x >= x + width
                assert apart or y >= other_y + other_height or other_y >= y + height


@pytest.mark.parametrize("write", [to_bpmn, to_pnml])
@pytest.mark.parametrize("size", [0, 1])
def test_small_graphs(write, size: int) -> None:
    graph = SubtaskGraph("", ["only"][:size], {})
    net = (read_bpmn if write is to_bpmn else read_pnml)(write(graph))
    assert net.runs() == {("only",)[:size]}


def test_hostile_names() -> None:
    names = ["<task/>", 'say "hi" & \x00', "a, then: b", "a", "b", "to do: a", "half \ud800", "]]>", "two\nlines"]
    graph = SubtaskGraph("</bpmn:process>", names, {"b": step("a"), "a": step("a, then: b")}, optional=names[5:])
    labels = {label for label, _, _ in read_pnml(to_pnml(graph)).transitions if label}
    assert labels == {escape_control_characters(name) for name in names}
    assert len({label for label, _, _ in read_bpmn(to_bpmn(graph)).transitions if label}) == len(names)
    assert not re.search(r"[\x00-\x08]", to_bpmn(graph) + to_pnml(graph))


PEER = Path(__file__).parents[2] / "benchmarks" / "pm4py_peer.py"


def test_pm4py_opens_them_and_accepts_the_same_runs(tmp_path: Path) -> None:
    python = Path(os.environ.get("MSG2_PM4PY", "nowhere"), "bin", "python")
    if not python.exists():
        pytest.skip("MSG2_PM4PY does not name an environment with pm4py")
    needs = {"pour": all_of([step("boil"), any_of([step("grind"), step("open")])]), "stir": step("pour")}
    coffee = SubtaskGraph(
        "coffee", ["boil", "grind", "open", "pour", "sugar", "stir"], needs,
        order=[("sugar", "stir")], exclusive=[["grind", "open"]], optional=["sugar"],
    )  # fmt: skip
    # An "or" of steps that are all done, and a need of a step that may be left out: beyond BPMN.
    loose = SubtaskGraph("t", "abcd", {"c": any_of([step("a"), step("b")]), "d": step("c")}, optional="cd")
    files, expected = [], []
    for number, graph in enumerate((coffee, loose)):
        runs = complete_runs(graph)
        wrong = [run for run in permutations(graph.steps, len(graph.steps) - 1) if run not in runs][:25]
        for suffix, read, write in ((".bpmn", read_bpmn, to_bpmn), (".pnml", read_pnml, to_pnml)):
            file = tmp_path / f"{number}{suffix}"
            file.write_text(write(graph), "utf-8")
            traces = [*sorted(runs)[:25], *wrong]
            files.append({"file": str(file), "traces": traces})
            expected.append([run in read(file.read_text("utf-8")).runs() for run in traces])
    assert any(False in found for found in expected)
    (tmp_path / "models.json").write_text(json.dumps(files))
    command = [python, PEER, "models", tmp_path / "models.json", tmp_path / "found.json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "found.json").read_text()) == expected


def test_the_elements_of_a_small_graph() -> None:
    tea = {"task": "tea", "steps": ["boil", "pour"], "preconditions": {"pour": step("boil")}}
    process = to_bpmn(SubtaskGraph(**tea, optional=["pour"]))
    assert [process.count(f"<bpmn:{tag} ") for tag in ("task", "exclusiveGateway", "sequenceFlow")] == [2, 2, 6]
    net = to_pnml(SubtaskGraph(**tea))
    assert [net.count(f"<{tag} ") for tag in ("place", "transition", "arc")] == [4, 2, 4]


def test_loops_lead_back_in_every_format() -> None:
    """wash, (fry, (taste | smell), [salt leads back])+, serve."""
    loop = Loop(steps=["fry", "smell", "taste"], back=["salt"], share=0.3)
    needs = {
        "fry": step("wash"),
        "taste": step("fry"),
        "smell": step("fry"),
        "serve": any_of(map(step, ["taste", "smell"])),
    }
    graph = SubtaskGraph(
        "dinner", ["wash", "fry", "taste", "smell", "salt", "serve"], {**needs, "salt": step("fry")},
        exclusive=[["taste", "smell"]], optional=["salt"], order=[("salt", "serve")], loops=[loop],
        repeats={"fry": 0.3, "taste": 0.3, "smell": 0.3},
    )  # fmt: skip
    for net in (read_pnml(to_pnml(graph)), read_bpmn(to_bpmn(graph))):
        assert net.allows(["wash", "fry", "taste", "serve"])
        assert net.allows(["wash", "fry", "taste", "salt", "fry", "smell", "fry", "taste", "serve"])
        assert not net.allows(["wash", "fry", "taste", "smell", "serve"])
        assert not net.allows(["wash", "fry", "taste", "serve", "fry", "taste"])
        assert not net.allows(["wash", "wash", "fry", "taste", "serve"])
    part = "PO=(nodes={ 'fry', X ( 'smell', 'taste' ) }, order={ 'fry'-->X ( 'smell', 'taste' ) })"
    assert f"* ( {part}, X ( 'salt', tau ) )" in to_powl(graph)


def test_branches_of_many_steps_are_a_choice() -> None:
    needs = {"b": step("a"), "d": step("c"), "e": any_of([step("b"), step("d")])}
    graph = SubtaskGraph(
        "t", "abcde", needs, exclusive=["ac"], optional="bd", responses=[("a", step("b")), ("c", step("d"))]
    )
    assert not unsaid_rules(graph, to_blocks(graph))
    assert read_bpmn(to_bpmn(graph)).runs() == read_pnml(to_pnml(graph)).runs() == {tuple("abe"), tuple("cde")}
    flow = "PO=(nodes={ 'a', 'b' }, order={ 'a'-->'b' })"
    other = "PO=(nodes={ 'c', 'd' }, order={ 'c'-->'d' })"
    choice = f"X ( {flow}, {other} )"
    assert to_powl(graph) == f"PO=(nodes={{ {choice}, 'e' }}, order={{ {choice}-->'e' }})\n"

"""The written procedure: one order that respects everything, sentences with numbers, and every kind of file."""

from __future__ import annotations

import zipfile
from io import BytesIO
from pathlib import Path

import docx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from msg2.drawing import make_procedure, write_procedure
from msg2.drawing.procedure import DRAFT, PEOPLE, Still, in_words, reading_order
from msg2.errors import InputError
from msg2.graph import SubtaskGraph, all_of, any_of, negation, step
from msg2.graph.graph_file import Caution, Loop, ProcedureTexts, Review, StatedRule
from msg2.task import Segment, Task, Video

NAMES = "abcdefg"


@st.composite
def graphs(draw: st.DrawFn) -> SubtaskGraph:
    """Graphs in which what comes first is earlier in the alphabet, with stated rules that agree."""
    names = NAMES[: draw(st.integers(2, 7))]
    formulas = {}
    for place, name in enumerate(names):
        parents = draw(st.lists(st.sampled_from(names[:place]), unique=True, max_size=3)) if place else []
        if parents:
            formulas[name] = draw(st.sampled_from([all_of, any_of]))(map(step, parents))
    pair = st.sampled_from([(a, b) for place, a in enumerate(names) for b in names[place + 1 :]])
    rules = [
        StatedRule(before=a, after=b, kind=draw(st.sampled_from(["needs", "after"])))
        for a, b in draw(st.lists(pair, max_size=3))
    ]
    return SubtaskGraph(
        "t", names, formulas, order=draw(st.lists(pair, max_size=4)), exclusive=draw(st.lists(pair, max_size=2)),
        optional=draw(st.lists(st.sampled_from(names), unique=True)), rules=rules,
    )  # fmt: skip


@given(graphs(), st.dictionaries(st.sampled_from(NAMES), st.floats(0, 1)))
def test_the_order_respects_every_arrow_and_every_rule(graph: SubtaskGraph, usual: dict[str, float]) -> None:
    blocks = reading_order(graph, usual)
    steps = [name for block in blocks for name in block.steps]
    assert sorted(steps) == sorted(graph.steps)
    number = {name: place for place, block in enumerate(blocks) for name in block.steps}
    for before, after in {*graph.edge_pairs(), *graph.stated}:
        assert number[before] < number[after]
    for block in blocks:  # only alternatives share a number
        apart = {group for group in graph.exclusive if group == block.steps}
        ors = {tuple(sorted(f.steps)) for f in graph.preconditions.values() if f.kind == "any"}
        assert len(block.steps) == 1 or block.steps in apart | ors


@given(graphs())
def test_a_procedure_reads_the_same_whatever_the_order_of_the_file(graph: SubtaskGraph) -> None:
    turned = SubtaskGraph.from_json({**graph.to_json(), "steps": list(reversed(graph.steps))})
    assert reading_order(turned) == reading_order(SubtaskGraph.from_json(graph.to_json()))


def test_what_must_not_be_done_yet_comes_later() -> None:
    graph = SubtaskGraph("t", ["close", "enter"], {"enter": negation(step("close"))})
    assert [block.steps for block in reading_order(graph)] == [("enter",), ("close",)]


def test_the_usual_order_decides_between_those_that_are_allowed() -> None:
    graph = SubtaskGraph("t", ["a", "b", "c"], {"c": step("a")})
    task = Task("t", ["a", "b", "c"], [Video(f"v{n}", [Segment(name) for name in "bac"]) for n in range(3)])
    assert [step.name for step in make_procedure(graph, task).steps] == ["b", "a", "c"]


@pytest.fixture
def brewing(coffee: SubtaskGraph) -> SubtaskGraph:
    """The graph of the page on the graph file, with all its texts and a stated rule."""
    return SubtaskGraph.from_json(
        coffee.to_json()
        | {
            "rules": [{"before": "boil water", "after": "stir", "by": "Ann", "on": "2026-11-01"}],
            "responses": [["add sugar", "stir"]],
            "loops": [{"steps": ["pour water", "stir"], "share": 0.2}],
            "descriptions": {"boil water": "Bring 300 ml to the boil."},
            "warnings": [{"text": "Hot water."}, {"text": "Steam burns.", "step": "boil water"}],
            "tools": ["kettle"],
            "version": "2",
        }
    )


def test_what_a_reader_is_told(brewing: SubtaskGraph) -> None:
    procedure = make_procedure(brewing)
    told = {step.name: step for step in procedure.steps}
    assert procedure.subtitle == f"Version 2 · {DRAFT}"
    assert procedure.blocks[1].choice == "Do one of these:"
    assert {step.label for step in procedure.blocks[1].steps} == {"2a", "2b"}
    assert told["boil water"].description == "Bring 300 ml to the boil."
    assert told["boil water"].warnings == ("Steam burns.",)
    assert told["pour water"].notes == ("Needs step 1 and (step 2a or step 2b).",)
    assert told["add sugar"].notes == ("Optional.",)
    assert told["stir"].musts == ("Do not start before step 1 is done (Ann, 2026-11-01).",)
    assert told["stir"].notes[-1] == "If needed, go back to step 4."
    assert "60 videos" in procedure.basis


def test_who_has_reviewed_it_stands_in_the_place_of_draft(brewing: SubtaskGraph) -> None:
    texts = ProcedureTexts(reviewed=Review(by="Ann Lee", on="2026-11-02"))
    graph = SubtaskGraph("t", ["a"], {}, texts=texts)
    assert make_procedure(graph).status == "Reviewed by Ann Lee, on 2026-11-02"
    assert make_procedure(graph).basis == "Written down by people."


def test_working_times_are_told_and_those_of_edited_videos_are_not() -> None:
    graph = SubtaskGraph("t", ["a", "b"], {"b": step("a")})
    whole = [Video(f"v{n}", [Segment("a", 0, 100 + n), Segment("b", 100 + n, 700)]) for n in range(3)]
    cut = [Video(f"v{n}", [Segment("a", 0, 10), Segment("b", 90, 100)]) for n in range(3)]
    assert [s.notes[-1] for s in make_procedure(graph, Task("t", "ab", whole)).steps] == [
        "Takes about 2 minutes.", "Takes about 10 minutes."
    ]  # fmt: skip
    assert "Takes" not in str(make_procedure(graph, Task("t", "ab", cut)))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.2, "1 second"), (7, "7 seconds"), (42, "40 seconds"), (89, "90 seconds"), (90, "2 minutes"), (5_500, "2 hours"),
     (86_400 * 3, "3 days")],
)  # fmt: skip
def test_durations_in_words(seconds: float, words: str) -> None:
    assert in_words(seconds) == words


def picture() -> Still:
    jpeg = BytesIO()
    Image.new("RGB", (64, 48), "teal").save(jpeg, "JPEG")
    return Still(jpeg.getvalue(), "v1, at 0:12")


@pytest.mark.parametrize("suffix", [".html", ".md", ".docx", ".pdf"])
def test_every_format_is_whole_and_the_same_twice(brewing: SubtaskGraph, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"coffee{suffix}"
    stills = {"stir": picture()}
    write_procedure(brewing, path, stills=stills)
    first = path.read_bytes()
    assert first.startswith({".html": b"<!DOCTYPE", ".md": b"# make coffee", ".docx": b"PK", ".pdf": b"%PDF"}[suffix])
    write_procedure(brewing, path, stills=stills)
    assert path.read_bytes() == first or suffix == ".docx"  # which has the time in it


def test_the_word_document_has_it_all(brewing: SubtaskGraph, tmp_path: Path) -> None:
    path = brewing.write(tmp_path / "coffee.docx", stills={"stir": picture()})
    document = docx.Document(str(path))
    text = "\n".join(paragraph.text for paragraph in document.paragraphs)
    for line in make_procedure(brewing).lines():
        assert line.text in text
    assert PEOPLE in text
    assert DRAFT in document.sections[0].header.paragraphs[0].text
    with zipfile.ZipFile(path) as parts:
        assert any(name.startswith("word/media/") for name in parts.namelist())


def test_a_pdf_without_the_letters_is_refused(tmp_path: Path) -> None:
    graph = SubtaskGraph("t", ["水"], {})
    with pytest.raises(InputError, match="does not have 水"):
        write_procedure(graph, tmp_path / "t.pdf")
    with pytest.raises(InputError, match="no format of a procedure"):
        write_procedure(graph, tmp_path / "t.txt")
    assert not [*tmp_path.iterdir()]


def test_names_that_try_to_break_out_stay_text(hostile: SubtaskGraph, tmp_path: Path) -> None:
    page = hostile.write(tmp_path / "hostile.html").read_text("utf-8")
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert" in page
    assert "\\<script\\>" in hostile.write(tmp_path / "hostile.md").read_text("utf-8")
    hostile.write(tmp_path / "hostile.docx")


def test_going_back_is_said_where_the_loop_ends() -> None:
    graph = SubtaskGraph("t", ["a", "b"], {"b": step("a")}, loops=[Loop(steps=["a", "b"], share=0.5)])
    assert [step.notes for step in make_procedure(graph).steps] == [
        (),
        ("Needs step 1.", "If needed, go back to step 1."),
    ]


def test_warnings_of_steps_that_were_renamed_go_along() -> None:
    texts = ProcedureTexts(warnings=[Caution(text="Hot.", step="a")], descriptions={"a": "Do it."})
    (told,) = make_procedure(SubtaskGraph("t", ["a"], {}, texts=texts).rename_steps({"a": "b"})).steps
    assert (told.name, told.warnings, told.description) == ("b", ("Hot.",), "Do it.")

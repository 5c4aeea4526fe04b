"""Tables of confusions: from arrays and CSV files, what they change, and one clear error each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from msg2.assist import Assistant
from msg2.assist.belief import Confusion
from msg2.assist.recognisers import load_confusion
from msg2.errors import InputError
from msg2.graph import SubtaskGraph

GRAPH = SubtaskGraph("tea", ["boil", "pour", "stir"], {})
COUNTS = np.array([[80.0, 0.0, 10.0, 10.0], [0.0, 90.0, 0.0, 10.0], [40.0, 0.0, 40.0, 20.0]])


@settings(max_examples=25)
@given(arrays(float, st.sampled_from([(3, 4), (4, 4)]), elements=st.floats(0, 1e6)))
def test_rows_are_probabilities(counts: np.ndarray) -> None:
    reported = load_confusion(counts, GRAPH).reported
    assert reported.shape == (4, 4)
    assert reported.sum(axis=1) == pytest.approx(1)
    assert (reported > 0).all()  # what has not been seen yet may happen


def test_many_counts_are_believed_and_shares_serve_alike() -> None:
    many = load_confusion(1000 * COUNTS, GRAPH).reported[:3]
    assert many == pytest.approx(COUNTS / 100, abs=1e-3)
    assert load_confusion(COUNTS, GRAPH).reported[:3] == pytest.approx(COUNTS / 100, abs=0.01)
    assert load_confusion(COUNTS / 100, GRAPH).reported.argmax(axis=1).tolist()[:2] == [0, 1]


def test_evidence_is_how_well_each_step_explains_a_report() -> None:
    reported = np.array([[0.7, 0.1, 0.1, 0.1], [0.2, 0.6, 0.1, 0.1], [0.0, 0.0, 0.9, 0.1], [0.05, 0.05, 0.1, 0.8]])
    steps, nothing = Confusion(reported).evidence({0: 0.5, 1: 0.25})
    assert steps == pytest.approx([3 * (0.35 + 0.025 + 0.025), 3 * (0.1 + 0.15 + 0.025), 3 * 0.025])
    assert nothing == pytest.approx(3 * (0.025 + 0.0125 + 0.2))


def write(path: Path, *rows: str) -> Path:
    path.write_text("\n".join(rows) + "\n", "utf-8-sig")
    return path


def test_a_table_names_its_steps_in_any_order(tmp_path: Path) -> None:
    path = write(
        tmp_path / "confusion.csv",
        "done,stir,boil,pour,nothing", "pour,0,0,90,10", "stir,40,40,0,20", "", " boil ,10,80,0,10",
    )  # fmt: skip
    assert load_confusion(path, GRAPH).reported == pytest.approx(load_confusion(COUNTS, GRAPH).reported)
    assert load_confusion(str(path), GRAPH).reported == pytest.approx(load_confusion(COUNTS, GRAPH).reported)
    with_nothing = write(path, *path.read_text("utf-8-sig").splitlines(), "nothing done,1,1,1,97")
    expected = load_confusion(np.vstack([COUNTS, [1.0, 1.0, 1.0, 97.0]]), GRAPH)
    assert load_confusion(with_nothing, GRAPH).reported == pytest.approx(expected.reported)


HEADER = "done,boil,pour,stir,nothing"
ROWS = ("boil,8,0,1,1", "pour,0,9,0,1", "stir,4,0,4,2")


@pytest.mark.parametrize(
    ("rows", "complaint"),
    [
        ((), "has no rows"),
        ((HEADER,), "has no rows"),
        ((HEADER, *ROWS[:2]), "lacks the step 'stir'"),
        (("done,boil,pour,nothing", *ROWS), "lacks the step 'stir'"),
        ((HEADER, *ROWS, "brew,1,1,1,1", "whisk,1,1,1,1"), "rows that are no steps: 'brew', 'whisk'"),
        ((HEADER, *ROWS[:2], "stir,4,0,many,2"), "a cell that is no number"),
        ((HEADER, *ROWS[:2], "stir,4"), "a cell that is no number"),
        ((HEADER, *ROWS[:2], "stir,4,0,-4,2"), "numbers of 0 or more"),
        ((HEADER, *ROWS[:2], "stir,4,0,nan,2"), "numbers of 0 or more"),
    ],
)
def test_a_wrong_table_is_named(tmp_path: Path, rows: tuple[str, ...], complaint: str) -> None:
    path = write(tmp_path / "confusion.csv", *rows)
    with pytest.raises(InputError, match=complaint):
        load_confusion(path, GRAPH)


def test_wrong_arrays_and_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"the shape \(3, 3\), 3 steps take 3 rows and 4 columns") as caught:
        load_confusion(np.eye(3), GRAPH)
    assert caught.value.hint == "the last column is for what is not reported"
    for wrong in (np.zeros(4), np.zeros((0, 4))):
        with pytest.raises(InputError, match="the shape"):
            load_confusion(wrong, GRAPH)
    with pytest.raises(InputError, match="numbers of 0 or more"):
        load_confusion(-COUNTS, GRAPH)
    with pytest.raises(InputError, match="must be numbers"):
        load_confusion([["a", "b"]], GRAPH)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="cannot be read as a table of confusions"):
        load_confusion(tmp_path / "none.csv", GRAPH)
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(InputError, match="cannot be read as a table of confusions"):
        load_confusion(tmp_path / "binary.csv", GRAPH)


def test_a_step_that_is_often_taken_for_another_may_have_been_it() -> None:
    """A recogniser calls half of all stirring boiling: its "boil" may be "stir", its "pour" is no other."""
    plain, knowing = Assistant(GRAPH, missed=0.0), Assistant(GRAPH, missed=0.0, confusion=100 * COUNTS)
    for assistant in (plain, knowing):
        assistant.saw({"boil": 1.0})
    assert plain.done() == {"boil": 1.0}
    assert knowing.done()["boil"] / knowing.done()["stir"] == pytest.approx(2, rel=0.01)  # 80 and 40 of 100
    assert knowing.done().get("pour", 0.0) < 0.01
    sure = knowing.new_run()
    assert sure.saw({"pour": 1.0}).step == "pour"
    assert sure.done()["pour"] > 0.7
    unsure = knowing.new_run()
    unsure.saw({"pour": 0.1})  # probably nothing
    assert unsure.done()["pour"] < 0.3


def test_what_is_often_reported_in_pauses_says_little() -> None:
    quiet, noisy = (
        Assistant(GRAPH, missed=0.0, confusion=np.vstack([COUNTS, nothing]))
        for nothing in ([0.0, 0.0, 0.0, 100.0], [80.0, 0.0, 0.0, 20.0])
    )
    for assistant in (quiet, noisy):
        assistant.saw({"boil": 0.9})
    assert noisy.done()["boil"] < quiet.done()["boil"]


def test_a_recogniser_misses_steps_as_often_as_it_is_unsure() -> None:
    """It doubts a tenth of what it sees, by a belief that counts as three reports; then 40 % of the first one."""
    runs = [["boil", "pour", "stir"]] * 20
    graph = SubtaskGraph("tea", ["boil", "pour", "stir"], {})

    def inferred(missed: float | None, doubt: float) -> float:
        assistant = Assistant(graph, runs, missed=missed)
        assistant.saw({"pour": 1 - doubt})
        return assistant.inferred().get("boil", 0.0)

    assert inferred(None, 0.4) == pytest.approx(inferred((3 * 0.1 + 0.4) / 4, 0.4))
    assert inferred(0.3, 0.4) > inferred(None, 0.4) > inferred(0.1, 0.4)

"""Results as Markdown and JSON."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from experiments import EXPERIMENTS, Result, Table
from experiments.result_tables import Value

CELLS: st.SearchStrategy[Value] = (
    st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text("a|\\δ ", max_size=5)
)


@st.composite
def tables(draw: st.DrawFn) -> Table:
    width = draw(st.integers(1, 4))
    rows = draw(st.lists(st.lists(CELLS, min_size=width, max_size=width), max_size=4))
    return Table("title", [f"column {number}" for number in range(width)], rows, draw(st.lists(st.just("note"))))


@given(tables())
def test_every_row_has_every_column(table: Table) -> None:
    title, blank, header, rule, *rest = table.to_markdown().splitlines()
    assert (title, blank) == ("### title", "")
    width = len(table.columns)
    for line in (header, rule, *rest[: len(table.rows)]):
        assert line.replace("\\|", "").count("|") == width + 1
    assert [line for line in rest[len(table.rows) :] if line] == list(table.notes)


@given(st.lists(tables(), max_size=3))
def test_json_keeps_every_number(several: list[Table]) -> None:
    written = json.loads(json.dumps(Result("name", several, {"seeds": [0, 1]}).to_json(), allow_nan=False))
    assert written["experiment"] == "name"
    assert written["facts"] == {"seeds": [0, 1]}
    assert [table["rows"] for table in written["tables"]] == [[list(row) for row in table.rows] for table in several]


def test_numbers_are_rounded_for_people_only() -> None:
    table = Table("T", ["method", "f1", "count"], [["x", 2 / 3 * 100, 7], ["y | z", None, 8]], ["A note."])
    assert table.to_markdown() == (
        "### T\n\n| method | f1 | count |\n|---|---:|---:|\n| x | 66.67 | 7 |\n| y \\| z | N/A | 8 |\n\nA note.\n"
    )
    assert Result("e", [table]).to_json()["tables"][0]["rows"][0][1] == 2 / 3 * 100


def test_tables_follow_one_another() -> None:
    one = Table("one", ["a"], [["x"]])
    two = Table("two", ["a"], [["y"]])
    text = Result("e", [one, two]).to_markdown()
    assert text.index("### one") < text.index("### two")
    assert "\n\n### two" in text


def test_every_experiment_says_what_it_shows_and_needs() -> None:
    assert {"next-step", "captaincook4d", "graphs", "recovery"} <= set(EXPERIMENTS)
    for experiment in EXPERIMENTS.values():
        assert experiment.summary
        assert experiment.dataset in (None, "crosstask", "captaincook4d", "pdc2025", "assembly101-mistakes", "logs")

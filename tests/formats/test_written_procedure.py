"""Written procedures: what a text says of steps and their order, by rules."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.formats.written_procedure import parse_procedure, read_procedure, word_overlap
from msg2.graph.explanation import all_rules

RECIPE = """# Pour-over coffee

Serves two. Takes five minutes.

Ingredients:
- 20 g beans
- water

## Method
1. Boil the water. It takes a minute.
2. Meanwhile, grind the beans.
3. Prepare the cup:
   - Warm the cup (optional)
   - Place the filter
4. Either use a V60 or use a Kalita.
5. Pour the water, then stir.
6. Before pouring the water, **rinse the filter**.
Warning: hot!
7. Serve.

## Notes
- Do better next time
"""


def test_a_recipe_is_read() -> None:
    recipe = read_procedure(RECIPE)
    assert recipe.title == "Pour-over coffee"
    assert recipe.steps == (
        "Boil the water", "grind the beans", "Warm the cup", "Place the filter", "use a V60", "use a Kalita",
        "rinse the filter", "Pour the water", "stir", "Serve",
    )  # fmt: skip
    assert recipe.optional == {"Warm the cup"}
    assert recipe.exclusive == (("use a V60", "use a Kalita"),)
    assert recipe.unordered == {frozenset(["Boil the water", "grind the beans"])}
    graph = recipe.graph()
    assert str(graph.precondition("rinse the filter")) == "use a Kalita | use a V60"
    assert graph.kind("Warm the cup", "Place the filter") == "after"
    assert graph.kind("Boil the water", "grind the beans") == "free"
    assert all("from the text" in rule.text for rule in all_rules(graph) if " needs " in rule.text)


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("jack up the car\nloosen the nuts\n", ("jack up the car", "loosen the nuts")),
        ("* a1\n* b1\nsome prose in between\n* c1\n", ("a1", "b1", "c1")),
        ("Step 1: open\nStep 2: close\n", ("open", "close")),
        ("1) mix\n  a) add flour\n  b) add milk\n2) bake\n", ("add flour", "add milk", "bake")),
        ("1. [ ] wash\n2. [x] dry\n", ("wash", "dry")),
        ("You will need:\n- a pan\nMethod:\n- heat\n- fry\n", ("heat", "fry")),
        ("1. fry\n2. after heating the pan, add oil\n3. heat the pan\n", ("fry", "heat the pan", "add oil")),
    ],
)
def test_steps_of_lists_and_lines(text: str, steps: tuple[str, ...]) -> None:
    assert read_procedure(text).steps == steps


def test_groups_in_any_order_and_of_which_one_is_done() -> None:
    recipe = read_procedure("1. In any order:\n   - a1\n   - b1\n2. Do one of:\n   - c1\n   - d1\n3. e1\n")
    assert recipe.unordered == {frozenset(["a1", "b1"])}
    assert recipe.exclusive == (("c1", "d1"),)
    assert str(recipe.graph().precondition("e1")) == "c1 | d1"


LINES = st.sampled_from([
    "1. boil water", "2. meanwhile, grind beans", "3. pour water (optional)", "- either stir or shake",
    "   - warm cup", "4. before boiling water, fill kettle", "5. serve after stirring", "In any order:",
    "* In any order", "6. fill kettle while it rains", "",
])  # fmt: skip


@given(st.lists(LINES, min_size=1, max_size=9))
def test_no_text_contradicts_itself(lines: list[str]) -> None:
    try:
        recipe = parse_procedure(lines, "t")
    except InputError as error:
        assert "has no step" in str(error)  # noqa: PT017
        return
    order = networkx.DiGraph(recipe.order)
    assert networkx.is_directed_acyclic_graph(order)
    assert set(networkx.transitive_closure(order).edges) == recipe.order, "what follows is stated as well"
    graph = recipe.graph()
    assert sorted(graph.steps) == sorted(recipe.steps)
    said = {(a, b) for a, b in combinations(graph.steps, 2) if graph.kind(a, b) in ("needs", "after")}
    assert said <= recipe.order


def test_word_documents(tmp_path: Path) -> None:
    docx = pytest.importorskip("docx")
    document = docx.Document()
    document.add_heading("Tea", 0)
    document.add_paragraph("A short story of tea.")
    for text in ("Boil water", "Pour it"):
        document.add_paragraph(text, "List Number")
    document.save(str(tmp_path / "tea.docx"))
    recipe = read_procedure(tmp_path / "tea.docx")
    assert (recipe.title, recipe.steps) == ("Tea", ("Boil water", "Pour it"))
    (tmp_path / "bad.docx").write_bytes(b"no zip")
    with pytest.raises(InputError, match="is no Word document"):
        read_procedure(tmp_path / "bad.docx")


def test_what_cannot_be_read_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "a.pdf").write_bytes(b"%PDF-1.4")
    with pytest.raises(InputError, match=r"(?s)a\.pdf: \.pdf cannot be read.*save it as text"):
        read_procedure(tmp_path / "a.pdf")
    (tmp_path / "a.md").write_text("# Title\n")
    with pytest.raises(InputError, match=r"a\.md: has no step"):
        read_procedure(tmp_path / "a.md")
    with pytest.raises(InputError, match=r"none\.md"):
        read_procedure(tmp_path / "none.md")


def test_words_are_compared_without_endings() -> None:
    assert word_overlap("Grind the beans", "grinding beans") == 1
    assert word_overlap("boil water", "chop onions") == 0
    assert word_overlap("", "") == 0

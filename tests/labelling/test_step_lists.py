from __future__ import annotations

from pathlib import Path

import pytest

import msg2
from msg2.errors import InputError
from msg2.labelling.step_names import read_steps


def test_numbers_and_bullets_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "steps.txt"
    path.write_text("# toast\n1. Whisk the eggs.\nStep 2: Dip 2 slices\n- fry\n\n3 eggs more\n")
    found = read_steps(path)
    assert found.steps == ("Whisk the eggs", "Dip 2 slices", "fry", "3 eggs more")
    assert found.notes == ("numbers or bullets were left out in 3 lines of steps.txt",)


def test_a_graph_has_its_steps_in_order(tmp_path: Path) -> None:
    graph = msg2.infer([["whisk", "dip", "fry"]] * 9)
    graph.save(tmp_path / "graph.json")
    assert read_steps(tmp_path / "graph.json").steps == graph.steps


@pytest.mark.parametrize(("content", "what"), [("", "lists no step"), ("fry\nfry\n", "'fry' is listed twice")])
def test_lists_that_are_none(tmp_path: Path, content: str, what: str) -> None:
    path = tmp_path / "steps.txt"
    path.write_text(content)
    with pytest.raises(InputError, match=what):
        read_steps(path)

"""The page "Paper and implementation" is true: its code, its tests and its options exist, and its numbers are ours."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

pytest.importorskip("torch")

from msg2.assist.next_step_evaluation import TEST_SHARE
from msg2.assist.rankers import RHO
from msg2.inference import METHODS
from msg2.states.configuration import STATE_OPTIONS, get_variant

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs/paper-line-by-line.md").read_text(encoding="utf-8")
LINES = PAGE.splitlines()
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in LINES if line.startswith("| ")]
TESTS = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py"))


def test_the_code_and_the_tests_that_it_names_exist() -> None:
    names = [name for row in ROWS for name in re.findall(r"`((?:msg2|experiments)\.[\w.]+)`", " ".join(row))]
    assert len(names) > 20
    for name in names:
        parts, thing = name.split("."), None
        for length in range(len(parts), 0, -1):
            try:
                thing = import_module(".".join(parts[:length]))
            except ModuleNotFoundError:
                continue
            for attribute in parts[length:]:
                thing = getattr(thing, attribute)
            break
        assert thing is not None, name
    tests = [name for row in ROWS for name in re.findall(r"`(test_\w+)`", " ".join(row))]
    assert len(tests) > 20
    for name in tests:
        assert f"def {name}(" in TESTS, name


def test_no_equation_of_the_paper_is_left_out() -> None:
    listed = " ".join(row[0].partition(":")[0] for row in ROWS)
    listed = re.sub(r"([A-Z])–([A-Z])", lambda m: " ".join(map(chr, range(ord(m[1]), ord(m[2]) + 1))), listed)
    wanted = {*map(str, range(1, 12)), *"ABCDEFGHI"}
    assert wanted <= set(re.findall(r"\b(\d+|[A-I])\b", listed))


def test_the_constants_are_those_of_the_paper_variant() -> None:
    model, sampling, training, filling = get_variant("paper").options()
    parts = {type(part): part for part in (model, sampling, training, filling.for_model(model))}
    rows = {row[2].strip("`"): row[1] for row in ROWS if len(row) == 3 and row[2].strip("`") in STATE_OPTIONS}
    assert len(rows) == 19
    for name, printed in rows.items():
        cls, spec = STATE_OPTIONS[name]
        assert str(spec.parse(printed)) == str(getattr(parts[cls], spec.name)), name
    ours = re.search(r"says nothing of these; ours: (.*)\.\n", PAGE)
    assert ours
    for name, printed in re.findall(r"`(\w+)` ([\w.]+)", ours[1]):
        cls, spec = STATE_OPTIONS[name]
        assert spec.parse(printed) == getattr(parts[cls], spec.name), name


def test_the_constants_of_graphs_and_of_the_next_step() -> None:
    printed = {row[0][0]: row[1] for row in ROWS if row[0][0] in "αλρ"}
    options = METHODS["msg2"].options()
    assert (float(printed["α"]), float(printed["λ"])) == (options.alpha, options.recency)  # type: ignore[attr-defined]
    assert (float(printed["ρ"]), TEST_SHARE) == (RHO, 0.15)

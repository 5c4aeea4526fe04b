"""The code keeps to its own rules: names used once, documented parameters, no cycles, a bounded size."""

from __future__ import annotations

import ast

import pytest

from benchmarks.code_figures import (
    PACKAGE,
    functions_without_parameters,
    import_cycles,
    lines_of_code,
    read_modules,
    repeated_module_names,
    repeated_type_names,
)

MODULES = read_modules(PACKAGE)
OLD_WORDS = (
    "desk", "shelf", "chore", "witness", "habits", "kinship", "remarks", "oddity", "oddities", "footage", "foretell",
)  # fmt: skip
"""Words of a private language that nobody would search for."""


def test_no_two_modules_share_a_name() -> None:
    assert repeated_module_names(MODULES) == {}


def test_no_two_types_share_a_name() -> None:
    assert repeated_type_names(MODULES) == {}


def test_public_functions_document_their_parameters() -> None:
    assert functions_without_parameters(MODULES) == []


def test_no_modules_import_each_other() -> None:
    assert import_cycles(MODULES) == []


def test_the_wheel_stays_small() -> None:
    # 16,500 with one language; what a graph means (kinds, presence, check by kinds, compare, explain) came on top, and
    # then the assistant of a run (belief, time left, plans, watch, runs over HTTP), drafts of labels and the workbench;
    # 2,800 more for tables, logs and archives as people have them, BPMN and PNML, the token of the app, and bounds; 800
    # for runs that are counted, logs in columns, folders in parts, L-BFGS without SciPy, columns and drafts in the app.
    assert sum(map(lines_of_code, MODULES)) <= 26_900


@pytest.mark.parametrize("word", OLD_WORDS)
def test_names_are_those_of_the_field(word: str) -> None:
    found = [
        f"{module.name}: {node.name}"
        for module in MODULES
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and word in node.name.lower()
    ]
    assert found == []
    assert [module.name for module in MODULES if word in module.path.stem] == []


def test_the_checks_can_fail() -> None:
    assert repeated_module_names([*MODULES, MODULES[-1]]) != {}
    assert repeated_type_names([*MODULES, MODULES[-1], *MODULES]) != {}

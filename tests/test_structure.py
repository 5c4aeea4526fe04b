"""The code keeps to its own rules: a bounded size, names used once, full docstrings on public names only, no cycles."""

from __future__ import annotations

import ast

import pytest

from benchmarks.code_figures import (
    PACKAGE,
    figures,
    import_cycles,
    private_functions_with_parameters,
    read_modules,
    repeated_module_names,
    repeated_type_names,
)

MODULES = read_modules(PACKAGE)
BOUNDS = {
    "lines": 39_000,
    "lines of code": 26_000,
    "modules": 225,
    "modules imported by one other only": 40,
    'functions in infer("steps.csv")': 200,
    "Any": 200,
    "private functions with a Parameters section": 0,
}
OLD_WORDS = (
    "desk", "shelf", "chore", "witness", "habits", "kinship", "remarks", "oddity", "oddities", "footage", "foretell",
)  # fmt: skip
"""Words of a private language that nobody would search for."""


def test_the_wheel_stays_small() -> None:
    measured = figures(PACKAGE)
    assert {name: measured[name] for name, most in BOUNDS.items() if measured[name] > most} == {}


def test_no_two_modules_share_a_name() -> None:
    assert repeated_module_names(MODULES) == {}


def test_no_two_types_share_a_name() -> None:
    assert repeated_type_names(MODULES) == {}


def test_no_modules_import_each_other() -> None:
    assert import_cycles(MODULES) == []


@pytest.mark.parametrize("word", OLD_WORDS)
def test_names_are_those_of_the_field(word: str) -> None:
    named = [
        f"{module.name}: {node.name}"
        for module in MODULES
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and word in node.name.lower()
    ]
    assert named == []
    assert [module.name for module in MODULES if word in module.path.stem] == []


def test_the_checks_can_fail() -> None:
    assert repeated_module_names([*MODULES, MODULES[-1]]) != {}
    assert repeated_type_names([*MODULES, MODULES[-1], *MODULES]) != {}
    infer = next(module for module in MODULES if module.name == "msg2.inference.inference")
    assert private_functions_with_parameters([infer]) != []  # with no `__all__` beside it, nothing is public

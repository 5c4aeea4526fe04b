"""The tutorial notebooks run from the first cell to the last, and are kept without outputs.

Here their cells run in this process; the build of the site (`test_docs.py`, slow) runs them in Jupyter.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from types import ModuleType

import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs/notebooks").glob("*.ipynb"))
NEEDS = {"from_video": ("av", "torch", "matplotlib"), "own_data": ("pandas",)}
"""Packages of optional parts, by notebook."""


def test_they_are_there() -> None:
    assert [path.stem for path in NOTEBOOKS] == ["first_graph", "from_video", "kitchen_assistant", "own_data"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_short_and_kept_without_outputs(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert 8 <= len(notebook.cells) <= 16
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(not cell.outputs and cell.execution_count is None for cell in code)
    assert notebook.cells[0].source.startswith("# ")


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem == "from_video" else [])
        for path in NOTEBOOKS
    ],
)
def test_it_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("IPython", *NEEDS.get(path.stem, ())):
        pytest.importorskip(package)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    module = ModuleType("__main__")
    monkeypatch.setitem(sys.modules, "__main__", module)
    shown = [_value_of(cell.source, vars(module)) for cell in nbformat.read(path, as_version=4).cells
             if cell.cell_type == "code"]  # fmt: skip
    pictures = [value._repr_svg_() for value in shown if hasattr(value, "_repr_svg_")]
    assert pictures
    assert all("</svg>" in picture for picture in pictures)


def _value_of(cell: str, names: dict[str, object]) -> object:
    """Run a cell; what it ends with, Jupyter would show."""
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last is not None else None

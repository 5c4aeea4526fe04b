"""The tutorial notebooks run from the first cell to the last, and are kept without outputs."""

from __future__ import annotations

import shutil
from pathlib import Path

import nbformat
import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "docs/notebooks").glob("*.ipynb"))
NEEDS = {"from_video": ("av", "torch", "matplotlib"), "own_data": ("pandas",)}
"""Packages of optional parts, by notebook."""
SECONDS = 300
"""For one cell, on a machine that has much else to do."""


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


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in NEEDS.get(path.stem, ()):
        pytest.importorskip(package)
    client = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path / "matplotlib"))
    notebook = nbformat.read(shutil.copy(path, tmp_path), as_version=4)
    client.NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()  # raises where a cell fails
    streams = [one for cell in notebook.cells for one in cell.get("outputs", []) if one.output_type == "stream"]
    assert not [one.text for one in streams if one.name == "stderr" and "Traceback" in one.text]
    pictures = [
        one for cell in notebook.cells for one in cell.get("outputs", []) if "image/svg+xml" in one.get("data", {})
    ]
    assert pictures

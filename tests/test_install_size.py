"""What an installation weighs: closures and sizes of made-up distributions, whose answer is known."""

from __future__ import annotations

from importlib.metadata import Distribution, distributions
from pathlib import Path

import pytest

from benchmarks.install_size import disk_bytes, normalized, required


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, Distribution]:
    """One needs two; its part `extra` needs three, which needs one again; nobody needs four."""
    needs = {
        "One": ["two>=1", "three[x]; extra == 'extra'", "absent; sys_platform == 'win32'"],
        "Two": [],
        "three": ["One"],
    }
    for name, requirements in (needs | {"four": []}).items():
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        lines = "".join(f"Requires-Dist: {requirement}\n" for requirement in requirements)
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{lines}")
        (tmp_path / f"{name}.py").write_text("x" * 1000)
        (folder / "RECORD").write_text(f"{name}.py,,\n{name}.py,,\nmissing.py,,\n")
    return {normalized(each.name): each for each in distributions(path=[str(tmp_path)])}


def test_what_is_required_is_followed_and_parts_only_where_they_are_wanted(installed: dict[str, Distribution]) -> None:
    assert required(installed, "one") == {"one", "two"}
    assert required(installed, "one", ["extra"]) == {"one", "two", "three"}
    assert required(installed, "absent") == set()


def test_a_file_counts_once_and_a_missing_one_not_at_all(installed: dict[str, Distribution]) -> None:
    assert disk_bytes(installed["two"]) == 1000

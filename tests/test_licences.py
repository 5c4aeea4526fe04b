"""What msg2 needs when it runs is free to use, and what is inside wheels is known and told."""

from __future__ import annotations

import sys
from importlib.metadata import Distribution

import pytest

from benchmarks.licences import (
    BUNDLED,
    PAGE,
    PERMISSIVE,
    WEAK_COPYLEFT,
    bundled_libraries,
    licences_of,
    run_time_distributions,
    stated_licence,
)

CORE = {"numpy", "networkx", "pygraphviz", "rich", "typer"}
TEXT, _, TABLES = PAGE.read_text(encoding="utf-8").partition("## Tables")


@pytest.fixture(scope="module")
def found() -> dict[str, Distribution]:
    """What is installed here of all that msg2 needs."""
    return run_time_distributions()


def test_distributions_are_free_to_use_and_on_the_page(found: dict[str, Distribution]) -> None:
    for name, distribution in found.items():
        statement = stated_licence(distribution)
        assert licences_of(statement) <= PERMISSIVE | WEAK_COPYLEFT, name
        (row,) = [line for line in TABLES.splitlines() if line.startswith(f"| {statement} |")]
        assert name in row.split("|")[2].replace(",", "").split()


def test_all_parts_are_looked_at(found: dict[str, Distribution]) -> None:
    assert set(found) >= CORE
    if "av" not in found:
        pytest.skip("not all optional parts are installed")
    assert set(found) >= {"torch", "scipy", "spacy", "fastapi", "ray", "pyarrow", "matplotlib", "pandas"}
    assert not {"pytest", "mypy", "pm4py", "mkdocs"} & set(found)


def test_libraries_inside_wheels_are_known_and_on_the_page(found: dict[str, Distribution]) -> None:
    for name, distribution in found.items():
        for library in bundled_libraries(distribution):
            assert library in BUNDLED, f"{name} carries {library}: look up its licence"
            assert any(
                line.startswith(f"| {name} | {BUNDLED[library]} |") and library in line for line in TABLES.splitlines()
            )


def test_libraries_under_the_gpl_are_those_that_the_page_tells_of() -> None:
    strict = {library for library, licence in BUNDLED.items() if licence == "GPL"}
    assert strict == {"libx264", "libx265", "libjbig"}
    assert all(library.removeprefix("lib") in TEXT for library in strict)


def test_of_alternatives_a_permissive_one_is_taken() -> None:
    assert licences_of("Apache-2.0 OR GPL-3.0") == {"Apache-2.0"}
    assert licences_of("MIT AND GPL-3.0") == {"MIT", "GPL-3.0"}


def test_the_checks_can_fail(found: dict[str, Distribution]) -> None:
    assert not licences_of("GPL-3.0-only") <= PERMISSIVE | WEAK_COPYLEFT
    if sys.platform == "linux":
        assert "libjbig" in bundled_libraries(found["pygraphviz"])

"""Mutated files of every format: a short run, and whatever was found before."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from benchmarks.fuzz import FINDINGS, examples, fuzz, mutated_files, read_as_everything
from msg2.formats.registry import READERS, find_reader
from msg2.formats.source import Source


def test_there_is_a_valid_example_of_every_format(tmp_path: Path) -> None:
    found = examples(tmp_path)
    assert [name for name, path in found.items() if read_as_everything(path) is not None] == []
    data = {name: path for name, path in found.items() if name not in ("graph", "saved_run", "feature_store")}
    assert {find_reader(Source.of_data(path)) for path in data.values()} == set(READERS)
    assert [name for name, path in data.items() if _complaint(path)] == []


def _complaint(path: Path) -> str | None:
    from msg2.errors import InputError
    from msg2.formats import summarize

    try:
        summarize(path, fps=30 if path.suffix == ".xml" else None)
    except InputError as error:
        return str(error)
    return None


@pytest.mark.slow
def test_mutated_files_are_read_or_refused(tmp_path: Path) -> None:
    """In this process, so that it is short: what crashes or hangs is for `make fuzz`."""
    for name, example in examples(tmp_path / "examples").items():
        for number in range(3 if name == "procel" else 40):
            folder = tmp_path / f"{name}-{number}"
            for path, data in mutated_files(example, random.Random(f"{name} {number}")).items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_bytes(data)
            assert read_as_everything(folder / example.name) is None, folder


@pytest.mark.slow
def test_a_run_tries_every_case_and_says_what_it_finds() -> None:
    assert list(fuzz("csv", seed=1, count=5, seconds=60)) == [(number, None) for number in range(5)]


@pytest.mark.slow
def test_a_matlab_file_has_a_process_of_its_own_also_there() -> None:
    assert list(fuzz("procel", seed=1, count=40, seconds=60)) == [(number, None) for number in range(40)]


def test_what_was_found_stays_mended() -> None:
    """`make fuzz` keeps what it finds as files; there are none where nothing has been found."""
    cases = sorted(FINDINGS.glob("*/*"))
    assert {case.parent.name: problem for case in cases if (problem := read_as_everything(case))} == {}

"""Many clients at the same time; `python -m benchmarks.server` and `benchmarks.app_load` take minutes."""

from __future__ import annotations

import os

import pytest

from benchmarks import app_load, server


def test_no_error_and_no_job_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    """Every client sends a request of each kind, however long that takes."""
    result = server.run_load_test(clients=6, seconds=0)
    assert result.errors == []
    assert result.lost == []
    assert result.jobs == 6
    assert set(result.times) == {"upload", "begin a job", "infer", "next", "check", "one dataset"}


def test_what_goes_wrong_is_counted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lost = server.LoadResult({"infer": [0.1]}, ["infer: 500 b'no'"], 2, ["a job: gone"])
    monkeypatch.setattr(server, "run_load_test", lambda clients, seconds: lost)
    assert server.main([]) == 1
    assert "1 requests, 1 errors; 2 jobs, 1 lost" in capsys.readouterr().out


def test_answers_of_any_other_kind_are_counted() -> None:
    for text in (
        b"",
        b"Internal Server Error",
        b'{"detail": "no"}',
        b'{"error": "a\\nb c d", "where": null, "hint": null}',
    ):
        assert not app_load._is_sentence(text)
    assert app_load._is_sentence(b'{"error": "the disk of the server is full", "where": null, "hint": null}')


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="a small disk is mounted: needs root")
def test_kills_a_full_disk_and_hostile_uploads() -> None:
    outcome = app_load.run_load(clients=10, seconds=24, seed=3, megabytes=1000)
    assert outcome.lost == []
    assert outcome.seen.problems == []
    statuses = {status for _, status in outcome.seen.answers}
    assert {0, 200, 201, 400, 422, 507} <= statuses
    assert len(outcome.seen.jobs) >= 5

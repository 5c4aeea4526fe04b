"""Fifty clients at the same time, for a few seconds; `python -m benchmarks.server` takes a minute."""

from __future__ import annotations

import pytest

from benchmarks import server


def test_no_error_and_no_job_is_lost(capsys: pytest.CaptureFixture[str]) -> None:
    result = server.run_load_test(clients=50, seconds=4)
    assert result.errors == []
    assert result.lost == []
    assert result.jobs >= 5
    assert set(result.times) == {"upload", "begin a job", "infer", "next", "check", "one dataset"}


def test_what_goes_wrong_is_counted(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    lost = server.LoadResult({"infer": [0.1]}, ["infer: 500 b'no'"], 2, ["a job: gone"])
    monkeypatch.setattr(server, "run_load_test", lambda clients, seconds: lost)
    assert server.main([]) == 1
    assert "1 requests, 1 errors; 2 jobs, 1 lost" in capsys.readouterr().out

"""Commands that are killed or interrupted leave nothing half-written, and go on as if nothing had been."""

from __future__ import annotations

import pytest

from benchmarks.kills import COMMANDS, disturb_many


@pytest.mark.parametrize("name", ["merge", "convert"])
def test_two_short_commands(name: str) -> None:
    assert list(disturb_many(name, 2, seed=1)) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_that_writes(name: str) -> None:
    assert list(disturb_many(name, 6, seed=2)) == []

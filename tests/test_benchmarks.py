"""Growth of the paper's method, measured; slow because it needs large tasks to be measurable."""

from __future__ import annotations

import logging

import pytest

from benchmarks.inference import growth, seconds, synthetic


@pytest.fixture(autouse=True)
def _silence() -> None:
    logging.getLogger("msg2").setLevel(logging.ERROR)


def test_a_power_law_is_fitted_exactly() -> None:
    assert growth([10, 20, 40], [3 * size**2 for size in (10, 20, 40)]) == pytest.approx(2)


@pytest.mark.slow
def test_time_is_linear_in_videos() -> None:
    sizes = [1000, 2000, 4000, 8000]
    assert growth(sizes, [seconds([synthetic(40, size)], "msg2") for size in sizes]) < 1.15


@pytest.mark.slow
def test_time_is_at_most_cubic_in_steps() -> None:
    sizes = [20, 40, 80, 160]
    assert growth(sizes, [seconds([synthetic(size, 1000)], "msg2") for size in sizes]) < 3

"""The numbers that must be shown, on the public annotations (see the README for the commands)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiments import paper_results
from experiments.experiment_options import ExperimentOptions
from experiments.forecasting import next_step_labels
from experiments.graph_learning import task_graph_edges
from experiments.result_tables import Result
from msg2.progress import no_progress

pytestmark = pytest.mark.slow


def column(result: Result, table: int, name: str) -> dict[Any, Any]:
    """First cell of every row -> its cell in this column."""
    found = result.tables[table]
    return {row[0]: row[list(found.columns).index(name)] for row in found.rows}


@pytest.fixture(scope="module")
def crosstask(data: Path) -> Result:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(next_step_labels, "ROWS", {row: next_step_labels.ROWS[row] for row in ("msg2", "bigram")})
        return next_step_labels.run(data, ExperimentOptions(splits=5), no_progress)


@pytest.fixture(scope="module")
def recipes(data: Path) -> Result:
    rows = {row: how for row, how in task_graph_edges.ROWS.items() if "auto" not in row and row != "msgi+"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(task_graph_edges, "ROWS", rows)
        return task_graph_edges.run(data, ExperimentOptions(), no_progress)


def test_next_step_is_the_papers(crosstask: Result) -> None:
    """The paper prints 53.39 for MSG² on labels only, at δ = 0.55."""
    found = column(crosstask, 0, "msg2")
    assert 52.0 <= found["mean"] <= 55.0
    assert set(paper_results.NEXT_STEP) < set(found)
    assert crosstask.facts["seeds"] == [0, 1, 2, 3, 4]
    assert crosstask.facts["delta"] == 0.55


def test_a_bigram_does_better_on_the_next_step(crosstask: Result) -> None:
    assert 57.0 <= column(crosstask, 0, "bigram")["mean"] <= 60.0


def test_published_protocol(recipes: Result) -> None:
    """24 error-free recipes, in the order of the file."""
    f1 = column(recipes, 0, "edge F1")
    assert f1["always-before"] == pytest.approx(89.7, abs=0.1)
    assert f1["msg2, δ = 0.96"] >= 80
    assert len(recipes.facts["f1 per recipe"][f"{recipes.tables[0].title}: always-before"]) == 24


def test_real_mistakes(recipes: Result) -> None:
    """12 recipes with all their recordings, in the order of the file."""
    f1 = column(recipes, 2, "edge F1")
    assert f1["always-before"] == pytest.approx(62, abs=1)
    assert f1["always-before, δ = 0.8"] == pytest.approx(80, abs=1)
    assert f1["msg2, δ = 0.8"] == pytest.approx(77, abs=1)
    assert len(recipes.facts["f1 per recipe"][f"{recipes.tables[2].title}: always-before"]) == 12


def test_precision_recall_and_f1_belong_together(recipes: Result) -> None:
    for table in range(4):
        for row in recipes.tables[table].rows:
            precision, recall, f1 = (float(cell or 0) for cell in row[1::2])
            assert min(precision, recall) - 5 <= f1 <= max(precision, recall)
            assert min(precision, recall) >= 0

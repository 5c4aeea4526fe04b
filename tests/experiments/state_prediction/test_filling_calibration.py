"""The table of confidences: from planted cells, by hand; and that a cell can be measured."""

from __future__ import annotations

import pytest

from experiments.experiment_options import ExperimentOptions
from experiments.state_prediction.filling_calibration import AFTER, BEFORE, LABELS, FillingCell, filling_table, run
from msg2.progress import no_progress


def test_the_table_by_hand() -> None:
    def way(added: list[tuple[float, bool]], f1: float) -> dict[str, object]:
        return {"added": added, "accuracy": 0.5, "f1": f1}

    found = {
        FillingCell(8, "a", 1): {
            LABELS: way([], 0.5), BEFORE: way([(0.95, False), (0.6, True)], 0.3), AFTER: way([], 0.5),
        },
        FillingCell(8, "b", 1): {LABELS: way([], 0.7), BEFORE: way([(0.95, True)], 0.5), AFTER: way([], 0.7)},
    }  # fmt: skip
    alone, before, after = filling_table(found).rows
    assert alone[:6] == [8, LABELS, 0, 0, None, None]
    assert before[:5] == [8, BEFORE, 2, 3, pytest.approx(200 / 3)]
    assert before[5] == pytest.approx(100 * (2 * 0.45 + 0.4) / 3)
    assert before[6:8] == [2, 50.0]
    assert before[9:] == [pytest.approx(40), "-20.00 (-20.00 to -20.00)"]
    assert after[3:8] == [0, None, None, 0, None]


def test_a_quick_look() -> None:
    pytest.importorskip("torch")
    result = run(None, ExperimentOptions.for_quick_look(), no_progress)
    (table,) = result.tables
    assert [row[:2] for row in table.rows] == [[8, LABELS], [8, BEFORE], [8, AFTER]]
    assert table.rows[2][3] == 0, "with eight videos nothing is added"

"""The experiment on rendered videos: one small world from mp4 to tables, and what is kept of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("av")

from experiments.experiment_options import ExperimentOptions
from experiments.state_prediction import rendered_videos
from experiments.state_prediction.state_cells import LABELS, PROBE, StateStudyOptions
from msg2.states.configuration import TrainingOptions
from tests.experiments.progress_recorder import ProgressRecorder

BRIEF = TrainingOptions(epochs=2, device="cpu")
TINY = StateStudyOptions(
    worlds=("Perform CPR", "Make Coffee"), videos=4, rendered=1, transformers=BRIEF, evidence_models=BRIEF,
    resamples=50,
)  # fmt: skip


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worlds and sizes of TINY; in this process, where they are patched."""
    monkeypatch.setattr(rendered_videos.StateStudyOptions, "of", staticmethod(lambda _: TINY))
    monkeypatch.setattr(
        rendered_videos, "measure_in_parallel", lambda work, items, jobs: ((item, work(item)) for item in items)
    )


@pytest.mark.slow
def test_from_videos_to_tables_and_not_twice(small: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ExperimentOptions(folder=tmp_path)
    news = ProgressRecorder()
    result = rendered_videos.run(None, options, news)
    assert news == ["Perform CPR"]
    found = result.facts["worlds"]["Perform CPR"]
    assert set(found) == set(rendered_videos.ROWS)
    assert 0 <= found[PROBE]["accuracy"] <= 1
    assert found[LABELS]["graphs"].keys() == {"0.96", "0.8", "auto"}
    videos = tmp_path / "rendered" / "perform-cpr" / "videos"
    assert len([*videos.glob("*.mp4")]) == len([*videos.glob("*.vtt")]) == 4
    monkeypatch.setattr(rendered_videos, "measure_row", None)  # nothing is measured again
    assert rendered_videos.run(None, options, news) == result
    other = replace(TINY, unlabelled=0.5)
    monkeypatch.setattr(rendered_videos.StateStudyOptions, "of", staticmethod(lambda _: other))
    with pytest.raises(TypeError):  # with other options, it would be
        rendered_videos.run(None, options, news)

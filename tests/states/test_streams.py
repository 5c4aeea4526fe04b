"""Audio and motion beside frames and sentences: attention by hand, what only they tell, and doing without."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from msg2.errors import InputError
from msg2.formats.feature_store import Encoders, FeatureStore, VideoFeatures, open_store, write_store
from msg2.states import load_trained_model, train_task
from msg2.states.configuration import get_variant
from msg2.states.network import Fusion
from msg2.task import Task
from tests.states.conftest import STEPS, tiny_task


def planted(folder: Path, speaks: str, *, heard: bool = True) -> tuple[Task, FeatureStore]:
    """Twenty videos in which frames and sentences are noise and one stream shows the step that is labelled then."""
    task, rng = tiny_task(20, seed=4), np.random.default_rng(1)
    prototypes = rng.normal(size=(len(STEPS) + 1, 8))
    entries = {}
    for video in task:
        times = np.arange(0.0, max(segment.end or 0 for segment in video.segments) + 3)
        shown = [next((STEPS.index(s.step) for s in video.segments if s.start <= t <= s.end), -1) for t in times]
        noise = {name: rng.normal(size=(len(times), 8)) for name in ("frames", "audio", "motion")}
        noise[speaks] = prototypes[shown] + 0.2 * noise[speaks]
        spans = times[::3, None] + [0.0, 2.0] if heard else np.zeros((0, 2))
        entries[None, video.id] = VideoFeatures(
            times, noise.pop("frames"), spans, rng.normal(size=(len(spans), 8)), streams=noise
        )
    streams = {"audio": ("mel", 8), "motion": ("flow", 8)}
    return task, write_store(folder, entries, Encoders("see", "hear", 8, 8, streams=streams))


def test_a_stream_is_one_more_key_of_the_same_attention() -> None:
    torch.manual_seed(0)
    fusion = Fusion(8, 6, 2, 0.0, skip=False, streams={"audio": 5, "motion": 3}).eval()
    frames, sentences = torch.randn(1, 4, 8), torch.randn(7, 6)
    rows = torch.tensor([[[0, 1, 2], [-1, 3, 4], [5, -1, -1], [-1, -1, -1]]])
    streams = {"audio": torch.randn(1, 4, 5), "motion": torch.randn(1, 4, 3)}
    enriched = fusion(frames, sentences, rows, streams)
    for token in range(4):
        known = sentences[rows[0, token][rows[0, token] >= 0]]
        others = [fusion.streams[name](streams[name][0, token])[None] for name in streams]
        keys = [fusion.key(known), *(both[:, :8] for both in others)]
        values = [fusion.value(known), *(both[:, 8:] for both in others)]
        query = fusion.query(frames[0, token])[None]
        heads = [torch.cat(each).unflatten(-1, (2, -1)).transpose(0, 1) for each in ([query], keys, values)]
        attended = fusion.out(F.scaled_dot_product_attention(*heads).transpose(0, 1).flatten(1))
        by_hand = fusion.norm(fusion.feed_forward(attended) + attended)
        assert torch.allclose(enriched[0, token], by_hand[0], atol=1e-5)


@pytest.mark.parametrize("variant", ["evidence", "paper"])
@pytest.mark.parametrize("speaks", ["audio", "motion"])
def test_what_only_one_stream_tells_is_learned_from_it(variant: str, speaks: str, tmp_path: Path) -> None:
    """With the stream it is known when a hidden step is completed, without it it is not."""
    task, store = planted(tmp_path / "store", speaks)
    other = {"audio": "motion", "motion": "audio"}[speaks]
    brief = {"epochs": 15, "batch": 8, "learning_rate": 3e-3, "warmup": 2, "calibrate": False, "device": "cpu"}
    brief |= {} if variant == "evidence" else {"encoder": "t5-tiny", "heads": 4}
    right = {}
    for name, off in (("with", other), ("without", speaks)):
        train_task(task, store, tmp_path / name, variant=variant, **brief, **{off: False})
        card = json.loads((tmp_path / name / "model.json").read_text())
        assert list(card["streams"]) == sorted({"audio", "motion"} - {off})
        trained = load_trained_model(tmp_path / name, task, store)
        scores = trained.evaluate(None, get_variant(variant).options().filling)["hidden steps"]
        right[name] = scores["accuracy"] or 0.0
    if variant == "evidence":
        assert right["with"] > 0.95
        assert right["without"] < 0.8


def test_without_sentences_and_frames_that_see(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The default model does without narration; a model with a transformer then fuses the streams alone."""
    task, store = planted(tmp_path / "store", "audio", heard=False)
    for variant, more in (("evidence", {}), ("paper", {"encoder": "t5-tiny"})):
        trained = train_task(task, store, tmp_path / variant, variant=variant, epochs=1, device="cpu", **more)
        assert trained.card.model.inputs == "vision"
        assert trained.card.streams == {"audio": 8, "motion": 8}
        model = load_trained_model(tmp_path / variant, task, store)
        assert np.isfinite(model.predict()[0].scores).all()
    assert "there are no sentences, frames do without them" in caplog.text


def test_a_model_needs_the_streams_that_it_was_trained_with(tmp_path: Path) -> None:
    task, store = planted(tmp_path / "store", "audio")
    train_task(task, store, tmp_path / "model", epochs=1, device="cpu")
    fewer = {
        key: replace(store.read(key), streams={"motion": store.read(key).streams["motion"]}) for key in store.entries
    }
    other = write_store(tmp_path / "other", fewer, replace(store.encoders, streams={"motion": ("flow", 8)}))
    with pytest.raises(InputError, match=r"holds no audio, which the model in .* needs"):
        load_trained_model(tmp_path / "model", task, other)
    again = open_store(tmp_path / "store")
    assert again.encoders.streams == {"audio": ("mel", 8), "motion": ("flow", 8)}
    first = next(iter(again.entries))
    assert (again.read(first).streams["audio"] == store.read(first).streams["audio"]).all()


def test_streams_go_with_the_frames() -> None:
    nothing = np.zeros((0, 2)), np.zeros((0, 4))
    with pytest.raises(InputError, match=r"audio of shape \(3, 2\) does not fit 2 frames"):
        VideoFeatures(np.arange(2.0), np.ones((2, 4)), *nothing, streams={"audio": np.ones((3, 2))})
    with pytest.raises(InputError, match="there is no stream 'smell', only audio and motion"):
        VideoFeatures(np.arange(2.0), np.ones((2, 4)), *nothing, streams={"smell": np.ones((2, 2))})

"""Tiny labelled videos with features in which every step has a look and a sound of its own; small fast models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import strategies as st

from msg2.formats.feature_store import VideoFeatures
from msg2.states.configuration import SamplingOptions, StateModelOptions
from msg2.states.dataset import Batch, LabelledVideo, StateDataset, Tokens, build_dataset, collate
from msg2.states.network import StateModel
from msg2.task import Segment, Task, Video

STEPS = ("boil", "crack", "drain", "serve")
WIDTH = 16


@pytest.fixture(autouse=True, scope="session")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def _offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reaches for the network, whatever it asks for."""
    import huggingface_hub.constants

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


def tiny_task(videos: int = 5, seed: int = 0, steps: Sequence[str] = STEPS) -> Task:
    """Every video shows three or four of the steps, in any order, five to twelve seconds each, with gaps."""
    rng = np.random.default_rng([seed, 1])
    made = []
    for number in range(videos):
        chosen = rng.permutation(len(steps))[: rng.integers(max(1, len(steps) - 1), len(steps) + 1)]
        now, segments = 0.0, []
        for step in chosen:
            now += float(rng.uniform(1, 6))
            end = now + float(rng.uniform(5, 12))
            segments.append(Segment(steps[step], now, end))
            now = end
        made.append(Video(f"v{number}", segments))
    return Task("noodles", steps, made)


def tiny_features(
    task: Task, seed: int = 0, width: int = WIDTH, text_width: int | None = None
) -> dict[str, VideoFeatures]:
    """One frame a second and one sentence every three: the prototype of the step that is labelled then, plus noise."""
    rng = np.random.default_rng([seed, 2])
    looks = rng.normal(size=(len(task.steps) + 1, width))
    sounds = rng.normal(size=(len(task.steps) + 1, width if text_width is None else text_width))
    found = {}
    for video in task:
        length = (max(segment.end for segment in video.segments) if video.segments else 10.0) + 5

        def shown(times: Any, prototypes: Any, video: Video = video) -> Any:
            steps = [
                next((task.steps.index(s.step) for s in video.segments if s.start <= t <= s.end), len(task.steps))
                for t in times
            ]
            return prototypes[steps] + 0.3 * rng.normal(size=(len(times), prototypes.shape[1]))

        frame_times = np.arange(0, length, 1.0)
        starts = np.arange(0, length, 3.0)
        found[video.id] = VideoFeatures(
            frame_times, shown(frame_times, looks), np.stack([starts, starts + 3], 1), shown(starts + 1.5, sounds)
        )
    return found


def tiny_dataset(
    videos: int = 5, seed: int = 0, text_width: int | None = None, *, text_only: bool = False, steps: int = 4
) -> StateDataset:
    task = tiny_task(videos, seed, [*STEPS, "salt", "stir", "taste", "wash"][:steps])
    return build_dataset(task, tiny_features(task, seed, text_width=text_width).get, text_only=text_only)


def options(**changes: Any) -> StateModelOptions:
    """The paper's model in miniature."""
    return StateModelOptions(**{"encoder": "t5-tiny", "heads": 4, **changes})


VARIANTS: dict[str, StateModelOptions] = {
    "t5": options(),
    "t5, vision": options(inputs="vision"),
    "t5, skip": options(skip=True),
    "t5, text": options(inputs="text"),
    "vit": options(encoder="vit-tiny"),
    "visualbert": options(encoder="visualbert-tiny"),
    "visualbert, direct": options(encoder="visualbert-tiny", direct=True),
    "evidence": options(evidence=True, context=False),
    "evidence, context": options(evidence=True),
    "evidence, text": options(inputs="text", evidence=True, context=False),
    "co-occurrence": options(cooccurrence=True, context=False),
    "evidence, co-occurrence": options(evidence=True, cooccurrence=True, context=False),
    "evidence, co-occurrence, context": options(evidence=True, cooccurrence=True),
}
"""Every way through the model."""
SAMPLED_FROM_THE_VIDEO = SamplingOptions(frames="video", most_frames=30)


def model_for(held: StateDataset, chosen: StateModelOptions, seed: int = 0) -> StateModel:
    """An untrained model in eval mode; what starts at zero is drawn at random, so that everything matters."""
    torch.manual_seed(seed)
    model = StateModel(len(held.steps), held.frames.shape[1], held.sentences.shape[1], chosen)
    with torch.no_grad():
        for parameter in model.parameters():
            if not parameter.any():
                parameter.normal_(std=0.3)
    return model.eval()


def batch_of(
    held: StateDataset,
    numbers: Sequence[int],
    sampling: SamplingOptions | None = None,
    seed: int | None = 3,
    **given: Any,
) -> tuple[list[Tokens], Batch]:
    chosen = SamplingOptions() if sampling is None else sampling
    tokens = [held.tokens(number, chosen, None if seed is None else [seed]) for number in numbers]
    return tokens, collate(held, numbers, tokens, **given)


def changed(made: Batch, change: Callable[[dict[str, torch.Tensor]], None]) -> Batch:
    """A copy of the batch with its tensors changed in place by `change`."""
    copies = {one.name: getattr(made, one.name).clone() for one in fields(made)}
    change(copies)
    return replace(made, **copies)


def rows_of(made: Batch, scores: torch.Tensor, members: int) -> list[torch.Tensor]:
    """Per member of the batch its tokens' scores, in order, wherever they stand."""
    return [scores[made.video == member + 1] for member in range(members)]


def tensors_in(folder: Path, which: str) -> Path:
    """The file of the "best" or "last" weights: there is one of each, named after its epoch."""
    (found,) = folder.glob(f"{which}-*.safetensors")
    return found


@st.composite
def labelled_videos(draw: st.DrawFn, most: int = 8, steps: int = 10) -> LabelledVideo:
    """Videos of up to `most` segments, which may touch, overlap and last no time; times are quarter seconds."""
    quarters = st.integers(0, 400).map(lambda n: n / 4)
    chosen = draw(st.lists(st.integers(0, steps - 1), unique=True, min_size=1, max_size=most))
    spans = [sorted((draw(quarters), draw(quarters))) for _ in chosen]
    order = sorted(range(len(chosen)), key=lambda i: (*spans[i], chosen[i]))
    frames = sorted(draw(st.lists(quarters, min_size=1, max_size=60)))
    sentences = sorted(draw(st.lists(quarters, max_size=20)))
    return LabelledVideo(
        "v",
        np.array([chosen[i] for i in order], dtype=np.int64),
        np.array([spans[i][0] for i in order]),
        np.array([spans[i][1] for i in order]),
        np.array(frames, dtype=np.float64),
        np.array(sentences, dtype=np.float64),
    )

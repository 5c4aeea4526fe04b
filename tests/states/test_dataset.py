"""Batches hold every token of every video once, wherever it is packed, and point at its own features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from msg2.errors import InputError
from msg2.formats.feature_store import VideoFeatures
from msg2.states.configuration import SamplingOptions
from msg2.states.dataset import END, FRAME, START, _pack_rows, build_dataset, chunks, collate, sample_tokens
from msg2.states.loss_and_optimizer import training_loss
from msg2.task import Segment, Task, Video
from tests.states.conftest import STEPS, batch_of, model_for, options, tiny_dataset, tiny_features, tiny_task

HELD = tiny_dataset(5)


def test_a_dataset_points_at_the_features_of_each_video() -> None:
    task = tiny_task(4)
    features = tiny_features(task, text_width=7)
    held = build_dataset(task, features.get)
    assert held.steps == task.steps
    assert (len(held), held.frames.shape[1], held.sentences.shape[1]) == (4, 16, 7)
    for one in held.videos:
        frame, sentence = one.first_frame, one.first_sentence
        own = features[one.video]
        np.testing.assert_array_equal(held.frames[frame : frame + len(own.frames)].numpy(), own.frames)
        np.testing.assert_array_equal(held.sentences[sentence : sentence + len(own.sentences)].numpy(), own.sentences)
        np.testing.assert_array_equal(one.frame_times, own.frame_times)


def test_a_text_only_dataset_has_sentences_for_frames() -> None:
    held = tiny_dataset(3, text_only=True)
    assert torch.equal(held.frames, held.sentences)
    assert all(one.first_frame == one.first_sentence for one in held.videos)


def test_videos_without_labels_or_features_are_left_out() -> None:
    task = tiny_task(3)
    features = tiny_features(task)
    more = task.with_videos([*task, Video("silent", []), Video("unseen", [Segment(STEPS[0], 0, 1)])])
    held = build_dataset(more, {**features, "silent": features["v0"]}.get)
    assert [one.video for one in held.videos] == ["v0", "v1", "v2"]


def test_a_video_without_narration_is_no_trouble() -> None:
    task = tiny_task(3)
    features = tiny_features(task)
    features["v1"] = replace(features["v1"], sentence_times=np.zeros((0, 2)), sentences=np.zeros((0, 0)))
    held = build_dataset(task, features.get)
    assert held.videos[1].first_sentence == held.videos[2].first_sentence
    _, made = batch_of(held, [1])
    assert (made.sentence == -1).all()


def test_no_features_at_all_is_said() -> None:
    with pytest.raises(InputError, match="no video of task 'noodles' has features"):
        build_dataset(tiny_task(2), lambda _: None)
    with pytest.raises(InputError, match="no video of task 'none' has features"):
        build_dataset(Task("none", ["a"], []), lambda _: None)


def test_tokens_of_a_clip_do_not_depend_on_the_others() -> None:
    for seed in ([1, 2], None):
        rng = None if seed is None else np.random.default_rng([1, 2, 3])
        alone, there = sample_tokens(HELD.videos[3], 4, SamplingOptions(), rng), HELD.tokens(3, SamplingOptions(), seed)
        np.testing.assert_array_equal(alone.time, there.time)


@settings(max_examples=30)
@given(st.permutations(range(5)), st.integers(1, 5), st.integers(0, 150), st.booleans())
def test_every_token_is_in_the_batch_once(order: Sequence[int], count: int, row: int, testing: bool) -> None:
    numbers = order[:count]
    tokens, made = batch_of(HELD, numbers, seed=None if testing else 5, row=row)
    longest = max(len(one.kind) for one in tokens)
    assert made.video.shape[1] == max(longest, row)
    assert (made.video > 0).sum() == sum(len(one.kind) for one in tokens)
    if not row:
        assert len(made.video) == count
    for member, (number, one) in enumerate(zip(numbers, tokens, strict=True), start=1):
        here = made.video == member
        rows, columns = torch.nonzero(here, as_tuple=True)
        assert len(set(rows.tolist())) == 1  # in one row,
        assert (columns.diff() == 1).all()  # in one piece,
        assert made.position[here].tolist() == list(range(len(one.kind)))  # in order
        for name in ("kind", "inside", "state"):
            np.testing.assert_array_equal(getattr(made, name)[here].numpy(), getattr(one, name))
        np.testing.assert_array_equal(made.frame[here].numpy() - HELD.videos[number].first_frame, one.frame)
        shifted = made.sentence[here].numpy() - HELD.videos[number].first_sentence
        np.testing.assert_array_equal(np.where(made.sentence[here].numpy() < 0, -1, shifted), one.sentence)
        for token in range(len(one.kind)):
            for step in range(4):
                assert made.weight[here][token, step] == (one.kind[token] != FRAME and one.labelled[step])
        np.testing.assert_allclose(made.label_features[here].numpy(), one.label_features, rtol=1e-6)
        last = (int(rows[-1]), int(columns[-1]))
        assert made.present[last].tolist() == one.labelled.tolist()
        for step in range(4):  # whoever has a border is not asked about
            assert made.asked[last][step] == (step not in one.step)
        assert made.present[here].any(-1).sum() == 1
        assert made.asked[here][:-1].sum() == 0
    padding = made.video == 0
    for name in ("weight", "asked", "present"):
        assert not getattr(made, name)[padding].any()
    assert not ((made.kind[padding] == START) | (made.kind[padding] == END)).any()


@given(st.lists(st.integers(1, 40), min_size=1, max_size=20), st.integers(40, 90))
def test_packing_is_a_partition_that_fits_and_is_not_wasteful(lengths: list[int], row: int) -> None:
    rows = _pack_rows(lengths, row)
    assert sorted(member for line in rows for member in line) == list(range(len(lengths)))
    used = [sum(lengths[member] for member in line) for line in rows]
    assert max(used) <= row
    assert sum(one <= row / 2 for one in used) <= 1  # two half-empty rows would have been one


@given(st.lists(st.integers()), st.integers(1, 9))
def test_in_batches_loses_nothing(numbers: list[int], size: int) -> None:
    parts = list(chunks(numbers, size))
    assert [number for part in parts for number in part] == numbers
    assert all(len(part) == size for part in parts[:-1])


def test_features_are_not_copied_into_batches() -> None:
    _, made = batch_of(HELD, range(5))
    assert not made.frame.is_floating_point()


def test_one_video_alone() -> None:
    alone = build_dataset(Task("t", ["a"], [Video("v", [Segment("a", 0, 1)])]), lambda _: VideoFeatures(
        np.array([0.5]), np.ones((1, 3)), np.zeros((0, 2)), np.zeros((0, 3))))  # fmt: skip
    tokens = [alone.tokens(0, SamplingOptions())]
    made = collate(alone, [0], tokens)
    assert made.kind.tolist() == [[START, FRAME, FRAME, FRAME, END]]
    assert made.frame.tolist() == [[0] * 5]


@pytest.mark.parametrize("row", [0, 150])
def test_empty_rows_change_nothing(row: int) -> None:
    chosen = options()
    model = model_for(HELD, chosen)
    _, plain = batch_of(HELD, range(5), row=row)
    _, padded = batch_of(HELD, range(5), row=row, multiple=7)
    rows = len(plain.kind)
    assert len(padded.kind) == 7 > rows
    for field in fields(plain):
        assert torch.equal(getattr(plain, field.name), getattr(padded, field.name)[:rows])
    assert not padded.video[rows:].any()
    losses = [training_loss(model(made, HELD.frames, HELD.sentences), made, chosen).item() for made in (plain, padded)]
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)

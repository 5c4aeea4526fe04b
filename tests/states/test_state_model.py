"""The model against independent computations: loss by hand, attention by PyTorch's own, masks by changing inputs."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from msg2.errors import InputError
from msg2.formats.feature_store import VideoFeatures
from msg2.states.configuration import SamplingOptions, StateModelOptions
from msg2.states.dataset import (
    COMPLETED,
    END,
    FOLDS,
    FRAME,
    IN_PROGRESS,
    NOT_STARTED,
    START,
    StateDataset,
    build_dataset,
)
from msg2.states.loss_and_optimizer import ordinal_loss, training_loss
from msg2.states.network import EvidenceModel, Fusion, StateModel, transform_rows
from msg2.task import Segment, Task, Video
from tests.states.conftest import (
    SAMPLED_FROM_THE_VIDEO,
    VARIANTS,
    WIDTH,
    batch_of,
    changed,
    model_for,
    options,
    rows_of,
    tiny_dataset,
    tiny_features,
    tiny_task,
)

# --- the ordinal loss (Eq. 4) ---


def bce(score: float, truth: bool) -> float:
    """-log σ(score) or -log(1 - σ(score)), written for either sign."""
    signed = score if truth else -score
    return math.log1p(math.exp(-signed)) if signed > 0 else -signed + math.log1p(math.exp(signed))


def loss_by_hand(scores: Any, state: Any, weight: Any, b: float, in_progress: bool) -> float:
    total, weights = 0.0, 0.0
    for place in product(*map(range, np.shape(scores))):
        one = bce(scores[place] - b, state[place] == COMPLETED)
        if in_progress:
            one += bce(scores[place] + b, state[place] != NOT_STARTED)
        total += weight[place] * one
        weights += weight[place]
    return total / weights if weights else 0.0


@pytest.mark.parametrize(
    ("score", "state", "in_progress", "expected"),
    [
        # b = 1: log(1 + e^-1) = 0.313262, log(1 + e) = 1.313262, log(1 + e^-3) = 0.048587, log(1 + e^3) = 3.048587
        (0.0, NOT_STARTED, True, 1.313262 + 0.313262),
        (0.0, IN_PROGRESS, True, 0.313262 + 0.313262),
        (0.0, COMPLETED, True, 0.313262 + 1.313262),
        (2.0, NOT_STARTED, True, 3.048587 + 1.313262),
        (2.0, IN_PROGRESS, True, 0.048587 + 1.313262),
        (2.0, COMPLETED, True, 0.048587 + 0.313262),
        (-2.0, NOT_STARTED, True, 0.313262 + 0.048587),
        (0.0, NOT_STARTED, False, 0.313262),
        (0.0, IN_PROGRESS, False, 0.313262),
        (0.0, COMPLETED, False, 1.313262),
        (2.0, COMPLETED, False, 0.313262),
        (-2.0, COMPLETED, False, 3.048587),
    ],
)
def test_the_loss_of_one_score(score: float, state: int, in_progress: bool, expected: float) -> None:
    loss = ordinal_loss(
        torch.full((1, 1, 1), score), torch.full((1, 1, 1), state), torch.ones(1, 1, 1), 1.0, in_progress
    )
    assert loss.item() == pytest.approx(expected, abs=2e-6)


def test_the_loss_of_two_tokens_and_two_steps_is_their_weighted_mean() -> None:
    scores = torch.tensor([[[2.0, 0.0], [-2.0, 5.0]]])
    state = torch.tensor([[[COMPLETED, IN_PROGRESS], [NOT_STARTED, NOT_STARTED]]])
    weight = torch.tensor([[[1.0, 2.0], [1.0, 0.0]]])  # the last one does not count at all
    expected = ((0.048587 + 0.313262) + 2 * (0.313262 + 0.313262) + (0.313262 + 0.048587)) / 4
    assert ordinal_loss(scores, state, weight, 1.0).item() == pytest.approx(expected, abs=2e-6)


@given(st.data())
def test_the_loss_by_hand(data: st.DataObject) -> None:
    shape = data.draw(st.tuples(*[st.integers(1, 3)] * 3))
    size = math.prod(shape)

    def draw(of: st.SearchStrategy[Any]) -> Any:
        return np.array(data.draw(st.lists(of, min_size=size, max_size=size))).reshape(shape)

    scores = draw(st.floats(-30, 30, width=32))
    state = draw(st.integers(0, 2))
    weight = draw(st.sampled_from([0.0, 0.1, 1.0, 3.0]))
    b = data.draw(st.floats(0.125, 5))
    in_progress = data.draw(st.booleans())
    loss = ordinal_loss(
        torch.tensor(scores, dtype=torch.float32),
        torch.tensor(state),
        torch.tensor(weight, dtype=torch.float32),
        b,
        in_progress,
    )
    assert loss.item() == pytest.approx(loss_by_hand(scores, state, weight, b, in_progress), rel=1e-4, abs=1e-5)


def test_nothing_that_counts_is_no_loss() -> None:
    zeros = torch.zeros(1, 2, 3)
    assert ordinal_loss(zeros, zeros, zeros, 1.0).item() == 0.0


def test_the_loss_is_least_where_the_states_are_read_back() -> None:
    grid = torch.linspace(-6, 6, 1201)
    for state, side in ((NOT_STARTED, -6.0), (IN_PROGRESS, 0.0), (COMPLETED, 6.0)):
        losses = torch.stack([ordinal_loss(s[None, None, None], torch.tensor([[[state]]]), torch.ones(1, 1, 1), 1.0) for s in grid])  # noqa: E501 # fmt: skip
        best = grid[losses.argmin()]
        assert best.item() == pytest.approx(side, abs=0.011)
        assert int(best >= -1.0) + int(best >= 1.0) == state


# --- the fusion (Eq. 1 and 2) against PyTorch's own attention ---


def reference(fusion: Fusion, frames: Tensor, sentences: Tensor, there: Tensor, heads: int) -> Tensor:
    """Eq. 1 and 2 by `nn.MultiheadAttention` with the same weights: a frame a query, its window the keys."""
    width, text_width = frames.shape[-1], sentences.shape[-1]
    attention = nn.MultiheadAttention(width, heads, kdim=text_width, vdim=text_width, batch_first=True).eval()
    weights = {**fusion.state_dict()}
    with torch.no_grad():
        if attention.in_proj_weight is None:
            for name in "qkv":
                getattr(attention, f"{name}_proj_weight").copy_(weights[f"{_LONG[name]}.weight"])
        else:
            attention.in_proj_weight.copy_(torch.cat([weights[f"{_LONG[name]}.weight"] for name in "qkv"]))
        attention.in_proj_bias.copy_(torch.cat([weights[f"{_LONG[name]}.bias"] for name in "qkv"]))
        attention.out_proj.weight.copy_(weights["out.weight"])
        attention.out_proj.bias.copy_(weights["out.bias"])
    flat = there.flatten(0, 1)
    attended, _ = attention(
        frames.flatten(0, 1)[:, None], sentences.flatten(0, 1), sentences.flatten(0, 1), key_padding_mask=~flat
    )
    attended = torch.where(flat.any(-1)[:, None], attended[:, 0], 0.0).unflatten(0, there.shape[:2])
    if fusion.skip:
        attended = attended + frames
    first, second = (layer for layer in fusion.feed_forward if isinstance(layer, nn.Linear))
    hidden = torch.relu(attended @ first.weight.T + first.bias) @ second.weight.T + second.bias + attended
    mean = hidden.mean(-1, keepdim=True)
    spread = ((hidden - mean) ** 2).mean(-1, keepdim=True)
    return (hidden - mean) / torch.sqrt(spread + 1e-5) * fusion.norm.weight + fusion.norm.bias


_LONG = {"q": "query", "k": "key", "v": "value"}


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize(("width", "text_width", "heads", "window"), [(16, 16, 4, 3), (32, 12, 16, 3), (24, 8, 2, 1), (16, 16, 1, 5)])  # noqa: E501 # fmt: skip
def test_fusion_is_multi_head_attention_and_feed_forward(
    width: int, text_width: int, heads: int, window: int, skip: bool
) -> None:
    torch.manual_seed(0)
    fusion = Fusion(width, text_width, heads, 0.1, skip).eval()
    nn.init.normal_(fusion.norm.weight)
    frames, sentences = torch.randn(2, 7, width), torch.randn(2, 7, window, text_width)
    there = torch.rand(2, 7, window) < 0.7
    there[0, 0], there[0, 1] = False, True
    with torch.no_grad():
        torch.testing.assert_close(
            fused(fusion, frames, sentences, there), reference(fusion, frames, sentences, there, heads),
            atol=1e-5, rtol=1e-5,
        )  # fmt: skip


def fused(fusion: Fusion, frames: Tensor, sentences: Tensor, there: Tensor) -> Tensor:
    """What fusion makes of sentences that no two tokens share: (B, L, W, width), and (B, L, W) which are there."""
    places = torch.arange(there.numel()).reshape(there.shape)
    found: Tensor = fusion(frames, sentences.flatten(0, 2), torch.where(there, places, -1))
    return found


def test_a_shared_sentence_is_mapped_once_and_learnt_from_by_all() -> None:
    torch.manual_seed(2)
    linear, vectors = nn.Linear(6, 4), torch.randn(5, 6)
    places = torch.tensor([[0, 3, 3], [-1, 4, 3]])
    rows: list[int] = []

    def counted(distinct: Tensor) -> Tensor:
        rows.append(len(distinct))
        found: Tensor = linear(distinct)
        return found

    found = transform_rows(counted, vectors, places)
    weights = torch.randn_like(found)
    one = torch.autograd.grad((found * weights).sum(), list(linear.parameters()))
    each = linear(vectors[places.clamp(min=0)])
    other = torch.autograd.grad((each * weights).sum(), list(linear.parameters()))
    assert rows == [3]
    torch.testing.assert_close(found, each)
    torch.testing.assert_close(one, other)


def test_the_paper_has_16_heads_and_no_skip() -> None:
    fusion = StateModel(4, 32, 32, StateModelOptions(encoder="t5-tiny")).fusion
    assert fusion is not None
    assert (fusion.heads, fusion.skip) == (16, False)


def test_without_skip_only_sentences_speak() -> None:
    """Where all sentences of a window are equal, attention cannot choose, and nothing of the frame is left."""
    torch.manual_seed(1)
    sentences, there = torch.randn(1, 6, 1, 16).expand(1, 6, 3, 16), torch.ones(1, 6, 3, dtype=torch.bool)
    frames = torch.randn(2, 1, 6, 16)
    for skip in (False, True):
        fusion = Fusion(16, 16, 4, 0.1, skip).eval()
        with torch.no_grad():
            one, other = (fused(fusion, f, sentences, there) for f in frames)
        assert torch.allclose(one, other, atol=1e-6) is not skip


def test_the_frame_chooses_among_sentences() -> None:
    torch.manual_seed(1)
    fusion = Fusion(16, 16, 4, 0.1, False).eval()
    sentences, there = torch.randn(1, 6, 3, 16), torch.ones(1, 6, 3, dtype=torch.bool)
    with torch.no_grad():
        one, other = (fused(fusion, torch.randn(1, 6, 16), sentences, there) for _ in range(2))
    assert not torch.allclose(one, other, atol=1e-4)


@pytest.mark.parametrize("skip", [False, True])
def test_no_sentence_at_all_gives_a_defined_output(skip: bool) -> None:
    torch.manual_seed(1)
    fusion = Fusion(16, 16, 4, 0.1, skip).eval()
    frames, there = torch.randn(2, 1, 5, 16, requires_grad=True), torch.zeros(1, 5, 3, dtype=torch.bool)
    one, other = (fused(fusion, f, torch.randn(1, 5, 3, 16) * 1e4, there) for f in frames)
    assert torch.isfinite(one).all()
    (one.sum() + other.sum()).backward()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in fusion.parameters())
    with torch.no_grad():
        plain = fusion.norm(fusion.feed_forward(frames[0] * skip) + frames[0] * skip)
    torch.testing.assert_close(one.detach(), plain)
    assert torch.equal(one, other) is not skip


def test_absent_sentences_do_not_matter() -> None:
    torch.manual_seed(1)
    fusion = Fusion(16, 16, 4, 0.1, False).eval()
    frames, sentences = torch.randn(1, 4, 16), torch.randn(4, 16)
    places = torch.tensor([[[1, 2, -1], [-1, 3, 1], [-1, 2, -1], [-1, -1, -1]]])
    noise = torch.cat([1e6 * torch.randn(1, 16), sentences[1:]])  # in the place that -1 is read as
    with torch.no_grad():
        assert torch.equal(fusion(frames, sentences, places), fusion(frames, noise, places))


def test_heads_that_do_not_divide_the_width() -> None:
    fusion = Fusion(10, 7, 16, 0.0, False).eval()
    assert fusion(torch.randn(1, 2, 10), torch.randn(5, 7), torch.ones(1, 2, 3, dtype=torch.long)).shape == (1, 2, 10)


# --- delimiters ---

HELD = tiny_dataset(5)
IN_CONTEXT = [name for name in VARIANTS if "evidence" not in name and "co-occurrence" not in name]


def scores_of(model: StateModel, held: StateDataset, made: Any) -> Tensor:
    with torch.no_grad():
        return model(made, held.frames, held.sentences).scores  # type: ignore[no-any-return]


def dataset_for(name: str) -> StateDataset:
    return tiny_dataset(5, text_only=True) if "text" in name else HELD


@pytest.mark.parametrize("name", IN_CONTEXT)
def test_what_is_seen_at_a_border_does_not_matter(name: str) -> None:
    model, held = model_for(dataset_for(name), VARIANTS[name]), dataset_for(name)
    _, made = batch_of(held, [0, 1])
    at_border = (made.kind == START) | (made.kind == END)
    elsewhere = made.frame.max() + 5

    def another_frame(parts: dict[str, Tensor]) -> None:
        parts["frame"][at_border] = elsewhere

    other = changed(made, another_frame)
    frames = torch.cat([held.frames, torch.zeros(9, held.frames.shape[1])])
    frames[elsewhere] = 1e3
    spoken = frames if "text" in name else held.sentences
    with torch.no_grad():
        assert torch.equal(model(made, frames, spoken).scores, model(other, frames, spoken).scores)
        # and at frames it does
        moved = changed(made, lambda parts: parts["frame"].masked_fill_(~at_border, elsewhere))
        assert not torch.allclose(model(made, frames, spoken).scores, model(moved, frames, spoken).scores)


@pytest.mark.parametrize("name", [name for name in IN_CONTEXT if "direct" not in name])
def test_what_is_said_at_a_border_does_not_matter(name: str) -> None:
    held = dataset_for(name)
    model = model_for(held, VARIANTS[name])
    _, made = batch_of(held, [0, 1])
    at_border = (made.kind == START) | (made.kind == END)
    other = changed(made, lambda parts: parts["sentence"].masked_fill_(at_border[..., None], 0))
    assert torch.equal(scores_of(model, held, made), scores_of(model, held, other))


@pytest.mark.parametrize("name", [name for name in IN_CONTEXT if "direct" not in name])
def test_the_transformer_sees_the_learned_delimiters(name: str) -> None:
    held = dataset_for(name)
    model = model_for(held, VARIANTS[name])
    _, made = batch_of(held, [0, 1, 2])
    caught = []
    assert model.transformer is not None
    handle = model.transformer.register_forward_pre_hook(lambda _, inputs: caught.append(inputs[0]))
    scores_of(model, held, made)
    handle.remove()
    (hidden,) = caught
    assert hidden.shape == (*made.kind.shape, model.transformer.width)
    assert not torch.equal(model.borders.weight[0], model.borders.weight[1])
    with torch.no_grad():
        for kind, row in ((START, 0), (END, 1)):
            here = made.kind == kind
            expected = model.borders.weight[row].expand(int(here.sum()), -1)
            torch.testing.assert_close(hidden[here], model.input_projection(expected))
        frames = hidden[made.kind == FRAME]
        assert not torch.isclose(frames[:, None], model.input_projection(model.borders.weight)[None]).all(-1).any()


@pytest.mark.parametrize("name", IN_CONTEXT)
def test_start_and_end_are_told_apart(name: str) -> None:
    held = dataset_for(name)
    model = model_for(held, VARIANTS[name])
    _, made = batch_of(held, [0])

    def swap(parts: dict[str, Tensor]) -> None:
        kind = parts["kind"]
        parts["kind"] = torch.where(kind == START, END, torch.where(kind == END, START, kind))

    other = changed(made, swap)
    at = made.kind != FRAME
    assert not torch.allclose(scores_of(model, held, made)[at], scores_of(model, held, other)[at], atol=1e-4)


@pytest.mark.parametrize("name", IN_CONTEXT)
def test_borders_at_different_moments_are_told_apart(name: str) -> None:
    """The state of a step changes through a video, and so must what is read at its borders."""
    held = dataset_for(name)
    model = model_for(held, VARIANTS[name])
    _, made = batch_of(held, [0], seed=None)
    scores = scores_of(model, held, made)[0]
    for kind in (START, END):
        each = scores[made.kind[0] == kind]
        assert (each[1:] - each[0]).abs().amax(-1).min() > 1e-4


# --- masks, proven by changing what must not matter ---


def test_whatever_stands_in_padding(subtests: pytest.Subtests) -> None:
    for name, chosen in VARIANTS.items():
        with subtests.test(name):
            held = dataset_for(name)
            model = model_for(held, chosen)
            _, made = batch_of(held, range(5), SAMPLED_FROM_THE_VIDEO if "evidence" in name else None, row=120)
            padding = made.video == 0
            assert padding.any()
            rng = torch.Generator().manual_seed(0)

            def garbage(
                parts: dict[str, Tensor], padding: Tensor = padding, held: StateDataset = held, rng: Any = rng
            ) -> None:
                for part, below in (
                    ("frame", len(held.frames)), ("sentence", len(held.sentences)), ("kind", 4),
                    ("inside", 2), ("state", 3), ("position", int(parts["position"].max()) + 1),
                ):  # fmt: skip
                    drawn = torch.randint(below, parts[part].shape, generator=rng).to(parts[part].dtype)
                    parts[part][padding] = drawn[padding]

            other = changed(made, garbage)
            one, two = scores_of(model, held, made), scores_of(model, held, other)
            torch.testing.assert_close(one[~padding], two[~padding], atol=1e-6, rtol=0)
            losses = [
                ordinal_loss(model(one, held.frames, held.sentences).scores, made.state, made.weight, 1.0).item()
                for one in (made, other)
            ]
            assert losses[0] == pytest.approx(losses[1], abs=1e-6)


@pytest.mark.parametrize("name", VARIANTS)
def test_a_video_alone_in_company_and_packed(name: str) -> None:
    held = dataset_for(name)
    model = model_for(held, VARIANTS[name])
    sampling = SAMPLED_FROM_THE_VIDEO if "evidence" in name else None
    _, together = batch_of(held, range(5), sampling)
    _, packed = batch_of(held, range(5), sampling, row=150)
    assert len(packed.video) < 5
    in_company = rows_of(together, scores_of(model, held, together), 5)
    in_a_row = rows_of(packed, scores_of(model, held, packed), 5)
    for number in range(5):
        _, single = batch_of(held, [number], sampling)
        alone = scores_of(model, held, single)[0]
        assert alone.abs().max() > 1e-3
        torch.testing.assert_close(in_company[number], alone, atol=2e-6, rtol=0)
        torch.testing.assert_close(in_a_row[number], alone, atol=2e-6, rtol=0)


@pytest.mark.parametrize("row", [0, 150])
@pytest.mark.parametrize("name", VARIANTS)
def test_other_videos_do_not_matter(name: str, row: int) -> None:
    """The features of all videos but one are replaced by large noise."""
    held = dataset_for(name)
    model = model_for(held, VARIANTS[name])
    sampling = SAMPLED_FROM_THE_VIDEO if "evidence" in name else None
    _, made = batch_of(held, range(5), sampling, row=row)
    before = rows_of(made, scores_of(model, held, made), 5)
    for number in (0, 2, 4):
        frames, sentences = 50 * torch.randn_like(held.frames), 50 * torch.randn_like(held.sentences)
        video = held.videos[number]
        for changing, kept, first, times in (
            (frames, held.frames, video.first_frame, video.frame_times),
            (sentences, held.sentences, video.first_sentence, video.sentence_times),
        ):
            own = slice(first, first + len(times))
            changing[own] = kept[own]
        after = rows_of(made, scores_of(model, replace(held, frames=frames, sentences=sentences), made), 5)
        torch.testing.assert_close(after[number], before[number], atol=1e-6, rtol=0)
        if name != "co-occurrence":  # which look at labels only
            assert not torch.allclose(after[1], before[1], atol=1e-3)  # the noise is heard where it may be


def long_and_short(tokens: int) -> StateDataset:
    """A video of more than `tokens` tokens beside a short one."""
    steps = [f"s{number:03}" for number in range(40)]
    long = Video("long", [Segment(step, 12.0 * n, 12.0 * n + 10) for n, step in enumerate(steps)])
    short = Video("short", [Segment("s000", 1, 5), Segment("s001", 6, 9)])
    task = Task("t", steps, [long, short])
    held = build_dataset(task, tiny_features(task).get)
    assert len(held.tokens(0, SamplingOptions(), [0]).kind) > tokens
    return held


@pytest.mark.parametrize("name", ["t5", "vit", "visualbert"])
def test_a_long_video_does_not_change_a_short_one_beside_it(name: str) -> None:
    held = long_and_short(196)
    model = model_for(held, VARIANTS[name])
    _, both = batch_of(held, [0, 1])
    _, alone = batch_of(held, [1])
    torch.testing.assert_close(
        rows_of(both, scores_of(model, held, both), 2)[1], scores_of(model, held, alone)[0], atol=2e-6, rtol=0
    )


def test_the_true_states_are_never_seen(subtests: pytest.Subtests) -> None:
    for name, chosen in VARIANTS.items():
        with subtests.test(name):
            held = dataset_for(name)
            model = model_for(held, chosen)
            _, made = batch_of(held, range(5))
            blind = changed(made, lambda parts: parts.update(state=2 - parts["state"], weight=1 - parts["weight"]))
            assert torch.equal(scores_of(model, held, made), scores_of(model, held, blind))


# --- gradients ---


def gradients(model: StateModel, held: StateDataset, made: Any, chosen: Any) -> dict[str, Tensor | None]:
    model.zero_grad(set_to_none=True)
    training_loss(model(made, held.frames, held.sentences), made, chosen).backward()  # type: ignore[no-untyped-call]
    return {name: parameter.grad for name, parameter in model.named_parameters()}


IDLE = ("embed_tokens.weight", "key.bias", "k_proj.bias")
"""Vectors come in, so there are no words to embed; and the bias of keys moves all matches of a query alike."""


@pytest.mark.parametrize("name", VARIANTS)
def test_every_part_learns(name: str) -> None:
    held = dataset_for(name)
    model = model_for(held, VARIANTS[name])
    found = gradients(model, held, batch_of(held, range(5))[1], VARIANTS[name])
    for one in found.values():
        assert one is None or bool(torch.isfinite(one).all())
    still = {n for n, g in found.items() if g is None or g.abs().max() < 1e-8}
    assert {n for n in still if not n.endswith(IDLE) and not (name == "visualbert" and ".visual_" in n)} == set()


@pytest.mark.parametrize("name", ["t5", "vit", "visualbert", "visualbert, direct"])
def test_steps_that_do_not_occur_get_no_gradient(name: str) -> None:
    chosen = VARIANTS[name]
    model = model_for(HELD, chosen)
    number = next(n for n, one in enumerate(HELD.videos) if len(one.steps) == 3)
    (absent,) = set(range(4)) - set(HELD.videos[number].steps.tolist())
    _, made = batch_of(HELD, [number])
    found = gradients(model, HELD, made, chosen)
    assert found["head.weight"] is not None
    assert found["head.bias"] is not None
    for step in range(4):
        assert bool(found["head.weight"][step].any()) is (step != absent)
        assert bool(found["head.bias"][step] != 0) is (step != absent)


@pytest.mark.parametrize("name", VARIANTS)
def test_only_scores_at_borders_of_steps_that_occur_are_trained(name: str) -> None:
    held = dataset_for(name)
    model = model_for(held, VARIANTS[name])
    tokens, made = batch_of(held, range(5))
    prediction = model(made, held.frames, held.sentences)
    scores = prediction.scores.detach().requires_grad_()
    ordinal_loss(scores, made.state, made.weight, 1.0).backward()  # type: ignore[no-untyped-call]
    assert scores.grad is not None
    for row, one in enumerate(tokens):
        for token in range(made.kind.shape[1]):
            for step in range(4):
                counts = token < len(one.kind) and one.kind[token] != FRAME and one.labelled[step]
                assert bool(scores.grad[row, token, step] != 0) == counts


def test_without_skip_frames_get_their_gradient_through_the_attention_only() -> None:
    """With one sentence per window the attention has nothing to choose: no gradient reaches the frames."""
    held = tiny_dataset(3)
    for skip, window in product((False, True), (1, 3)):
        chosen = options(skip=skip)
        model = model_for(held, chosen)
        _, made = batch_of(held, range(3), SamplingOptions(sentences=window))
        frames = held.frames.clone().requires_grad_()
        training_loss(model(made, frames, held.sentences), made, chosen).backward()  # type: ignore[no-untyped-call]
        assert frames.grad is not None
        assert bool(frames.grad.abs().max() > 1e-7) is (skip or window > 1)


# --- the evidence model ---


def test_the_evidence_model_by_brute_force() -> None:
    torch.manual_seed(0)
    held = replace(HELD, training_videos=frozenset({"v1", "v2", "v4"}))
    evidence = EvidenceModel(4, WIDTH, 0.0).eval()
    nn.init.normal_(evidence.scale)
    _, made = batch_of(held, range(5), SAMPLED_FROM_THE_VIDEO, row=140)
    logits = 3 * torch.randn(*made.kind.shape, FOLDS, 5)
    with torch.no_grad():
        now, so_far = (rows_of(made, one, 5) for one in evidence(logits, made))
    scale = math.log1p(math.exp(evidence.scale.item()))
    for member in range(5):
        here = made.video == member + 1
        own, inside, fold = logits[here], made.inside[here], held.fold(member)
        folds = range(FOLDS) if fold < 0 else [fold]  # its own, or all where none has learnt from the video
        for step in range(4):
            odds = [
                -8.0
                if inside[t].any() and not inside[t, step]
                else sum(float(own[t, fold_number, step] - own[t, fold_number, -1]) for fold_number in folds)
                / len(folds)
                for t in range(len(own))
            ]
            best = -math.inf
            for t in range(len(own)):
                smooth = sum(odds[t + d] if 0 <= t + d < len(own) else -8.0 for d in (-1, 0, 1)) / 3
                best = max(best, smooth)
                assert float(now[member][t, step]) == pytest.approx(scale * smooth, abs=1e-4)
                assert float(so_far[member][t, step]) == pytest.approx(scale * best, abs=1e-4)


def test_folds() -> None:
    held = replace(HELD, training_videos=frozenset({"v1", "v2"}))
    assert [held.fold(number) >= 0 for number in range(5)] == [False, True, True, False, False]
    many = replace(HELD, videos=tuple(replace(HELD.videos[0], video=f"w{n}") for n in range(200)), training_videos=frozenset(f"w{n}" for n in range(200)))  # noqa: E501 # fmt: skip
    folds = [many.fold(number) for number in range(200)]
    assert set(folds) == set(range(FOLDS))
    assert min(folds.count(fold) for fold in range(FOLDS)) > 25


def test_the_loss_of_an_evidence_model_is_the_ordinal_loss_and_what_the_frames_show() -> None:
    chosen = options(evidence=True, context=False, evidence_dropout=0.0, evidence_l2=0.1)
    held = replace(HELD, training_videos=frozenset({"v0", "v1", "v2", "v3"}))
    model = model_for(held, chosen)
    _, made = batch_of(held, range(5), SAMPLED_FROM_THE_VIDEO)
    with torch.no_grad():
        prediction = model(made, held.frames, held.sentences)
    expected = ordinal_loss(prediction.scores, made.state, made.weight, 1.0).item()
    assert len(prediction.step_logits) == 2  # what is seen, and what is heard
    for recognised, fold_number in product(prediction.step_logits, range(FOLDS)):
        total, count = 0.0, 0
        for row, token in product(*map(range, made.kind.shape)):
            if made.kind[row, token] != FRAME or made.fold[row, token] == fold_number:
                continue
            shown = torch.nonzero(made.state[row, token] == IN_PROGRESS).flatten().tolist()
            if len(shown) <= 1:
                logits = recognised[row, token, fold_number].double()
                total += float(logits.exp().sum().log() - logits[shown[0] if shown else 4])
                count += 1
        expected += total / count
    for evidence in model.evidence_models.values():
        expected += 0.1 * float((evidence.linear.weight.detach() ** 2).sum())  # type: ignore[operator, union-attr]
    assert (training_loss(prediction, made, chosen) + model.penalty()).item() == pytest.approx(expected, rel=1e-5)


def test_what_an_evidence_model_recognises_by_hand() -> None:
    """Linear of the mean of its places, of variance 1 each, less the mean over the tokens of its video."""
    model = model_for(HELD, options(evidence=True, context=False))
    _, made = batch_of(HELD, range(5), SAMPLED_FROM_THE_VIDEO, row=140)
    with torch.no_grad():
        found = model(made, HELD.frames, HELD.sentences).step_logits
    for what, one in zip(("frames", "sentences"), found, strict=True):
        linear = model.evidence_models[what].linear  # type: ignore[union-attr]
        weight, bias = linear.weight.detach().numpy(), linear.bias.detach().numpy()  # type: ignore[union-attr, operator]
        for member in range(5):
            here = made.video == member + 1
            seen = []
            for frame, window in zip(made.frame[here].tolist(), made.sentence[here].tolist(), strict=True):
                vectors = [HELD.frames[frame]] if what == "frames" else [HELD.sentences[w] for w in window if w >= 0]
                each = np.array([(v.numpy() - v.numpy().mean()) / np.sqrt(v.numpy().var() + 1e-5) for v in vectors])
                seen.append(each.mean(0) if len(each) else np.zeros(WIDTH))
            expected = (np.array(seen) - np.mean(seen, axis=0)) @ weight.T + bias
            np.testing.assert_allclose(one[here].flatten(1).numpy(), expected, atol=1e-4)


def test_a_fold_does_not_learn_from_its_own_fold() -> None:
    chosen = options(evidence=True, context=False, evidence_l2=0.0)
    held = replace(HELD, training_videos=frozenset({"v0"}))
    model = model_for(held, chosen)
    found = gradients(model, held, batch_of(held, [0], SAMPLED_FROM_THE_VIDEO)[1], chosen)
    for what in ("frames", "sentences"):
        gradient = found[f"evidence_models.{what}.linear.weight"]
        assert gradient is not None
        each = gradient.unflatten(0, (FOLDS, -1)).flatten(1).abs().amax(1)
        assert [bool(one > 0) for one in each] == [fold_number != held.fold(0) for fold_number in range(FOLDS)]


def overlapping() -> StateDataset:
    task = Task("t", ["a", "b"], [Video("v", [Segment("a", 0, 10), Segment("b", 0, 10)])])
    return build_dataset(task, tiny_features(task).get)


def test_an_evidence_model_of_nothing_but_overlaps_has_a_loss() -> None:
    held, chosen = overlapping(), options(evidence=True, context=False)
    model = model_for(held, chosen)
    _, made = batch_of(held, [0])
    assert math.isfinite(training_loss(model(made, held.frames, held.sentences), made, chosen).item())


# --- what does not fit ---


def test_no_sentences_is_said_in_one_line() -> None:
    task = tiny_task(2)
    features = {
        name: VideoFeatures(one.frame_times, one.frames, np.zeros((0, 2)), np.zeros((0, 0)))
        for name, one in tiny_features(task).items()
    }
    held = build_dataset(task, features.get)
    _, made = batch_of(held, [0, 1])
    silent = model_for(held, options(inputs="vision"))
    assert torch.isfinite(scores_of(silent, held, made)).all()
    listening = StateModel(4, WIDTH, WIDTH, options())  # it has learnt from other videos
    with pytest.raises(InputError, match="no sentences"):
        listening(made, held.frames, held.sentences)


@pytest.mark.parametrize(
    "chosen", [options(), options(inputs="text"), options(evidence=True, context=False), options(skip=True)]
)
def test_no_sentences_to_learn_from_is_said_without_a_warning_of_pytorch(chosen: StateModelOptions) -> None:
    with pytest.raises(InputError, match="no sentences"):
        StateModel(4, WIDTH, 0, chosen)


def test_direct_needs_visualbert() -> None:
    with pytest.raises(InputError, match="VisualBERT"):
        StateModel(4, 16, 16, options(direct=True))


@settings(max_examples=10)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 9))
def test_any_width_and_number_of_steps(frame_width: int, text_width: int, steps: int) -> None:
    task = Task("t", [f"s{n}" for n in range(steps)], [Video("v", [Segment("s0", 1, 5)])])
    held = build_dataset(task, tiny_features(task, width=frame_width, text_width=text_width).get)
    _, made = batch_of(held, [0])
    for chosen in (options(), options(inputs="vision"), options(inputs="text"), options(evidence=True)):
        model = StateModel(steps, frame_width, text_width, chosen).eval()
        here = build_dataset(task, tiny_features(task, width=frame_width, text_width=text_width).get, text_only=True) if chosen.inputs == "text" else held  # noqa: E501 # fmt: skip
        _, made = batch_of(here, [0])
        assert scores_of(model, here, made).shape == (*made.kind.shape, steps)

"""What goes beyond the paper: co-occurrence is a logistic regression, and evidence is of videos not learned from."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from msg2.states.configuration import SamplingOptions
from msg2.states.dataset import COMPLETED, EXTRA_FEATURES, FOLDS, FRAME, Batch, StateDataset
from msg2.states.loss_and_optimizer import ordinal_loss, training_loss
from msg2.states.network import CooccurrenceModel, EvidenceModel, StateModel, StateModelOutput
from tests.states.conftest import (
    SAMPLED_FROM_THE_VIDEO,
    VARIANTS,
    WIDTH,
    batch_of,
    model_for,
    options,
    rows_of,
    tiny_dataset,
)

HELD = replace(tiny_dataset(5), training_videos=frozenset({"v0", "v1", "v2", "v3"}))
ALWAYS = SamplingOptions(frames="video", most_frames=30, always=True)


# --- the co-occurrence model ---


def random_cooccurrence(steps: int) -> CooccurrenceModel:
    torch.manual_seed(0)
    cooccurrence = CooccurrenceModel(steps)
    for parameter in cooccurrence.parameters():
        torch.nn.init.normal_(parameter)
    return cooccurrence


def test_a_step_s_own_label_says_nothing_about_it_and_everything_else_does() -> None:
    cooccurrence, told = random_cooccurrence(3), torch.randn(1, 1, 6 + EXTRA_FEATURES)
    before = torch.stack(cooccurrence(told))[:, 0, 0]
    for column in range(told.shape[-1]):
        other = told.clone()
        other[..., column] += 1
        moved = torch.stack(cooccurrence(other))[:, 0, 0] != before  # (when and whether, steps)
        own = column % 3 if column < 6 else None
        assert moved.tolist() == [[step != own for step in range(3)]] * 2


def test_cooccurrence_models_are_linear() -> None:
    cooccurrence, told = random_cooccurrence(4), torch.randn(2, 7, 8 + EXTRA_FEATURES)
    for found, linear in zip(cooccurrence(told), (cooccurrence.completion, cooccurrence.presence), strict=True):
        weight, bias = linear.weight.detach().numpy(), linear.bias.detach().numpy()
        for step in range(4):
            kept = [column for column in range(8 + EXTRA_FEATURES) if column not in (step, 4 + step)]
            expected = told.numpy()[..., kept] @ weight[step, kept] + bias[step]
            np.testing.assert_allclose(found[..., step].detach().numpy(), expected, atol=1e-5)


def test_cooccurrence_models_learn_what_a_logistic_regression_of_scikit_learn_does() -> None:
    """Of presence, at the steps that are asked about, on all that is told but the step's own label."""
    linear_model = pytest.importorskip("sklearn.linear_model")
    held, chosen = tiny_dataset(60), options(cooccurrence=True, context=False, cooccurrence_l2=1e-3)
    _, made = batch_of(held, range(60), ALWAYS)
    model = StateModel(4, WIDTH, WIDTH, chosen).double()
    made = replace(made, label_features=made.label_features.double())
    optimizer = torch.optim.LBFGS(model.parameters(), max_iter=500, tolerance_grad=1e-9, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = training_loss(model(made, held.frames, held.sentences), made, chosen) + model.penalty()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    assert model.cooccurrence is not None
    strength = 1 / (2 * 10 * chosen.cooccurrence_l2 * int(made.asked.sum()))
    for step in range(4):
        kept = [column for column in range(8 + EXTRA_FEATURES) if column not in (step, 4 + step)]
        here = made.asked[..., step]
        told, there = made.label_features[here][:, kept].numpy(), made.present[here][:, step].numpy()
        assert 0 < there.mean() < 1
        theirs = linear_model.LogisticRegression(C=strength, tol=1e-10, max_iter=10_000).fit(told, there)
        ours = model.cooccurrence.presence
        np.testing.assert_allclose(ours.weight[step, kept].detach().numpy(), theirs.coef_[0], atol=2e-3)
        assert ours.bias[step].item() == pytest.approx(theirs.intercept_[0], abs=5e-3)


def test_the_loss_of_presence_is_the_mean_over_the_steps_that_are_asked_about() -> None:
    chosen = options(cooccurrence=True, context=False)
    model = model_for(HELD, chosen)
    tokens, made = batch_of(HELD, range(5), ALWAYS, row=140)
    said = model(made, HELD.frames, HELD.sentences)
    presence = said.presence.detach().requires_grad_()
    loss = training_loss(StateModelOutput(said.scores.detach(), None, presence), made, chosen)
    losses = []
    for one, odds in zip(tokens, rows_of(made, presence.detach(), 5), strict=True):
        for step in range(4):
            if step not in one.step:  # it has no border among the tokens
                sign = 1 if one.labelled[step] else -1
                losses.append(np.logaddexp(0, -sign * float(odds[-1, step])))
    assert {bool(one.dropped.any()) for one in tokens} == {True}
    expected = ordinal_loss(said.scores, made.state, made.weight, 1.0).item() + np.mean(losses)
    assert loss.item() == pytest.approx(expected, abs=1e-5)
    loss.backward()  # type: ignore[no-untyped-call]
    assert presence.grad is not None
    assert torch.equal(presence.grad != 0, made.asked)


def test_no_question_about_presence_is_no_loss() -> None:
    """Where a video's labels hold every step and none is dropped."""
    chosen = options(cooccurrence=True, context=False)
    number = next(n for n, one in enumerate(HELD.videos) if len(one.steps) == 4)
    _, made = batch_of(HELD, [number], SamplingOptions(dropped=0.0))
    assert not made.asked.any()
    said = model_for(HELD, chosen)(made, HELD.frames, HELD.sentences)
    plain = ordinal_loss(said.scores, made.state, made.weight, 1.0)
    assert training_loss(said, made, chosen).item() == pytest.approx(plain.item())


@pytest.mark.parametrize("name", ["co-occurrence", "evidence, co-occurrence"])
def test_presence_of_a_video_alone_and_packed(name: str) -> None:
    model = model_for(HELD, VARIANTS[name])
    _, packed = batch_of(HELD, range(5), ALWAYS, row=140)
    with torch.no_grad():
        together = rows_of(packed, model(packed, HELD.frames, HELD.sentences).presence, 5)
        for number in range(5):
            _, single = batch_of(HELD, [number], ALWAYS)
            alone = model(single, HELD.frames, HELD.sentences).presence[0]
            torch.testing.assert_close(together[number], alone, atol=2e-5, rtol=0)


@pytest.mark.parametrize("name", ["co-occurrence", "evidence, co-occurrence", "evidence, co-occurrence, context"])
def test_what_was_dropped_is_not_told(name: str) -> None:
    """The true states of dropped steps may be anything: neither scores nor presence change."""
    model = model_for(HELD, VARIANTS[name])
    tokens, made = batch_of(HELD, range(5), ALWAYS)
    blind = replace(made, state=torch.zeros_like(made.state), present=~made.present, asked=~made.asked)
    with torch.no_grad():
        one, other = (model(each, HELD.frames, HELD.sentences) for each in (made, blind))
    assert torch.equal(one.scores, other.scores)
    assert torch.equal(one.presence, other.presence)
    for row, each in enumerate(tokens):
        (dropped,) = np.flatnonzero(each.dropped)
        assert (each.state[:, dropped] == COMPLETED).any()  # it did happen
        assert not made.label_features[row, :, [dropped, 4 + dropped]].any()


# --- evidence models ---


def evidence_model_and(held: StateDataset, **given: Any) -> tuple[EvidenceModel, Batch, Tensor]:
    """An evidence model, a batch, and what it recognises there: drawn at random."""
    torch.manual_seed(1)
    _, made = batch_of(held, range(5), SAMPLED_FROM_THE_VIDEO, **given)
    return EvidenceModel(4, WIDTH, 0.0).eval(), made, 3 * torch.randn(*made.kind.shape, FOLDS, 5)


def both(evidence: EvidenceModel, recognised: Tensor, made: Batch) -> Tensor:
    """What is seen now and so far, (2, B, L, N)."""
    with torch.no_grad():
        return torch.stack(evidence(recognised, made))


@pytest.mark.parametrize("fold_number", range(FOLDS))
def test_a_learnt_video_is_scored_by_its_fold_alone(fold_number: int) -> None:
    evidence, made, recognised = evidence_model_and(HELD, row=140)
    other = recognised.clone()
    other[..., fold_number, :] = 5 * torch.randn_like(other[..., fold_number, :])
    moved = (both(evidence, recognised, made) != both(evidence, other, made)).any(-1).any(0)
    for number in range(5):
        own = HELD.fold(number)  # of v4, which nobody has learnt from, every fold_number has a say
        assert bool(moved[made.video == number + 1].any()) is (own in (-1, fold_number))
    assert len({HELD.fold(number) for number in range(5)}) > 2


def test_the_scores_of_the_own_fold_are_not_corrected() -> None:
    """Of every video, the cross-entropy reaches all layers but the one that scores it."""
    chosen = options(evidence=True, context=False)
    model = model_for(HELD, chosen)
    _, made = batch_of(HELD, range(5), SAMPLED_FROM_THE_VIDEO, row=140)
    said = model(made, HELD.frames, HELD.sentences)
    recognised = tuple(one.detach().requires_grad_() for one in said.step_logits)
    training_loss(StateModelOutput(said.scores.detach(), step_logits=recognised), made, chosen).backward()  # type: ignore[no-untyped-call]
    for one in recognised:
        assert one.grad is not None
        corrected = (one.grad != 0).any(-1)  # (B, L, JUDGES)
        for number in range(5):
            here = (made.video == number + 1) & (made.kind == FRAME)
            assert corrected[here].any(0).tolist() == [fold_number != HELD.fold(number) for fold_number in range(FOLDS)]
        assert not corrected[made.kind != FRAME].any()


def test_scores_do_not_teach_an_evidence_model_what_a_step_looks_like() -> None:
    """Through a maximum they would teach it by heart; they teach how much it weighs."""
    model = model_for(HELD, options(evidence=True, cooccurrence=True, context=False))
    _, made = batch_of(HELD, range(5), ALWAYS)
    said = model(made, HELD.frames, HELD.sentences)
    loss = ordinal_loss(said.scores, made.state, made.weight, 1.0)
    asked = F.binary_cross_entropy_with_logits(said.presence[made.asked], made.present[made.asked].float())
    (loss + asked).backward()  # type: ignore[no-untyped-call]
    for what, evidence in model.evidence_models.items():
        assert evidence.linear.weight.grad is None
        assert evidence.linear.bias.grad is None
        assert evidence.scale.grad is not None
        assert model.presence_scale[what].grad is not None
        assert evidence.scale.grad.item() != 0
        assert model.presence_scale[what].grad.item() != 0


def test_what_was_seen_so_far_never_shrinks_and_is_never_less_than_now() -> None:
    evidence, made, recognised = evidence_model_and(HELD, row=140)
    now, so_far = both(evidence, recognised, made)
    for seen, most in zip(rows_of(made, now, 5), rows_of(made, so_far, 5), strict=True):
        assert (most.diff(dim=0) >= 0).all()
        assert (most >= seen).all()
        torch.testing.assert_close(most[-1], seen.amax(0))
        assert (most[-1] > most[0]).any()


def test_tokens_of_another_label_never_count() -> None:
    evidence, made, recognised = evidence_model_and(HELD)
    others = made.inside.any(-1, keepdim=True) & ~made.inside  # (B, L, N)
    assert others.any()
    loud = recognised.clone()
    loud[..., :-1] = torch.where(others[..., None, :], 1e3, recognised[..., :-1])
    assert torch.equal(both(evidence, recognised, made), both(evidence, loud, made))
    own = recognised.clone()
    own[..., :-1] = torch.where(made.inside[..., None, :], 1e3, recognised[..., :-1])
    assert (both(evidence, own, made)[1] > both(evidence, recognised, made)[1]).any()  # those of its own label do


def test_packed_rows_are_single_rows() -> None:
    model = model_for(HELD, VARIANTS["evidence"])
    _, packed = batch_of(HELD, range(5), SAMPLED_FROM_THE_VIDEO, row=140)
    assert len(packed.video) < 5
    with torch.no_grad():
        together = model(packed, HELD.frames, HELD.sentences)
        for number in range(5):
            _, single = batch_of(HELD, [number], SAMPLED_FROM_THE_VIDEO)
            alone = model(single, HELD.frames, HELD.sentences)
            for one, other in (
                (together.scores, alone.scores),
                (together.evidence, alone.evidence),
                *zip(together.step_logits, alone.step_logits, strict=True),
            ):
                torch.testing.assert_close(one[packed.video == number + 1], other[0], atol=2e-5, rtol=0)


def test_without_an_evidence_model_nothing_is_seen() -> None:
    _, made = batch_of(HELD, [0])
    said = model_for(HELD, VARIANTS["t5"])(made, HELD.frames, HELD.sentences)
    assert (said.evidence, said.presence, said.step_logits) == (None, None, ())

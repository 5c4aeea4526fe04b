"""Networks that foresee steps: what they may know at a moment, what cannot matter, and what they can learn."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from experiments.forecasting.video_transformers.labelled_videos import LabelledVideos, labelled_videos, sentence_vectors
from experiments.forecasting.video_transformers.network_training import predict_probabilities, train_network
from experiments.forecasting.video_transformers.networks import NETWORKS, InputSizes, Network, Vivit
from experiments.forecasting.video_transformers.step_histories import StepHistories, step_histories
from experiments.forecasting.video_transformers.transformer_options import VideoTransformerOptions
from experiments.hidden_steps.narration_models import narration_features
from msg2.errors import InputError
from msg2.formats.feature_store import VideoFeatures
from msg2.task import Segment, Sentence, Task, Video
from msg2.text_encoders import HashedWords

STEPS = ("boil", "cut", "fry", "salt")
WORDS = HashedWords(16)
SMALL = VideoTransformerOptions(width=16, heads=2, layers=1, heard=4)
SEEN = pytest.mark.parametrize("text_only", [True, False])
NAMED = pytest.mark.parametrize("name", NETWORKS)


def long(epochs: int, **changed: object) -> VideoTransformerOptions:
    """Options of a training without dropout that is not stopped early."""
    training = replace(SMALL.training, epochs=epochs, patience=None, learning_rate=3e-3, batch=16)
    return replace(SMALL, dropout=0.0, weight_decay=0.0, training=training, **changed)  # type: ignore[arg-type]


def features(video: Video) -> VideoFeatures:
    """A frame per second whose numbers follow from the video and the second; the sentences as hashed words."""
    times = np.arange(60.0)
    rng = np.random.default_rng(sum(map(ord, video.id)))
    heard = narration_features(video.sentences, WORDS)
    frames = rng.normal(size=(60, 5)).astype(np.float32)
    return VideoFeatures(times, frames, heard.sentence_times, heard.sentences)


def video(name: str, steps: str, said: str = "abcdefgh") -> Video:
    """A step every ten seconds, six seconds long, by its first letter; something is said every seven seconds."""
    names = {step[0]: step for step in STEPS}
    segments = [Segment(names[letter], 10.0 * n + 3, 10.0 * n + 9) for n, letter in enumerate(steps)]
    return Video(name, segments, [Sentence(f"word {one}", 7.0 * n, 7.0 * n + 6) for n, one in enumerate(said)])


TASK = Task("supper", STEPS, [video("v1", "bcfs"), video("v2", "cb", ""), video("v3", "bf"), video("v4", "s")])


def network(name: str, shown: LabelledVideos, options: VideoTransformerOptions = SMALL) -> Network:
    torch.manual_seed(0)
    return NETWORKS[name](InputSizes.of(shown), options).eval()


def joined(one: StepHistories, other: StepHistories) -> StepHistories:
    return StepHistories(*(torch.cat([getattr(one, f.name), getattr(other, f.name)]) for f in fields(one)))


def close(one: Tensor, other: Tensor) -> bool:
    return torch.allclose(one, other, atol=1e-5)  # −∞ is close to itself


# -- what is known at a moment ----------------------------------------------------------------------------------


def test_a_moment_by_hand() -> None:
    """Before `fry` of v1, at 23 s: cut (13 … 19) and boil (3 … 9) are done, three frames of each."""
    shown = labelled_videos(TASK, features)
    found = step_histories(shown, [0], SMALL)
    assert found.next_step.tolist() == [STEPS.index(step) for step in ("boil", "cut", "fry", "salt")]
    assert found.steps[2].tolist() == [1, 0, -1, -1]
    assert found.done[2].tolist() == [True, True, False, False]
    # At 1/6, 3/6 and 5/6 of the steps: 14, 16, 18 and 4, 6, 8 seconds.
    assert found.frames[2, :2].tolist() == [[14, 16, 18], [4, 6, 8]]
    assert (found.frames[2, 2:] == -1).all()
    # Sentences are said 0-6, 7-13, 14-20, 21-27 …: the middles are 3, 10, 17, 24; the fourth is not over at 23.
    assert found.nearby_sentences[2, 0].tolist() == [[1, 2, -1], [1, 2, -1], [1, 2, -1]]
    assert found.nearby_sentences[2, 1].tolist() == [[-1, 0, 1], [-1, 0, 1], [0, 1, 2]]
    assert found.recent_sentences[2].tolist() == [2, 1, -1, -1]  # those that ended at 20 and at 13, since 13
    assert found.recent_sentences[0].tolist() == [-1, -1, -1, -1]


def test_sentences_are_over_when_the_next_begins() -> None:
    """Captions stay on the screen while the next is spoken; two that begin together last until a later one."""
    times = np.array([[0.0, 5.0], [3.0, 8.0], [3.0, 4.0], [6.0, 20.0]])
    pieces = sentence_vectors(VideoFeatures(np.zeros(0), np.zeros((0, 0)), times, np.eye(4)))  # type: ignore[arg-type]
    order = pieces.vectors.argmax(axis=1)
    assert pieces.times.tolist() == sorted(times.mean(axis=1))
    assert dict(zip(order.tolist(), pieces.from_.tolist(), strict=True)) == {0: 3.0, 1: 6.0, 2: 4.0, 3: 20.0}


@SEEN
def test_videos_lie_one_after_the_other(text_only: bool) -> None:
    """The vectors of a moment are the same whichever videos come before it."""

    def vectors(shown: LabelledVideos, numbers: range) -> list[list[list[float]]]:
        found = step_histories(shown, numbers, SMALL)
        tables = {"frames": shown.frames, "nearby_sentences": shown.sentences, "recent_sentences": shown.sentences}
        return [
            [table[place].tolist() if place >= 0 else [] for place in getattr(found, key)[row].flatten()]
            for row in range(len(found))
            for key, table in tables.items()
        ]

    alone = [labelled_videos(TASK.with_videos([one]), features, text_only=text_only) for one in TASK]
    together = labelled_videos(TASK, features, text_only=text_only)
    assert vectors(together, range(4)) == [one for shown in alone for one in vectors(shown, range(1))]


@SEEN
@NAMED
@settings(max_examples=30)
@given(seed=st.integers(0, 10_000))
def test_nothing_is_known_of_the_future(name: str, text_only: bool, seed: int) -> None:
    """Later labels, and all that is seen and said later, may be anything: what is foreseen stays as it is."""
    rng = np.random.default_rng(seed)
    starts = np.sort(rng.uniform(0, 50, 4)).tolist()
    ends = [start + float(rng.uniform(0, 25)) for start in starts]  # steps may overlap
    order = rng.permutation(STEPS).tolist()
    said = [Sentence(f"word {n}", t, t + 4) for n, t in enumerate(np.sort(rng.uniform(0, 55, 9)).tolist())]
    whole = Video("v", map(Segment, order, starts, ends), said)
    asked = int(rng.integers(4))
    now = starts[asked]

    def unlike(one: Segment) -> Segment:
        """One that is over stays; one that goes on ends at another time."""
        return one if one.end is not None and one.end <= now else replace(one, end=now + 30)

    later = rng.permutation(order[asked + 1 :]).tolist()[: rng.integers(4)]
    segments = [*map(unlike, whole.segments[: asked + 1]), *(Segment(step, now + 2, now + 50) for step in later)]
    over = [min([one.end, *(two.start for two in said if two.start > one.start)]) for one in said]
    heard = [one if end <= now else replace(one, text="else") for one, end in zip(said, over, strict=True)]

    def foreseen_in(one: Video, later_frames: float | None) -> Tensor:
        found = features(one)
        if later_frames is not None:
            found.frames[found.frame_times > now] = later_frames
        shown = labelled_videos(TASK.with_videos([one]), lambda _: found, text_only=text_only)
        return network(name, shown)(step_histories(shown, [0], SMALL), shown)[asked]  # type: ignore[no-any-return]

    assert close(foreseen_in(whole, None), foreseen_in(Video("v", segments, heard), 9.0))


# -- what cannot matter -----------------------------------------------------------------------------------------


@SEEN
@NAMED
def test_padding_and_company_change_nothing(name: str, text_only: bool) -> None:
    """A moment alone, without padding; in a batch with longer ones; and the batch in another order."""
    shown = labelled_videos(TASK, features, text_only=text_only)
    every, net = step_histories(shown, range(4), SMALL), network(name, shown)
    together = net(every, shown)
    assert together.shape == (9, 4)
    order = torch.randperm(9, generator=torch.Generator().manual_seed(1))
    assert close(net(every[order], shown), together[order])
    for row in range(9):
        assert close(net(every[torch.tensor([row])], shown)[0], together[row])


@NAMED
def test_what_is_done_is_never_foreseen(name: str) -> None:
    shown = labelled_videos(TASK, features)
    every = step_histories(shown, range(4), SMALL)
    scores = network(name, shown)(every, shown)
    assert (scores[every.done] == -torch.inf).all()
    assert torch.isfinite(scores[~every.done]).all()


def test_what_each_network_knows() -> None:
    """Frames matter to STAM and ViViT, labels where they are told, sentences to ours unless it is deaf."""
    shown = labelled_videos(TASK, features)
    every = step_histories(shown, [0], SMALL)
    last = torch.tensor([3])
    other = {
        "labels": replace(every, steps=torch.where(every.steps == 0, 1, every.steps)),
        "frames": replace(every, frames=torch.where(every.frames >= 0, 59, -1)),
        "recent sentences": replace(every, recent_sentences=torch.where(every.recent_sentences >= 0, 0, -1)),
    }
    knows = {
        ("stam", True): {"labels", "frames"}, ("stam", False): {"frames"},
        ("vivit", True): {"labels", "frames"}, ("vivit", False): {"frames"},
        ("text+labels", True): {"labels", "recent sentences"},
    }  # fmt: skip
    for (name, labels), expected in knows.items():
        net = network(name, shown, replace(SMALL, labels=labels))
        found = {key for key, changed in other.items() if not close(net(changed[last], shown), net(every[last], shown))}
        assert found == expected, name
    deaf = replace(SMALL, heard=0)
    changed = replace(shown, sentences=torch.randn_like(shown.sentences))
    net = network("text+labels", shown, deaf)
    assert torch.equal(net(step_histories(shown, [0], deaf), shown), net(step_histories(changed, [0], deaf), changed))


# -- what a network computes ------------------------------------------------------------------------------------


def test_the_factorised_encoder_is_a_loop_over_frames() -> None:
    """ViViT written out for one moment: attention by hand within each frame, then over the frames."""
    shown = labelled_videos(TASK, features)
    net = network("vivit", shown)
    assert isinstance(net, Vivit)
    every = step_histories(shown, [0], SMALL)
    one = every[torch.tensor([3])]  # three steps done, three frames of each

    def attend(stage: torch.nn.Module, tokens: list[Tensor]) -> Tensor:
        rows = torch.stack([stage.token, *tokens])  # type: ignore[list-item]
        for layer in stage.layers.layers:  # type: ignore[union-attr]
            normed = layer.norm1(rows)
            query, key, value = (normed @ layer.self_attn.in_proj_weight.T + layer.self_attn.in_proj_bias).chunk(3, -1)
            heads = []
            for q, k, v in zip(query.split(8, -1), key.split(8, -1), value.split(8, -1), strict=True):
                heads.append((q @ k.T / 8**0.5).softmax(-1) @ v)
            rows = rows + layer.self_attn.out_proj(torch.cat(heads, -1))
            rows = rows + layer.linear2(F.gelu(layer.linear1(layer.norm2(rows))))
        return stage.layers.norm(rows)[0]  # type: ignore[union-attr, operator]

    summed = []
    for back in range(3):
        for frame in range(3):
            seen = net.frames.frame(shown.frames[one.frames[0, back, frame]])
            places = [place for place in one.nearby_sentences[0, back, frame].tolist() if place >= 0]
            around = shown.sentences[places]
            fused = net.frames.fusion(seen[None, None], around, torch.arange(len(around))[None, None])[0, 0]
            assert net.frames.step is not None
            tokens = [fused, seen, None, net.frames.step(one.steps[0, back])]
            middle = int(one.nearby_sentences[0, back, frame, 1])
            tokens[2] = net.frames.sentence(shown.sentences[middle]) if middle >= 0 else None
            told = [token + kind for token, kind in zip(tokens, net.kind, strict=True) if token is not None]
            summed.append(attend(net.within, told) + net.over_time.place[back, frame])
    by_hand = net.over_time.head(attend(net.over_time.along, summed))
    by_hand[one.done[0]] = -torch.inf
    with torch.no_grad():
        assert close(net(one, shown)[0], by_hand)


# -- what is learnt ---------------------------------------------------------------------------------------------


def accuracy(name: str, task: Task, options: VideoTransformerOptions, test: Task | None = None) -> float:
    found = train_network(name, labelled_videos(task, features, text_only=True), options)
    shown = labelled_videos(test or task, features, text_only=True)
    return float(
        (predict_probabilities(found, shown).argmax(1) == step_histories(shown, range(len(shown)), options).next_step)
        .float()
        .mean()
    )


@NAMED
def test_an_order_is_learnt(name: str) -> None:
    """Two orders, which the first step tells apart; the first step of a video cannot be known."""
    task = Task("t", STEPS, [video(f"v{n}", "bcfs" if n % 2 else "sbfc", "") for n in range(20)])
    assert accuracy(name, task, long(25)) == pytest.approx(7 / 8)


@pytest.mark.slow
@NAMED
def test_what_only_the_narration_tells_is_learnt(name: str) -> None:
    """After boiling comes what was said while it boiled; test videos are others. Without ears it is a guess."""
    rng = np.random.default_rng(0)

    def spoken(number: int) -> Video:
        letter = "cfs"[number % 3]
        what = {"c": "knife", "f": "pan", "s": "pinch"}[letter]
        said = [Sentence(f"so take the {what}", 4, 5), Sentence(f"well {rng.integers(9)}", 6, 7)]
        return Video(f"v{number:02}", video("v", "b" + letter).segments, said)

    task, test = (Task("t", STEPS, map(spoken, some)) for some in (range(48), range(50, 80)))
    assert accuracy(name, task, long(30), test) > 0.95
    if name == "text+labels":
        assert accuracy(name, task, long(30, heard=0), test) < 0.75  # half of the steps are first ones


def test_a_training_repeats_itself_and_keeps_videos_apart() -> None:
    shown = labelled_videos(Task("t", STEPS, [video(f"v{n}", "bcf") for n in range(10)]), features)
    options = replace(SMALL, training=replace(SMALL.training, epochs=3))
    one, other = (train_network("stam", shown, options) for _ in range(2))
    assert torch.equal(predict_probabilities(one, shown), predict_probabilities(other, shown))
    assert one.losses == other.losses
    assert len(one.training_videos) == 8  # 15 % of ten are kept, rounded
    unlike = train_network("stam", shown, replace(options, training=replace(options.training, seed=5)))
    assert unlike.losses != one.losses


def test_the_best_validation_is_kept_and_patience_ends() -> None:
    rng = np.random.default_rng(1)
    task = Task("t", STEPS, [video(f"v{n}", "".join(rng.permutation(list("bcfs")))) for n in range(12)])
    options = replace(long(60), training=replace(long(60).training, patience=3, learning_rate=0.01))
    found = train_network("stam", labelled_videos(task, features), options)
    assert len(found.losses) < 60
    assert found.losses.index(min(found.losses)) == len(found.losses) - 4
    kept = task.with_videos(one for one in task if one.id not in found.training_videos)
    shown = labelled_videos(kept, features)
    came = step_histories(shown, range(len(shown)), options).next_step
    loss = F.nll_loss(predict_probabilities(found, shown).log(), came)
    assert float(loss) == pytest.approx(min(found.losses), abs=1e-5)


def test_too_little_to_learn_from() -> None:
    one = labelled_videos(Task("t", STEPS, [video("v", "bc"), Video("empty", [])]), features)
    with pytest.raises(InputError, match="1 labelled videos"):
        train_network("stam", one, SMALL)
    untimed = Task("t", STEPS, [Video("v", [Segment("boil")])])
    with pytest.raises(InputError, match="no times"):
        labelled_videos(untimed, lambda _: features(TASK.videos[0]))
    widths = iter([16, 8])
    with pytest.raises(InputError, match="different widths"):
        labelled_videos(TASK.with_videos([video("a", "b"), video("b", "c")]),
              lambda one: narration_features(one.sentences, HashedWords(next(widths))))  # fmt: skip

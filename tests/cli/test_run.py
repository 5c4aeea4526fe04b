"""`msg2 run`: the whole way, with what lies beside the labels, from captions, and for many tasks."""

from __future__ import annotations

import csv
import json
import signal
import subprocess
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

import msg2 as package
from msg2.files import file_sha256
from msg2.formats.feature_store import open_store, write_store
from msg2.formats.step_table import to_csv
from msg2.graph import all_of
from msg2.graph import step as is_done
from msg2.metrics.graph_scores import score_graph
from msg2.simulation import household_world, simulate, simulate_features
from msg2.simulation.simulated_features import FeatureOptions
from msg2.simulation.simulator import SimulationOptions

FILES = ["after.json", "before.json", "filled.csv", "model", "page.html", "summary.json"]


@pytest.fixture(scope="module")
def coffee(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulation as `msg2 simulate --features` writes it."""
    from msg2.simulation.simulated_features import write_simulation

    folder = tmp_path_factory.mktemp("coffee")
    write_simulation(
        folder, simulate(household_world("Make Coffee"), SimulationOptions(videos=9), seed=2), 2, features=True
    )
    return folder


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_simulated_folder_brings_everything(msg2, coffee: Path, tmp_path: Path) -> None:
    ran = msg2("run", coffee, "-o", tmp_path, "--epochs", 2, "--set", "delta=0.8", "--method", "msg2")
    assert ran.code == 0, ran
    assert names(tmp_path) == sorted([*FILES, "compared.svg"])
    header, before, after = ran.out.splitlines()[:3]
    assert header.split()[-4:] == ["spoc", "compatibility", "edge", "f1"]
    summary = json.loads((tmp_path / "summary.json").read_text())
    others = [name for name in names(tmp_path) if name not in ("model", "summary.json")]
    assert summary["files"] == {name: file_sha256(tmp_path / name) for name in others}  # nothing is of another run
    assert before.split()[-2:] == [f"{100 * summary['scores']['before'][name]:.2f}" for name in ("compatibility", "f1")]
    assert after.split()[3] == str(summary["added"])
    assert ran.out.splitlines()[-1] == f"page     {tmp_path / 'page.html'}"
    assert package.load(tmp_path / "after.json").method["options"]["delta"] == 0.8
    files = {name: (tmp_path / name).read_bytes() for name in names(tmp_path) if name != "model"}
    assert msg2("run", coffee, "-o", tmp_path, "--epochs", 2, "--set", "delta=0.8", "--method", "msg2").code == 0
    assert {name: (tmp_path / name).read_bytes() for name in files} == files


def test_many_tasks_are_a_folder_each(msg2, coffee: Path, tmp_path: Path) -> None:
    stage = [
        simulate(household_world(name), SimulationOptions(videos=12), seed=1) for name in ("Perform CPR", "Repot Plant")
    ]
    found = {(s.task.name, v): f for s in stage for v, f in simulate_features(s, FeatureOptions(), 1).items()}
    write_store(tmp_path / "store", found, open_store(coffee / "features").encoders)
    bare = simulate(household_world("Jump Car"), SimulationOptions(videos=2), seed=1).task
    (tmp_path / "steps.csv").write_text(to_csv([bare, *(s.task for s in stage)]))
    (tmp_path / "truth").mkdir()
    (tmp_path / "truth" / "cpr.json").write_text(stage[0].graph.dumps())
    ran = msg2("run", tmp_path / "steps.csv", "--features", tmp_path / "store", "-o", tmp_path / "out", "--epochs", 1,
               "--truth", tmp_path / "truth")  # fmt: skip
    assert ran.code == 0, ran
    first, second, last = ran.err.splitlines()
    assert first.startswith("Perform CPR: no labels are added: to see how sure they are, 250 labels of 30 videos")
    assert second.startswith("Repot Plant: no labels are added")
    assert last == "warning: Jump Car: left out, it has fewer than two videos with labels and features"
    assert names(tmp_path / "out") == ["perform-cpr", "repot-plant"]
    assert names(tmp_path / "out" / "perform-cpr") == sorted([*FILES, "compared.svg"])
    assert names(tmp_path / "out" / "repot-plant") == FILES


def test_from_captions(msg2, tmp_path: Path) -> None:
    steps, rows = ["boil water", "pour milk", "stir it"], ["video,step,start,end"]
    (tmp_path / "captions").mkdir()
    for number in range(4):
        cues = [f"00:{10 * n:02}.000 --> 00:{10 * n + 5:02}.000\nnow {step}\n" for n, step in enumerate(steps)]
        (tmp_path / "captions" / f"7_v{number}.vtt").write_text("WEBVTT\n\n" + "\n".join(cues))
        rows += [f"v{number},{step},{10 * n},{10 * n + 5}" for n, step in enumerate(steps)]
    (tmp_path / "tea.csv").write_text("\n".join(rows) + "\n")
    go = ("run", tmp_path / "tea.csv", "--captions", tmp_path / "captions", "-o", tmp_path / "out", "--epochs", 2)
    ran = msg2(*go)
    assert ran.code == 0, ran
    assert "there are no frames, sentences take their place" in ran.err
    assert names(tmp_path / "out") == sorted([*FILES, "features"])
    assert package.load(tmp_path / "out" / "after.json").method["name"] == "likelihood", "the default"
    assert json.loads((tmp_path / "out" / "model" / "model.json").read_text())["model"]["inputs"] == "text"
    assert msg2(*go).code == 0


def test_what_cannot_run(msg2, coffee: Path, table: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert "there are neither features nor videos beside the labels" in msg2("run", table, "-o", out).complaint
    other = tmp_path / "other.json"
    other.write_text(household_world("Perform CPR").graph.dumps())
    assert "but not in the" in msg2("run", coffee, "-o", out, "--truth", other).complaint
    assert msg2("run", coffee, "-o", out, "--features", out, "--captions", out).code == 2
    assert msg2("run", coffee, "-o", out, "--variant", "x").code == 2
    assert msg2("run", coffee, "-o", out, "--method", "msgi", "--set", "delta=0.5").code == 2
    assert not out.exists()
    assert "Example" in msg2("run", "-h").out


@pytest.mark.slow
def test_interrupted_it_says_so_and_goes_on(command: Path, coffee: Path, tmp_path: Path, msg2) -> None:
    run = ["run", coffee, "-o", tmp_path / "out", "--epochs", "150"]
    log = tmp_path / "out" / "model" / "log.jsonl"
    with subprocess.Popen([command, *run], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        started = time.monotonic()
        while not log.exists() and time.monotonic() < started + 600:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        ended = *process.communicate(timeout=600), process.returncode
    assert ended == ("", "msg2: interrupted; the same command goes on from here\n", 130)
    assert names(tmp_path / "out") == ["model"], "nothing is half-written"
    reached = json.loads((tmp_path / "out" / "model" / "model.json").read_text())["epoch"]
    assert 0 < reached < 150
    assert f"going on after epoch {reached} of 150" in msg2(*run).err
    assert names(tmp_path / "out") == sorted([*FILES, "compared.svg"])


def test_from_a_folder_of_files_to_labels_graph_and_table_in_three_commands(msg2, tmp_path: Path) -> None:
    """48 files of noisy one-hot frames, two a second; some steps are left out, others are seen and have no label."""
    steps, rng = ["fill", "boil", "grind", "brew", "pour", "serve", "wash"], np.random.default_rng(0)
    rows, missing = ["video,step,start,end"], set()
    (tmp_path / "clip").mkdir()
    for number in range(48):
        order = [*rng.permutation(steps[:3]), *steps[3:]]  # any order of the first three, then the rest
        frames = rng.normal(0, 0.1, (150, 16)) + (np.arange(16) == 15)  # the last number is the kitchen
        for place, step in enumerate(order):
            chance = rng.random()
            if chance < 0.09:
                continue  # left out
            frames[20 * place + 8 : 20 * place + 18, steps.index(step)] += 2  # from 4 to 9 of every ten seconds
            if chance < 0.18:
                missing.add((f"v{number}", step))
            else:
                rows.append(f"v{number},{step},{10 * place + 4},{10 * place + 9}")
        np.save(tmp_path / "clip" / f"v{number}.npy", frames.astype(np.float16))
    (tmp_path / "steps.csv").write_text("\n".join(rows) + "\n")
    imported = msg2("features", "import", tmp_path / "clip", "--fps", 2, "-o", tmp_path / "features")
    assert imported.out.splitlines()[1].split()[:6] == ["48", str(48 * 150), "0", "16", "0", "none"]
    run = ("run", tmp_path / "steps.csv", "--epochs", 20, "--set", "confidence=0.4", "--features")
    ran = msg2(*run, tmp_path / "features", "-o", tmp_path / "out")
    assert ran.code == 0, ran
    assert "there are no sentences, frames do without them" in ran.err, ran
    assert "no labels are added" not in ran.err, ran.err
    with (tmp_path / "out" / "filled.csv").open(newline="") as table:
        filled = list(csv.DictReader(table))
    added = {(row["video"], row["step"]): float(row["start"]) for row in filled if row["source"] == "predicted"}
    assert added.keys() <= missing
    assert len(added) > 0.8 * len(missing) > 10
    for (video, step), second in added.items():  # where it is to be seen
        frames = np.load(tmp_path / "clip" / f"{video}.npy")
        assert frames[round(2 * second) - 2 : round(2 * second) + 3, steps.index(step)].max() > 0.5
    graph = package.load(tmp_path / "out" / "after.json")
    assert not any(graph.eligible(set(steps[:3]) - {each}) & {"brew"} for each in steps[:3])
    assert {"brew"} <= graph.eligible(set(steps[:3]))
    true, table = tmp_path / "truth.json", tmp_path / "table.tex"
    after = {later: is_done(earlier) for earlier, later in pairwise(steps[3:])}
    truth = package.SubtaskGraph(graph.task, steps, {"brew": all_of(map(is_done, steps[:3])), **after})
    truth.save(true)
    compare = ("benchmark", tmp_path / "out" / "filled.csv", "--truth", true, "--methods", "likelihood,msg2")
    assert msg2(*compare, "-o", table).code == 0
    (row,) = (line for line in table.read_text().splitlines() if line.startswith("likelihood & "))
    scores = score_graph(package.infer(tmp_path / "out" / "filled.csv"), truth)
    assert row.split(" & ")[1:3] == [f"{100 * share:.2f}" for share in (scores.accuracy, scores.spoc)]
    straight = msg2(*run, tmp_path / "clip", "--fps", 2, "-o", tmp_path / "straight")
    assert straight.code == 0, straight
    assert (tmp_path / "straight" / "filled.csv").read_bytes() == (tmp_path / "out" / "filled.csv").read_bytes()

"""What the program writes, kept as files: run it before and after a change that must not change any of it.

    python -m benchmarks.snapshot before          # at the old commit
    python -m benchmarks.snapshot after           # at the new one
    diff -r before after                          # nothing, or what was meant

The commands are those of a user: graphs of every method and set of options, sweeps, checks, pages, exports and filled
tables, for simulated worlds and, where they are, for the annotation sets in MSG2_DATA. `--small` keeps to two worlds.
`tests/test_snapshot.py` compares one of them with `tests/snapshot.json`; after an intended change,
`python -m benchmarks.snapshot --write-hashes tests/snapshot.json` writes that file anew.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

MSG2 = [sys.executable, "-c", "from msg2.cli import main; main()"]
METHODS = {
    "msg2": ["--method", "msg2"],
    "msg2-loose": ["--method", "msg2", "--set", "delta=0.8", "--set", "alpha=0.1", "--set", "recency=1"],
    "msg2-greedy": ["--method", "msg2", "--set", "delta=0.9", "--set", "max_literals=none"],
    "msgi": ["--method", "msgi"],
    "msgi+": ["--method", "msgi+"],
    "always-before": ["--method", "always-before"],
    "always-before-0.9": ["--method", "always-before", "--set", "delta=0.9"],
    "likelihood": ["--method", "likelihood"],
    "likelihood-names": ["--method", "likelihood", "--set", "names=words"],
}
FEW = ("msg2", "always-before", "likelihood")
READINGS = {"start": ["--overlap", "start"], "keep": ["--repeats", "keep"]}
PICTURES = ("html", "svg", "dot", "mmd", "graphml", "pddl")
TABLES = ("table.csv", "table.tsv", "table.jsonl", "table.parquet", "elan.eaf", "studio.label-studio.json")
RANKERS = ("recency", "bigram", "learned", "grprop")


class Snapshot:
    """Runs commands in a folder and keeps what they print beside what they write."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def run(self, name: str, *arguments: str | Path) -> None:
        """Run `msg2` with these arguments; what it prints becomes `<name>.txt`."""
        environment = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [*MSG2, *map(str, arguments)], cwd=self.folder, env=environment, capture_output=True, text=True, check=False
        )
        self.keep(name, done.returncode, done.stdout, done.stderr)

    def keep(self, name: str, code: int, out: str, err: str) -> None:
        """Write how a command ended and what it printed."""
        path = self.folder / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"exit {code}\n{out}{_STDERR}{err}")


_STDERR = "---\n"
TESTED_WORLD = ("tea", "Make Coffee", "--videos", "20")
"""Of which the hashes are kept."""


_LONG_NUMBER = re.compile(rb"-?\d+\.\d{8,}(?:e-?\d+)?")
"""The last digits of such a number depend on the machine."""


def hashes(folder: Path) -> dict[str, str]:
    """Hash every file below a folder; of what commands print, stdout only."""
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            if path.suffix == ".txt":
                content = content.split(_STDERR.encode())[0]
            content = _LONG_NUMBER.sub(lambda found: b"%.10g" % float(found[0]), content)
            found[path.relative_to(folder).as_posix()] = hashlib.sha256(content).hexdigest()[:16]
    return found


def dataset(snapshot: Snapshot, name: str, data: str | Path, methods: tuple[str, ...], *options: str) -> None:
    """Everything that is made of one set of labels; `options` say how it is read."""
    snapshot.run(f"{name}/describe", "describe", data, "--json", *options)
    (snapshot.folder / name).mkdir(parents=True, exist_ok=True)
    for method in methods:
        out = f"{name}/{method}"
        snapshot.run(out, "infer", data, "-o", out, *METHODS[method], *options)
    for graphs in (snapshot.folder / name).glob("*"):
        many = sorted(graphs.glob("*.json")) if graphs.is_dir() else []
        for graph in many[:2]:
            relative = graph.relative_to(snapshot.folder)
            snapshot.run(f"{name}/check-{graphs.name}-{graph.stem}", "check", relative, data, "--json")


def world(snapshot: Snapshot, name: str, *made: str) -> None:
    """A simulated world: every method and option, every picture, every export, next steps, checks, sweeps."""
    snapshot.run(f"{name}/simulate", "simulate", *made, "-o", f"{name}/data")
    data = f"{name}/data/steps.csv"
    snapshot.run(f"{name}/describe", "describe", data, "--json")
    for method, options in METHODS.items():
        graph = f"{name}/{method}.json"
        snapshot.run(f"{name}/infer-{method}", "infer", data, "-o", graph, "--stats", f"{name}/{method}.csv", *options)
        snapshot.run(f"{name}/check-{method}", "check", graph, data, "--json")
        snapshot.run(f"{name}/evaluate-{method}", "evaluate", graph, "--truth", f"{name}/data/truth.json", "--json")
    for reading, options in READINGS.items():
        snapshot.run(f"{name}/infer-{reading}", "infer", data, "-o", f"{name}/{reading}.json", *options)
    for method in FEW:
        sampled = f"{name}/{method}-sampled.json"
        snapshot.run(f"{name}/sampled-{method}", "infer", data, "-o", sampled, *METHODS[method],
                     "--samples", "5", "--confidence", "0.6", "--seed", "3", "--jobs", "2")  # fmt: skip
        for suffix in PICTURES:
            extra = ["--data", data] if suffix == "html" else []
            picture = f"{name}/{method}.{suffix}"
            snapshot.run(f"{name}/show-{method}-{suffix}", "show", f"{name}/{method}.json", "-o", picture, *extra)
        compared = ["--compare", f"{name}/data/truth.json"]
        snapshot.run(
            f"{name}/compare-{method}", "show", f"{name}/{method}.json", "-o", f"{name}/{method}-c.svg", *compared
        )
        snapshot.run(f"{name}/online-{method}", "check", f"{name}/{method}.json", data, "--online", "--json")
    snapshot.run(f"{name}/marked", "check", f"{name}/msg2.json", data, "-o", f"{name}/marked.svg")
    snapshot.run(
        f"{name}/merge", "merge", *(f"{name}/{one}.json" for one in FEW), "-o", f"{name}/merged.json", "--json"
    )
    snapshot.run(f"{name}/sweep", "sweep", data, "-o", f"{name}/sweep.csv")
    for table in TABLES:
        snapshot.run(f"{name}/convert-{table}", "convert", data, "-o", f"{name}/exports/{table}")
    for ranker in RANKERS:
        snapshot.run(f"{name}/next-{ranker}", "next", f"{name}/msg2.json", "--ranker", ranker, "--data", data, "--json")
        snapshot.run(f"{name}/evaluate-{ranker}", "next", data, "--evaluate", "--ranker", ranker, "--json")


def states(snapshot: Snapshot) -> None:
    """A state predictor, trained for two epochs, and what it fills in."""
    snapshot.run("states/simulate", "simulate", "Tie Tie", "-o", "states/data", "--features", "--videos", "12")
    data = ["states/data/steps.csv", "--features", "states/data/features"]
    snapshot.run("states/train", "states", "train", *data, "-o", "states/model", "--epochs", "2", "--device", "cpu")
    snapshot.run("states/fill", "states", "fill", "states/model", *data, "-o", "states/filled.csv")
    snapshot.run("states/run", "run", "states/data", "-o", "states/run", "--epochs", "2")
    snapshot.run(
        "states/evaluate",
        "states",
        "evaluate",
        "states/model",
        *data,
        "--truth",
        "states/data/truth/performed.csv",
        "--json",
    )


def narration(snapshot: Snapshot, captions: Path, labels: Path) -> None:
    """Real transcripts: the store of their features, and what is said around each step."""
    snapshot.run("narration/features", "features", captions, "-o", "narration/store", "--text-encoder", "words")
    snapshot.run("narration/phrases", "phrases", labels, captions, "-o", "narration/phrases.html")


def real_data(root: Path) -> Iterator[tuple[str, Path, tuple[str, ...], list[str]]]:
    """Name, path, methods and reading options of the annotation sets that are there."""
    every = tuple(name for name in METHODS if name != "likelihood-names")
    cook = root / "captaincook4d"
    for file in sorted(cook.glob("*.json")):
        for order in ("file", "time"):
            yield f"{file.stem}-{order}", file, every, ["--order", order]
    yield "crosstask", root / "crosstask" / "crosstask_release", every, []
    yield "assembly101", root / "assembly101-mistakes" / "mistakes.csv", FEW, []
    for model in ("000000", "011011", "101010", "121101"):
        for kind in ("clean", "noisy"):
            yield f"pdc-{model}-{kind}", root / "pdc2025" / f"{model}_train_{kind}.csv.gz", FEW, []


def main() -> None:
    """Write the snapshot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="where the outputs go; it is emptied first")
    parser.add_argument("--write-hashes", type=Path, metavar="FILE", help="write the hashes of one world there instead")
    parser.add_argument("--small", action="store_true", help="two simulated worlds only")
    parser.add_argument("--jobs", type=int, default=2)
    chosen = parser.parse_args()
    if chosen.write_hashes is not None:
        with tempfile.TemporaryDirectory() as folder:
            world(Snapshot(Path(folder)), *TESTED_WORLD)
            chosen.write_hashes.write_text(json.dumps(hashes(Path(folder)), indent=1) + "\n")
        return
    if chosen.folder is None:
        parser.error("say where the outputs go")
    shutil.rmtree(chosen.folder, ignore_errors=True)
    chosen.folder.mkdir(parents=True)
    snapshot = Snapshot(chosen.folder.resolve())
    worlds = {
        "tea": ["Make Coffee", "--videos", "20"],
        "random": ["random", "--steps", "9", "--videos", "20", "--seed", "4"],
    }
    if not chosen.small:
        worlds |= {
            name.lower().replace(" ", "-"): [name] for name in ("Perform CPR", "Tie Tie", "Repot Plant", "Jump Car")
        }
    with ThreadPoolExecutor(chosen.jobs) as pool:
        waiting = [pool.submit(world, snapshot, name, *made) for name, made in worlds.items()]
        if not chosen.small:
            root = Path(os.environ.get("MSG2_DATA", "../shared/data")).resolve()
            waiting.append(pool.submit(states, snapshot))
            if root.is_dir():
                crosstask = root / "crosstask"
                waiting.append(
                    pool.submit(narration, snapshot, crosstask / "transcripts", crosstask / "crosstask_release")
                )
                for name, data, methods, options in real_data(root):
                    waiting.append(pool.submit(dataset, snapshot, name, data, methods, *options))
        for one in waiting:
            one.result()


if __name__ == "__main__":
    main()

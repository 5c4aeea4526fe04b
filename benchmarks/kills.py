"""Commands that are killed or interrupted at random moments: nothing is half-written, and the next run makes it good.

    python -m benchmarks.kills --count 200 --seed 7 [--command infer]

Every command that writes is run once undisturbed. Then it is disturbed `count` times, by SIGKILL and SIGINT in turn, at
a random moment, and given again. Whatever file there is after the disturbance is whole; after the next run all files
are equal to those of the undisturbed one, no temporary file and no process is left, and an interrupt has ended with
exit 130 and one line. `data` downloads from a server of this program. With `--twice`, every command is given twice at
the same time into one folder instead: one of them may be refused, and what is there in the end is whole.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from zipfile import ZipFile

from experiments.rendering import RenderOptions, write_videos
from experiments.rendering.__main__ import read_simulation

PATIENCE = 600
"""Seconds after which a program that has been interrupted hangs, on however busy a machine."""
COMMANDS = {
    "infer": "infer many.csv -o out/graphs --jobs 2 --stats out/stats.csv",
    "samples": "infer world/steps.csv -o out/graph.json --samples 20 --jobs 2",
    "convert": "convert many.csv -o out/labels.eaf",
    "parquet": "convert many.csv -o out/labels.parquet",
    "studio": "convert many.csv -o out/labels.label-studio.json",
    "show": "show world/truth.json -o out/graph.svg",
    "page": "show world/truth.json -o out/graph.html --data world/steps.csv",
    "merge": "merge world/truth.json world/truth.json -o out/merged.json",
    "compare": "compare world/truth.json other.json -o out/differences.svg",
    "check": "check world/truth.json world/steps.csv -o out/mistakes.svg",
    "watch": "watch world/truth.json --data world/steps.csv --save out/run.json < <(tail -n +$((1 + "
    "$(cat out/run.json 2>&- | grep -c kind))) events.jsonl)",
    "benchmark": "benchmark world/steps.csv --truth world/truth.json --methods msgi,msg2 --jobs 2 -o out/table.md",
    "sweep": "sweep world/steps.csv -o out/sweep.csv",
    "phrases": "phrases rendered/steps.csv rendered/videos -o out/spoken.html",
    "label": "label rendered/videos --steps steps.txt -o out/draft.csv",
    "features": "features rendered/videos -o out --jobs 2",
    "simulate": "simulate 'Make Coffee' --videos 40 --features -o out",
    "train": "states train world/steps.csv --features world/features -o out --epochs 3",
    "fill": "states fill model world/steps.csv --features world/features -o out/filled.csv",
    "plot": "states plot model world/steps.csv --features world/features --video v00001 -o out/video.svg",
    "run": "run world -o out --epochs 3",
    "videos": "run rendered/videos --labels rendered/steps.csv -o out --epochs 3",
    "demo": "demo -o out",
    "data": "data crosstask -o out",
}
"""Name -> its arguments: every command that writes, but for `serve`, which `benchmarks.app_load` kills. It is run in a
folder with a table of several tasks and what `INPUTS` make."""
INPUTS = {
    "world": "simulate 'Make Coffee' --videos 12 --features -o world",
    "rendered": "simulate 'Make Coffee' --videos 3 -o rendered",
    "model": "states train world/steps.csv --features world/features -o model --epochs 3",
}
"""Folder -> the command that makes it, for those that read it."""
RESUMED = ("train", "simulate", "features", "run", "videos", "demo", "data", "watch", "benchmark")
"""What they write on the way is more than the result."""
_PROGRAM = """
import os, sys
from msg2.cli import end_at_once, main

end_at_once()
os.close(int(os.environ.pop("BEGUN")))  # until now it was Python that starts, and its own way to end
if sys.argv[1] == "data":  # a file that is served here in place of the one on the network
    from dataclasses import replace
    from msg2.formats import downloads

    sets, address = downloads.PUBLIC_DATASETS, os.environ["SERVED"]
    sets["crosstask"] = replace(sets["crosstask"], files={"crosstask_release.zip": f"{address}/crosstask_release.zip"})
sys.argv[0] = "msg2"
main()
"""


def prepare(folder: Path, arguments: str) -> None:
    """Write what a command reads: a table of three tasks, simulated worlds, a model, an archive of annotations."""
    rows = (f"t{task},v{video},s{(video + place) % 7},{place},{place + 1}\n"
            for task in range(3) for video in range(20) for place in range(7))  # fmt: skip
    (folder / "many.csv").write_text("task,video,step,start,end\n" + "".join(rows))
    for made, making in INPUTS.items():
        if made in arguments or made == "world":
            _, said = run(making, folder).communicate()
            if not (folder / made).is_dir():
                raise RuntimeError(f"msg2 {making}: {said}")
    if (folder / "rendered").is_dir():
        write_videos(folder / "rendered" / "videos", read_simulation(folder / "rendered"), RenderOptions(), seed=0)
    truth = json.loads((folder / "world" / "truth.json").read_text())
    steps: list[str] = truth["steps"]
    (folder / "other.json").write_text(json.dumps(truth | {"preconditions": {steps[-1]: steps[0]}, "order": []}))
    (folder / "steps.txt").write_text("".join(f"{step}\n" for step in steps))
    events = (json.dumps({"did": step, "at": 10 * place}) for place, step in enumerate(steps))
    (folder / "events.jsonl").write_text("".join(f"{event}\n" for event in events))
    with ZipFile(folder / "crosstask_release.zip", "w") as archive:
        for number in range(300):
            archive.writestr(f"annotations/1_v{number}.csv", "1,0,1\n2,2,3\n" * 1000)


def run(arguments: str, folder: Path) -> subprocess.Popen[str]:
    """Start a command as a terminal does, in a group of processes of its own, and wait until it handles interrupts."""
    ours, begun = os.pipe()
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "OMP_NUM_THREADS": "1",
        "BEGUN": str(begun),
    }
    process = subprocess.Popen(
        ["bash", "-c", f'exec "$0" -c "$1" {arguments}', sys.executable, _PROGRAM], cwd=folder, env=environment,
        start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, pass_fds=[begun],
    )  # fmt: skip
    os.close(begun)
    os.read(ours, 1)  # waits until the program closes its end
    os.close(ours)
    return process


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *values: object) -> None:
        """Print nothing."""


@contextmanager
def serve(folder: Path) -> Iterator[None]:
    """Serve the files of a folder to the commands that are started meanwhile."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_QuietHandler, directory=str(folder)))
    Thread(target=server.serve_forever, daemon=True).start()
    os.environ["SERVED"] = f"http://127.0.0.1:{server.server_port}"
    try:
        yield
    finally:
        del os.environ["SERVED"]
        server.shutdown()
        server.server_close()


def is_running(group: int) -> bool:
    """Whether a process of this group still runs; those that only wait for somebody to ask how they ended do not."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, process_group = stat.read_text().rpartition(")")[2].split()[:3]
        except OSError:  # it has ended meanwhile
            continue
        if int(process_group) == group and state not in "ZX":
            return True
    return False


def files(folder: Path) -> dict[str, bytes]:
    """The files in a folder by their path, hidden ones included."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def disturb(name: str, folder: Path, signum: int, after: float, expected: dict[str, bytes]) -> Iterator[str]:
    """Disturb a command, give it again, and tell what was wrong."""
    out = folder / "out"
    shutil.rmtree(out, ignore_errors=True)
    process = run(COMMANDS[name], folder)
    time.sleep(after)
    if process.poll() is None:
        os.killpg(process.pid, signum)
    try:
        _, said = process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        yield "did not end"
        return
    if signum == signal.SIGINT:
        if process.returncode not in (0, 130):
            yield f"ended with {process.returncode}: {said[-300:]}"
        elif process.returncode == 130 and not (said.startswith("msg2: interrupted") and len(said.splitlines()) == 1):
            yield f"said {said[-300:]!r}"
    left = {path: data for path, data in files(out).items() if not Path(path).name.startswith(".msg2-")}
    if name not in RESUMED and any(expected.get(path) != data for path, data in left.items()):
        yield "left a file that is not whole"
    again = run(COMMANDS[name], folder)
    _, said = again.communicate()
    if again.returncode != 0:
        yield f"given again, it ended with {again.returncode}: {said[-300:]}"
    elif files(out) != expected:
        wrong = sorted(path for path in {*files(out), *expected} if files(out).get(path) != expected.get(path))
        yield f"given again, it wrote something else: {', '.join(wrong[:5])}"
    deadline = time.monotonic() + PATIENCE
    while is_running(process.pid):
        if time.monotonic() > deadline:
            yield "left a process"
            return
        time.sleep(0.05)


def give_twice(name: str, folder: Path, expected: dict[str, bytes]) -> Iterator[str]:
    """Give a command twice at the same time, and tell what was wrong."""
    shutil.rmtree(folder / "out", ignore_errors=True)
    both = [run(COMMANDS[name], folder) for _ in range(2)]
    said = [process.communicate()[1] for process in both]
    codes = [process.returncode for process in both]
    refused = [text for text, code in zip(said, codes, strict=True) if code]
    if 0 not in codes or any("another msg2 is writing into this folder" not in text for text in refused):
        yield f"given twice, they ended with {codes}: {' '.join(refused)[-300:]}"
    elif files(folder / "out") != expected:
        yield "given twice, they left something else"


def disturb_many(name: str, count: int, seed: int, twice: bool = False) -> Iterator[str]:
    """Disturb one command `count` times, or give it `twice`; what was wrong, each with the signal and the moment."""
    rng = random.Random(f"{name} {seed}")
    with tempfile.TemporaryDirectory() as root, serve(Path(root)):
        folder = Path(root)
        prepare(folder, COMMANDS[name])
        undisturbed = run(COMMANDS[name], folder)
        began = time.monotonic()
        _, said = undisturbed.communicate()
        seconds, expected = time.monotonic() - began, files(folder / "out")
        if not expected:
            yield f"{name}: writes nothing: {said[-300:]}"
            return
        for number in range(count):
            if twice:
                yield from (f"{name}: {problem}" for problem in give_twice(name, folder, expected))
                continue
            signum = (signal.SIGKILL, signal.SIGINT)[number % 2]
            after = rng.uniform(0, 1.05 * seconds)
            for problem in disturb(name, folder, signum, after, expected):
                yield f"{name}: {signum.name} after {after:.2f} of {seconds:.2f} s: {problem}"


def main() -> int:
    """Disturb every command; exit 1 where anything was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=400, help="disturbances, all commands together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--command", action="append", choices=[*COMMANDS], help="only this one")
    parser.add_argument("--twice", action="store_true", help="give every command twice at the same time instead")
    given = parser.parse_args()
    names, wrong = given.command or [*COMMANDS], 0
    for name in names:
        for problem in disturb_many(name, -(-given.count // len(names)), given.seed, given.twice):
            wrong += 1
            print(problem, flush=True)
        print(f"{name}: done", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

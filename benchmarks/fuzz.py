"""Mutated files of every format: each is read or refused in one to three lines, in bounded time and memory.

    python -m benchmarks.fuzz --count 1500 --seconds 600 --seed 7 [--format csv]

Every format has one valid example, whose bytes are flipped, cut, doubled, exchanged with others or replaced by what is
known to hurt. They are read in a process of its own with a bound on its memory; what ends it, lasts too long or raises
anything but an `InputError` is a finding. Findings are kept as files in `tests/formats/findings`, which the tests read.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import logging
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from benchmarks.hostile_files import archive, small_workbook
from msg2.formats import procel

FINDINGS = Path(__file__).parents[1] / "tests" / "formats" / "findings"
CASE_SECONDS = 10
"""Of computing, so that a busy machine finds nothing that is not there; waiting has ten times as many."""
ADDRESS_SPACE = 4 << 30
_TABLES = (".csv", ".tsv", ".parquet")
HURTFUL = (
    b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"-1", b"1e999", b"NaN", b"9" * 400, b'"', b"'", b"[", b"{", b"<", b"&l;",
    b"null", b"true", b"{}", b"[]", b"\xf0\x9f\x8d\xb3", b"\\ud800", b"\r\r\n", b"\t", b",,,,", b"PAR1",
    b"0000-00-00", b" ", b"]]>", b"{\"a\": 1}", b"1" * 5000,
)  # fmt: skip


# -- one valid example of every format --------------------------------------------------------------------------


def examples(folder: Path) -> dict[str, Path]:
    """Write a valid example of every format; of a folder format, the path is the folder."""
    from msg2.assist import Assistant
    from msg2.formats.feature_store import Encoders, VideoFeatures, write_store
    from msg2.formats.registry import write
    from msg2.graph import SubtaskGraph, step
    from msg2.task import Segment, Task, Video

    toast = Task("toast", ["fry", "flip"], [
        Video(name, [Segment("fry", 0.5, 2.0, 0.5, "draft"), Segment("flip", 3.0, 4.0)]) for name in ("v1", "v2")
    ])  # fmt: skip
    plain = [Video(name, [Segment("fry", 0.5, 2.0), Segment("flip", 3.0, 4.0)]) for name in ("v1", "v2")]
    found = {}
    for suffix in ("csv", "tsv", "parquet"):  # with nothing but names and times
        path = folder / f"plain-{suffix}" / f"toast.{suffix}"
        found[path.parent.name] = write(Task(toast.name, toast.steps, plain), path)[0]
    for suffix in ("csv", "tsv", "jsonl", "parquet", "eaf", "label-studio.json"):
        found[suffix] = write(Task(toast.name, toast.steps, toast.videos[:1]), folder / suffix / f"toast.{suffix}")[0]
    evidence = {"flip": {"videos": 9, "holds": 8}}
    graph = SubtaskGraph("toast", ["fry", "flip"], {"flip": step("fry")}, evidence=evidence)
    texts = _TEXTS | {"graph": graph.dumps()}
    for name, text in texts.items():
        path = folder / name / _NAMES.get(name, "data.json" if text[0] in "{[" else "data.csv")
        path.parent.mkdir()
        path.write_text(text, encoding="utf-8")
        found[name] = path
    release = folder / "crosstask"
    (release / "annotations").mkdir(parents=True)
    (release / "tasks_primary.txt").write_text("1\nToast\nurl\n2\nfry,flip\n\n")
    (release / "videos.csv").write_text("1,v,url\n")
    (release / "annotations" / "1_v.csv").write_text("1,0,1\n2,2,3\n")
    found["crosstask"] = release
    found["procel"] = _write_matlab(folder / "procel" / "data.mat")
    table = found["csv"].read_bytes()
    packed = {
        "gzip": ("toast.csv.gz", gzip.compress(table, mtime=0)),
        "zip": ("toast.zip", archive(("toast/a.csv", table), ("toast/b.csv", table.replace(b"v1", b"v2")))),
        "excel": ("toast.xlsx", small_workbook()),
    }
    for name, (file, content) in packed.items():
        found[name] = folder / name / file
        found[name].parent.mkdir()
        found[name].write_bytes(content)
    found["saved_run"] = folder / "saved_run" / "run.json"
    found["saved_run"].parent.mkdir()
    assistant = Assistant(graph)
    assistant.did("fry", at=1.0)
    assistant.saw({"flip": 0.7}, at=2.0)
    assistant.save(found["saved_run"])
    if find_spec("safetensors") is None:
        return found
    rows = np.arange(8.0).reshape(2, 4)
    features = VideoFeatures(np.array([0.0, 1.0]), rows, np.array([[0.0, 1.0]]), rows[:1], ("fry it",))
    found["feature_store"] = folder / "feature_store" / "store"
    write_store(found["feature_store"], {(None, "v1"): features}, Encoders("clip", "words", 4, 4))
    return found


_STEPS = [{"step_id": 1, "start_time": 0.5, "end_time": 4, "description": "boil", "has_errors": False}]
_SEGMENTS = [{"step_name": "boil", "start_time": 0, "end_time": 1, "step_id": 1}]
_TEXTS = {
    "coin": json.dumps({"database": {"v1": {"class": "toast", "annotation": [{"label": "fry", "segment": [1, 2.5]}]}}}),
    "captaincook4d": json.dumps({"1_1": {"activity_name": "Tea", "steps": _STEPS}}),
    "egoexo4d": json.dumps({"annotations": {"t": {"take_name": "v", "scenario": "tea", "segments": _SEGMENTS}}}),
    "egoprocel": "0,10,1 fix motherboard\n10,12,2 fix fan\n",
    "assembly101": "2700,3000,attach,interior,chassis,correct,\n3000,3300,attach,wheel,chassis,mistake,wrong order\n",
    "epic_tent": "subject_id,str_SMI_w_ts,end_SMI_w_ts,str_SMI_w_frame,end_SMI_w_frame,action_label\n"
    "1,00:00:01:00,00:00:02:00,30,60,3\n",
    "event_csv": "case:concept:name,concept:name,time:timestamp,lifecycle:transition\n"
    "c1,fry,2024-05-01T12:00:00+02:00,start\nc1,fry,2024-05-01T12:01:00+02:00,complete\n",
    "xes": '<?xml version="1.0" encoding="UTF-8"?><log><trace><string key="concept:name" value="c1"/><event><string '
    'key="concept:name" value="fry"/><date key="time:timestamp" value="2024-05-01T12:00:00"/></event></trace></log>',
    "ocel": '{"objectTypes": [], "eventTypes": [], "objects": [{"id": "o1", "type": "order"}], "events": [{"id": "e1", '
    '"type": "fry", "time": "2024-05-01T12:00:00Z", "relationships": [{"objectId": "o1", "qualifier": ""}]}]}',
    "cvat": '<?xml version="1.0" encoding="utf-8"?><annotations><version>1.1</version><meta><task><name>k</name>'
    '</task></meta><track id="0" label="fry"><box frame="1" outside="0"/><box frame="9" outside="1"/></track>'
    "</annotations>",
    "timecode_list": "00:05 fry\n00:09 - 00:12 flip\n",
    "elan_text": "step\t00:00:00.500\t00:00:02.000\tfry\nstep\t00:00:03.000\t00:00:04.000\tflip\n",
}


_NAMES = {
    "xes": "log.xes", "ocel": "log.json", "cvat": "annotations.xml",
    "assembly101": "nusar-2021_action_both_9033-a30.csv",
    "timecode_list": "v1.txt", "elan_text": "v1.txt",
}  # fmt: skip


def _write_matlab(path: Path) -> Path:
    from scipy.io import savemat

    def cells(*values: Any) -> np.ndarray[Any, Any]:
        array = np.empty(len(values), dtype=object)
        array[:] = values
        return array

    path.parent.mkdir()
    times = cells(cells(np.array([[0.5, 2.0]]), np.array([[3.0, 4.0]])))
    captions = {"caption": cells(cells("now fry")), "caption_time": cells(cells(np.array([[0.0, 1.0]])))}
    savemat(path, {"grammar": cells("fry", "flip"), "key_steps_time": times, **captions})
    return path


# -- mutations --------------------------------------------------------------------------------------------------


def mutate(content: bytes, rng: random.Random) -> bytes:
    """Change one to four places of a file."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at, other = rng.randrange(len(data) + 1), rng.randrange(len(data) + 1)
        first, last = sorted((at, min(other, at + 50)))
        piece = bytes(data[first:last])
        action = rng.randrange(6)
        if action == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif action == 1:
            del data[first:last]
        elif action == 2:
            data[other:other] = piece[:1000] * rng.choice((1, 2, 1000))
        elif action == 3:
            data[first:last] = rng.choice(HURTFUL)
        elif action == 4:
            data[at:at] = rng.choice(HURTFUL)
        else:
            del data[rng.choice((at, len(data) // 2)) :]
    return bytes(data)


def mutate_inside(content: bytes, rng: random.Random) -> bytes:
    """Change what is packed, and pack it again; or what it is packed in, as it stands."""
    inside = rng.random() < 0.8
    if inside and content.startswith(b"\x1f\x8b"):
        return gzip.compress(mutate(gzip.decompress(content), rng), mtime=0)
    if inside and content.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(content)) as packed:
            entries = [(name, packed.read(name)) for name in packed.namelist()]
        place = rng.randrange(len(entries))
        entries[place] = entries[place][0], mutate(entries[place][1], rng)
        return archive(*entries)
    return mutate(content, rng)


def mutated_files(example: Path, rng: random.Random) -> dict[Path, bytes]:
    """All files of an example, one of them mutated; by their path beside the example."""
    files = sorted(path for path in example.rglob("*") if path.is_file()) if example.is_dir() else [example]
    chosen = rng.choice(files)
    contents = {path.relative_to(example.parent): path.read_bytes() for path in files}
    contents[chosen.relative_to(example.parent)] = mutate_inside(chosen.read_bytes(), rng)
    return contents


def write_files(contents: dict[Path, bytes], folder: Path) -> None:
    """Write the files below `folder`."""
    for path, data in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(data)


# -- reading ----------------------------------------------------------------------------------------------------


def read_as_everything(path: Path) -> str | None:
    """Read a path as data and as a graph; what is wrong with how that ended, or None."""
    from msg2.assist import Assistant
    from msg2.errors import InputError
    from msg2.formats import read_graph, summarize
    from msg2.formats.feature_store import open_store
    from msg2.formats.source import Source
    from msg2.graph import SubtaskGraph, step

    def read_data(path: Path) -> None:
        summarize(path, fps=30 if path.suffix == ".xml" else None)

    def use_graph(path: Path) -> None:
        graph = read_graph(path)
        for name in graph.steps:
            graph.explain(name)
        graph.dumps()

    def read_in_columns(path: Path) -> None:
        with mock.patch.object(Source, "is_small", False):  # the others are read row by row
            read_data(path)

    def use_run(path: Path) -> None:
        Assistant.load(path, SubtaskGraph("toast", ["fry", "flip"], {"flip": step("fry")}))

    def use_store(path: Path) -> None:
        store = open_store(path)
        for key in store.entries:
            store.read(key)

    own = {"run.json": use_run, "store": use_store}
    others = [use_graph] if path.suffix == ".json" else [read_in_columns] if path.suffix in _TABLES else []
    readers: list[Callable[[Path], object]] = [own[path.name]] if path.name in own else [read_data, *others]
    for read in readers:
        try:
            read(path)
        except InputError as error:
            if len(str(error).splitlines()) > 3:
                return f"{read.__name__}: more than three lines"
        except Exception as error:
            frame = error.__traceback__
            while frame is not None and frame.tb_next is not None:
                frame = frame.tb_next
            place = "" if frame is None else f" at {Path(frame.tb_frame.f_code.co_filename).name}:{frame.tb_lineno}"
            return f"{read.__name__}: {type(error).__name__}: {str(error)[:200]}{place}"
    return None


def run_in_fork(command: list[str], **_: object) -> subprocess.CompletedProcess[bytes]:
    """Read a MATLAB file in a fork of this process, which has scipy imported: many a second."""
    receiving, sending = os.pipe()
    process = os.fork()
    if not process:
        status = 1
        try:
            sys.argv, sys.stdout = ["-c", *command[3:]], os.fdopen(sending, "w")
            procel.print_variables()
            sys.stdout.flush()
            status = 0
        finally:
            os._exit(status)
    os.close(sending)
    try:
        with os.fdopen(receiving, "rb") as file:
            answer = file.read()
    except BaseException:  # it takes too long
        os.kill(process, signal.SIGKILL)
        raise
    finally:
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    return subprocess.CompletedProcess(command, status, answer, b"")


class _TooSlow(BaseException):
    """A case has had its time."""


def _worker(format_name: str, seed: int, first: int, count: int, seconds: float) -> None:
    """Try cases and print one line of JSON before and after each of them, so that a crash can be told."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))

    def stop(*_: object) -> None:
        raise _TooSlow

    signal.signal(signal.SIGPROF, stop)
    signal.signal(signal.SIGALRM, stop)
    logging.disable(logging.WARNING)
    if format_name == "procel":
        import scipy.io  # noqa: F401

        procel.subprocess.run = run_in_fork  # type: ignore[assignment]
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as root:
        example = examples(Path(root, "examples"))[format_name]
        for number in range(first, count):
            if time.monotonic() > end:
                break
            print(json.dumps({"begun": number}), flush=True)
            with tempfile.TemporaryDirectory(dir=root) as folder:
                write_files(mutated_files(example, random.Random(f"{format_name} {seed} {number}")), Path(folder))
                signal.setitimer(signal.ITIMER_PROF, CASE_SECONDS)
                signal.alarm(10 * CASE_SECONDS)
                try:
                    finding = read_as_everything(Path(folder) / example.name)
                except _TooSlow:
                    finding = f"takes more than {CASE_SECONDS} seconds"
                signal.setitimer(signal.ITIMER_PROF, 0)
                signal.alarm(0)
            print(json.dumps({"ended": number, "finding": finding}), flush=True)


def fuzz(format_name: str, seed: int, count: int, seconds: float) -> Iterator[tuple[int, str | None]]:
    """Try `count` mutations of a format for at most so many seconds: each with its number and what was found."""
    end, first = time.monotonic() + seconds, 0
    while first < count and time.monotonic() < end:
        arguments = [format_name, str(seed), str(first), str(count), str(end - time.monotonic())]
        with subprocess.Popen(
            [sys.executable, "-m", "benchmarks.fuzz", "--worker", *arguments], stdout=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"},
        ) as process:  # fmt: skip
            begun = ended = first - 1
            for line in process.stdout or ():
                said = json.loads(line)
                begun = said.get("begun", begun)
                if "ended" in said:
                    ended = begun
                    yield begun, said["finding"]
        if begun == ended:
            if process.returncode:
                raise RuntimeError(f"the process that reads {format_name} ended with {process.returncode}")
            return
        yield begun, f"its process has ended with {process.returncode}"
        first = begun + 1


def keep(format_name: str, seed: int, number: int) -> Path:
    """Write the files of a case to `FINDINGS`, from where the tests read them."""
    target = FINDINGS / f"{format_name}-{seed}-{number}"
    with tempfile.TemporaryDirectory() as root:
        example = examples(Path(root))[format_name]
        write_files(mutated_files(example, random.Random(f"{format_name} {seed} {number}")), target)
    return target


def main() -> int:
    """Fuzz every format; exit 1 where anything was found."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1500, help="mutations per format")
    parser.add_argument("--seconds", type=float, default=600, help="the most time, all formats together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--format", action="append", help="only this one")
    parser.add_argument("--worker", nargs=5, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        _worker(given.worker[0], *map(int, given.worker[1:4]), float(given.worker[4]))
        return 0
    with tempfile.TemporaryDirectory() as root:
        names = given.format or sorted(examples(Path(root)))
    end, found = time.monotonic() + given.seconds, 0
    for place, name in enumerate(names):
        tried = 0
        for number, finding in fuzz(name, given.seed, given.count, (end - time.monotonic()) / (len(names) - place)):
            tried += 1
            if finding is not None:
                found += 1
                print(
                    f"{name} {given.seed} {number}: {finding}\n  kept in {keep(name, given.seed, number)}", flush=True
                )
        print(f"{name}: {tried} mutations", flush=True)
    print(f"{found} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""The app in hard times: many clients, kills of the server, a full disk and hostile uploads, all at the same time.

    python -m benchmarks.app_load --clients 50 --seconds 120 --seed 7
    python -m benchmarks.app_load --people --seconds 120     # who change the same things, in several tabs
    python -m benchmarks.app_load --strangers 1100 --clients 50 --seconds 120     # who do not know the token

The server keeps its work on a small disk of its own (a tmpfs, so this needs Linux and the right to mount). What it has
accepted, a dataset, a job, a graph, an event of a run, is there in the end, and every job is done. Every answer that is
no success is one sentence; none is a failure of the server, but for 503 (it is ending) and 507 (the disk is full).

With `--strangers N`, the server may open 1,024 files. N connections without a token send half a head each and are
opened again when they are closed, and 24 others send cookies that are slow to parse. What counts is how long clients
wait.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.hostile_files import HOSTILE
from benchmarks.server import GRAPH, STEPS

PATIENCE = 300.0
"""Seconds until a request, or a job after the last client, counts as lost."""
GROWTH = 50
"""Megabytes by which the server may hold more in the last third of its life than in the first."""
TOKEN = "a-token-for-the-load-test"
_HERE = "127.0.0.1"
_HALF = {"labels": [{"video": "\ud800", "step": "a"}]}
_NESTED = '{"labels": ' + "[" * 400 + "]" * 400 + "}"


# -- the server and its disk ------------------------------------------------------------------------------------


@contextmanager
def small_disk(megabytes: int) -> Iterator[Path]:
    """A disk of so many megabytes, in memory."""
    with tempfile.TemporaryDirectory() as folder:
        mounting = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "none", folder]
        if subprocess.run(mounting, check=False).returncode:
            raise SystemExit("a small disk cannot be mounted here: this needs Linux, and root")
        try:
            yield Path(folder)
        finally:
            subprocess.run(["umount", "--lazy", folder], check=True)


class ServerProcess:
    """`msg2 serve` at one address; it can be killed and started again."""

    def __init__(self, folder: Path, log: Path, files: int | None = None) -> None:
        self._files = files
        """As many it may open."""
        with socket.create_server((_HERE, 0)) as free:
            self.port = free.getsockname()[1]
        self.folder, self._log = folder, log
        self.down: list[tuple[float, float]] = []
        """From a kill until the server answered again."""
        self.process = self._start()
        self._wait()

    def _start(self) -> subprocess.Popen[bytes]:
        program = "import sys; from msg2.cli import main; sys.argv[0] = 'msg2'; main()"
        command = [sys.executable, "-c", program, "serve", "--folder", str(self.folder), "--port", str(self.port)]
        paths = os.pathsep.join(filter(None, sys.path))
        environment = os.environ | {"MSG2_TOKEN": TOKEN, "OMP_NUM_THREADS": "1", "PYTHONPATH": paths}
        limit = [] if self._files is None else ["prlimit", f"--nofile={self._files}:{self._files}"]
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [*limit, *command, "--no-browser"], env=environment, stdout=log, stderr=log, start_new_session=True
            )

    def _wait(self) -> bool:
        """Wait until the server answers; False where it has ended instead, maybe after it had begun to listen."""
        while self.process.poll() is None:
            connection = http.client.HTTPConnection(_HERE, self.port, timeout=PATIENCE)
            with closing(connection), suppress(OSError, http.client.HTTPException):
                connection.request("GET", "/")
                connection.getresponse()
                return True
            time.sleep(0.1)
        return False

    def kill(self) -> str | None:
        """Kill the server alone, so that its processes are left to themselves; what is wrong with that, or None."""
        killed = self.process.pid
        self.down.append((time.monotonic(), float("inf")))
        os.kill(killed, signal.SIGKILL)
        self.process.wait()
        end = time.monotonic() + 10
        while (left := _memory_of_session(killed)) and time.monotonic() < end:
            time.sleep(0.1)
        return f"a killed server left processes with {left} MB" if left else None

    def start(self) -> bool:
        """Start the server again; False where it has ended at once."""
        self.process = self._start()
        answering = self._wait()
        if answering and self.down:
            self.down[-1] = (self.down[-1][0], time.monotonic())
        return answering

    def stop(self) -> int:
        """End the server in good order, and give its exit status."""
        self.process.terminate()
        return self.process.wait(60)

    def log(self) -> str:
        """Everything that it has printed, and that of its predecessors."""
        return self._log.read_text("utf-8")

    def memory(self) -> tuple[int, int, int]:
        """The id of the server, megabytes that it holds itself, and that all of its processes hold together."""
        process = self.process.pid
        return process, _memory(process), _memory_of_session(process)


def _memory(process: int) -> int:
    try:
        found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process}/status").read_text())
    except OSError:
        return 0
    return int(found[1]) // 1024 if found else 0


def _memory_of_session(session: int) -> int:
    """Megabytes of all processes that one process has started, itself included."""
    total = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.getsid(int(entry.name)) == session:
                    total += _memory(int(entry.name))
            except OSError:  # it has ended meanwhile
                pass
    return total


# -- clients ----------------------------------------------------------------------------------------------------


@dataclass
class Seen:
    """What all clients saw."""

    answers: Counter[tuple[str, int]] = field(default_factory=Counter)
    """By kind of request and status; 0: none came, as the server was down."""
    problems: list[str] = field(default_factory=list)
    datasets: set[str] = field(default_factory=set)
    jobs: set[str] = field(default_factory=set)
    graphs: set[str] = field(default_factory=set)
    events: dict[str, int] = field(default_factory=dict)
    """Run -> events that were accepted."""


class RoughClient:
    """One client: it goes on until `end`, whatever happens to the server."""

    def __init__(self, server: ServerProcess, seen: Seen, seed: str) -> None:
        self._server, self._seen, self._random = server, seen, random.Random(seed)
        self._datasets: list[str] = []
        self._graphs: list[str] = []
        self._runs: list[str] = []

    def run(self, end: float) -> None:
        """Do anything in any order."""
        actions = [self._upload, self._learn, self._learn, self._infer, self._check, self._compare, self._read,
                   self._read, self._draw, self._follow, self._harm]  # fmt: skip
        while time.monotonic() < end:
            try:
                self._random.choice(actions)()
            except Exception as error:
                self._seen.problems.append(f"an answer that cannot be understood: {error!r}")

    def ask(self, what: str, method: str, path: str, body: Any = None) -> Any:
        """Send one request and judge its answer; None where that is no success."""
        content = body if isinstance(body, str | bytes | None) else json.dumps(body)
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        began = time.monotonic()
        connection = http.client.HTTPConnection(_HERE, self._server.port, timeout=PATIENCE)
        try:
            connection.request(method, path, content, headers)
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self._seen.answers[what, 0] += 1
            if not any(down < time.monotonic() and began < up for down, up in self._server.down):
                self._seen.problems.append(f"{what}: no answer, though the server was not down: {error!r}")
            time.sleep(0.2)
            return None
        finally:
            connection.close()
        self._seen.answers[what, answer.status] += 1
        if 200 <= answer.status < 300:
            return json.loads(text) if text[:1] in (b"{", b"[") else text
        if answer.status >= 500 and answer.status not in (503, 507):
            self._seen.problems.append(f"{what}: {answer.status} {text[:300]!r}")
        elif not _is_sentence(text):
            self._seen.problems.append(f"{what}: {answer.status}, no sentence: {text[:300]!r}")
        if answer.status in (429, 503, 507):
            time.sleep(0.5)
        return None

    def _order(self) -> list[str]:
        places = sorted(range(len(STEPS)), key=lambda place: place + self._random.gauss(0, 0.7))
        return [STEPS[place] for place in places]

    def _labels(self) -> list[dict[str, str]]:
        return [{"video": f"v{video}", "step": step} for video in range(5) for step in self._order()]

    def _upload(self) -> None:
        table = "video,step\n" + "".join(f"v{video},{step}\n" for video in range(10) for step in self._order())
        name = self._random.choice(["toast.csv", "..%2F..%2Fetc%2Fpasswd", "%3Cb%3E.csv"])
        self._keep(self.ask("upload", "POST", f"/api/data?name={name}", table), self._datasets, self._seen.datasets)

    def _learn(self) -> None:
        if self._datasets:
            job = self.ask("learn", "POST", "/api/work", {"data": self._random.choice(self._datasets)})
            self._keep(job, [], self._seen.jobs)

    def _draw(self) -> None:
        kept = self.ask("draw", "POST", "/api/drawn", {"graph": GRAPH})
        self._keep(kept, self._graphs, self._seen.graphs)

    def _keep(self, record: Any, own: list[str], everybodys: set[str]) -> None:
        if record is not None:
            own.append(record["id"])
            everybodys.add(record["id"])

    def _infer(self) -> None:
        graph = self.ask("infer", "POST", "/api/infer", {"labels": self._labels()})
        if graph is not None and sorted(graph["steps"]) != sorted(STEPS):
            self._seen.problems.append(f"infer: {graph}")

    def _check(self) -> None:
        labels = [{"video": "v", "step": name} for name in ("fry", "dip")]
        report = self.ask("check", "POST", "/api/check", {"graph": GRAPH, "labels": labels})
        if report is not None and not report["mistakes"]:
            self._seen.problems.append(f"check: {report}")

    def _compare(self) -> None:
        if self._graphs:
            one, other = (self._random.choice(self._graphs) for _ in range(2))
            self.ask("compare", "GET", f"/api/compare?first={one}&second={other}")

    def _read(self) -> None:
        paths = ["/", "/api/choices", *(f"/api/data/{id}/labels" for id in self._datasets[-1:])]
        paths += [f"/{path}" for id in self._graphs[-1:] for path in (f"page/{id}", f"api/work/{id}/as/svg")]
        self.ask("read", "GET", self._random.choice(paths))

    def _follow(self) -> None:
        if not self._runs and self._graphs:
            opened = self.ask("open a run", "POST", "/api/runs", {"graph": self._graphs[0], "data": None})
            if opened is not None:
                self._runs.append(opened["id"])
                self._seen.events[opened["id"]] = 0
        elif self._runs:
            event = {"did": self._random.choice(STEPS)}
            if self.ask("tell a run", "POST", f"/api/runs/{self._runs[0]}/events", event) is not None:
                self._seen.events[self._runs[0]] += 1

    def _harm(self) -> None:
        if self._random.random() < 0.5:
            name, content = self._random.choice([*HOSTILE.values()])
            answer = self.ask("hostile upload", "POST", f"/api/data?name={name}", content)
        else:
            answer = self.ask(
                "hostile body", "POST", "/api/infer", self._random.choice([_NESTED, _HALF, "[" * 100_000])
            )
            name = "a body"
        if answer is not None:
            self._seen.problems.append(f"{name} that means harm was accepted: {str(answer)[:200]}")


def _is_sentence(text: bytes) -> bool:
    try:
        problem = json.loads(text)
    except ValueError:
        return False
    whole = isinstance(problem, dict) and {*problem} == {"error", "where", "hint"}
    return whole and 5 < len(problem["error"]) < 1100 and "\n" not in problem["error"] and b"Traceback" not in text


# -- hard times -------------------------------------------------------------------------------------------------


@contextmanager
def full_disk(folder: Path) -> Iterator[None]:
    """Leave no room on the disk of `folder`, also where some is made."""
    ended = threading.Event()

    def fill() -> None:
        with (folder / "filler").open("ab", buffering=0) as file:
            while not ended.wait(0.02):
                for size in (1 << 20, 4096):
                    with suppress(OSError):
                        while True:
                            file.write(bytes(size))

    filling = threading.Thread(target=fill)
    filling.start()
    try:
        yield
    finally:
        ended.set()
        filling.join()
        (folder / "filler").unlink()


def disturb(server: ServerProcess, disk: Path, seconds: float) -> Iterator[str]:
    """Kills, a full disk, and a kill while it is full, spread over so many seconds; yields what was wrong."""
    pause = seconds / 8

    def kill() -> Iterator[str]:
        wrong = server.kill()
        if wrong:
            yield wrong

    for _ in range(2):
        time.sleep(pause)
        yield from kill()
        if not server.start():
            yield "a killed server did not start again"
    time.sleep(pause)
    with full_disk(disk):
        time.sleep(pause)
    time.sleep(pause)
    with full_disk(disk):
        time.sleep(pause / 2)
        yield from kill()
        server.start()  # it may say that it cannot, in one line
        time.sleep(pause / 2)
    if server.process.poll() is not None and not server.start():
        yield "a server did not start again once there was room"
    time.sleep(pause)


def judge(server: ServerProcess, seen: Seen) -> Iterator[str]:
    """What is not there in the end though it was accepted, and jobs that are not done."""
    client, end = RoughClient(server, Seen(), "judge"), time.monotonic() + PATIENCE
    works: dict[str, dict[str, Any]] = {}
    while time.monotonic() < end:
        works = {work["id"]: work for work in client.ask("", "GET", "/api/work")["work"]}
        if not {"waiting", "running"} & {work["state"] for work in works.values()}:
            break
        time.sleep(0.5)
    for job in seen.jobs:
        work = works.get(job, {"state": "gone"})
        if work["state"] != "done":
            yield f"job {job}: {work['state']}, {work.get('problem')}"
    yield from (f"graph {graph}: gone" for graph in seen.graphs - {*works})
    kept = {data["id"] for data in client.ask("", "GET", "/api/data")["data"]}
    yield from (f"dataset {data}: gone" for data in seen.datasets - kept)
    runs = {run["id"]: run["events"] for run in client.ask("", "GET", "/api/runs")["runs"]}
    for run, events in seen.events.items():
        if runs.get(run, -1) < events:
            yield f"run {run}: {runs.get(run, 'gone')} of {events} events"


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    seen: Seen
    lost: list[str]
    """What was accepted and is lost, or else wrong in the end."""
    lives: list[tuple[int, int]]
    """Of each server, from a start to a kill: most megabytes in the first and in the last third of its life."""
    processes: int
    """Most megabytes of all processes together; what they share is counted in each."""


def run_load(clients: int, seconds: float, seed: int, megabytes: int) -> Outcome:
    """Let clients and hard times loose on a server.

    Parameters
    ----------
    clients : int
        Clients at the same time.
    seconds : float
        How long they go on.
    seed : int
        What the clients do follows from it.
    megabytes : int
        Of the disk.

    Returns
    -------
    Outcome
        What came of it.
    """
    seen, lost = Seen(), list[str]()
    memory: list[tuple[int, int, int]] = []
    with tempfile.TemporaryDirectory() as folder, small_disk(megabytes) as disk:
        server = ServerProcess(disk / "work", Path(folder, "log"))
        end = time.monotonic() + seconds
        threads = [
            threading.Thread(target=RoughClient(server, seen, f"{seed} {number}").run, args=(end,))
            for number in range(clients)
        ]
        done = threading.Event()

        def watch() -> None:
            while not done.wait(1):
                memory.append(server.memory())

        watching = threading.Thread(target=watch)
        for thread in [*threads, watching]:
            thread.start()
        try:
            lost += disturb(server, disk, seconds)
            for thread in threads:
                thread.join()
            lost += judge(server, seen)
        finally:
            done.set()
            watching.join()
            status = server.stop()
        if status != 0:
            lost.append(f"the server ended with {status}")
        left = [path for path in disk.rglob("*") if path.name.startswith(".msg2-") or path.parent.name == "scratch"]
        lost += [f"left {path.relative_to(disk)}" for path in left]
        lost += ["a traceback in the log:\n" + server.log()[-3000:]] if "Traceback" in server.log() else []
    lives = [*_lives(memory)]
    lost += [f"the memory of the server grew: {first} to {last} MB" for first, last in lives if last > first + GROWTH]
    return Outcome(seen, lost, lives, max((total for *_, total in memory), default=0))


# -- strangers --------------------------------------------------------------------------------------------------


def send_half_heads(port: int, count: int, end: float) -> None:
    """Keep so many connections open on which half a head was sent."""
    opened: list[socket.socket] = []
    while time.monotonic() < end:
        for connection in opened[:]:
            if not _is_open(connection):
                connection.close()
                opened.remove(connection)
        for _ in range(min(100, count - len(opened))):
            with suppress(OSError):
                connection = socket.create_connection((_HERE, port), timeout=1)
                connection.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: ")
                connection.setblocking(False)
                opened.append(connection)
        time.sleep(0.05)
    for connection in opened:
        connection.close()


def _is_open(connection: socket.socket) -> bool:
    try:
        return bool(connection.recv(1, socket.MSG_PEEK))
    except BlockingIOError:
        return True
    except OSError:
        return False


def send_cookies(port: int, end: float) -> None:
    """Send one cookie after the other that is slow to parse."""
    cookie = 'a="' + '\\"' * 30_000 + '"'
    while time.monotonic() < end:
        connection = http.client.HTTPConnection(_HERE, port, timeout=PATIENCE)
        with closing(connection), suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/", headers={"Cookie": cookie})
            connection.getresponse().read()
        time.sleep(0.1)


def run_strangers(strangers: int, clients: int, seconds: float) -> tuple[list[float], list[str], int]:
    """Seconds that clients waited for answers, what went wrong, and bytes of the log, beside so many strangers."""
    seen, waited = Seen(), list[float]()
    with tempfile.TemporaryDirectory() as folder:
        server = ServerProcess(Path(folder, "work"), Path(folder, "log"), files=1024)
        first = RoughClient(server, seen, "first")
        first._upload()
        end = time.monotonic() + seconds

        def use(number: int) -> None:
            client = RoughClient(server, seen, str(number))
            client._datasets = [*first._datasets]
            for turn in range(1_000_000):
                if time.monotonic() > end:
                    break
                began = time.monotonic()
                client.ask("list data", "GET", "/api/data")
                waited.append(time.monotonic() - began)
                if number < 5 and turn % 20 == 10:
                    client._learn()
                time.sleep(0.5)

        work: list[tuple[Any, tuple[Any, ...]]] = [(use, (number,)) for number in range(clients)]
        work += [(send_half_heads, (server.port, strangers, end))] + [(send_cookies, (server.port, end))] * 24
        threads = [threading.Thread(target=function, args=arguments) for function, arguments in work]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        problems = [*seen.problems, *judge(server, seen)]
        server.stop()
        return waited, problems, len(server.log())


# -- people -----------------------------------------------------------------------------------------------------


class Tab:
    """A tab in which a person adds labels of one video, steps, and steps of one graph, as the pages do it."""

    def __init__(self, server: ServerProcess, data: str, graph: str, person: str, name: str) -> None:
        self._server, self._data, self._graph, self._person, self._name = server, data, graph, person, name
        self._random, self._number = random.Random(name), 0
        self.accepted: dict[str, list[str]] = {"label": [], "step": [], "graph": []}
        self.conflicts = self.lost = 0

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send one request until it is answered; some answers are lost, and what was sent is sent again."""
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        while True:
            connection = http.client.HTTPConnection(_HERE, self._server.port, timeout=PATIENCE)
            with closing(connection), suppress(OSError, http.client.HTTPException):
                connection.request(method, path, None if body is None else json.dumps(body), headers)
                if body is not None and self._random.random() < 0.2:
                    self.lost += 1
                    time.sleep(self._random.random() / 5)
                    continue
                answer = connection.getresponse()
                text = answer.read()
                if answer.status < 500:
                    return answer.status, json.loads(text) if text else None
            time.sleep(0.2)

    def run(self, end: float) -> None:
        """Add one thing after the other."""
        while time.monotonic() < end:
            self._number += 1
            self._random.choice([self.add_label, self.add_step, self.add_to_graph])(f"{self._name} {self._number}")
            time.sleep(self._random.random() / 5)

    def add_label(self, step: str) -> None:
        """Add a label on top of what the server has, and again where that is another state by then."""
        kept = self.labels()
        save_id = step
        while True:
            row = {"video": "v0", "step": step, "source": self._person}
            settled = [*kept["settled"], {"step": step, "outcome": "rejected"}]
            body = {
                "task": "toast",
                "person": self._person,
                "video": "v0",
                "version": kept["version"],
                "save_id": save_id,
            }
            status, answer = self.ask(
                "PUT",
                f"/api/data/{self._data}/workbench",
                {**body, "labels": [*kept["labels"], row], "settled": settled},
            )
            if status == 200 or (status == 409 and answer["current"].get("save_id") == save_id):
                self.accepted["label"].append(step)
                return
            kept, self.conflicts = answer["current"], self.conflicts + 1
            if any(known["step"] == step for known in kept["labels"]):  # saved, its answer lost, and built upon
                self.accepted["label"].append(step)
                return

    def labels(self) -> dict[str, Any]:
        """The labels of the video by this person."""
        opened = self.ask("GET", f"/api/data/{self._data}/workbench?person={self._person}&task=toast")[1]
        return next(video for video in opened["videos"] if video["video"] == "v0")  # type: ignore[no-any-return]

    def add_step(self, step: str) -> None:
        """Add a step for everybody."""
        status, _ = self.ask("POST", f"/api/data/{self._data}/workbench/steps", {"task": "toast", "steps": [step]})
        if status == 204:
            self.accepted["step"].append(step)

    def add_to_graph(self, step: str) -> None:
        """Add a step to the graph, on top of what the server has."""
        version = self.ask("GET", f"/api/work/{self._graph}")[1]["version"]  # first: what comes then is no older
        graph = self.ask("GET", f"/api/work/{self._graph}/as/json")[1]
        while step not in graph["steps"]:
            changed = {**graph, "steps": [*graph["steps"], step]}
            body = {"graph": changed, "replaces": self._graph, "version": version, "save_id": step}
            status, answer = self.ask("POST", "/api/drawn", body)
            if status == 201:
                break
            current, self.conflicts = answer["current"], self.conflicts + 1
            graph, version = current["graph"], current["version"]
        self.accepted["graph"].append(step)


def run_people(seconds: float, seed: int) -> tuple[str, list[str]]:
    """Two people with two tabs each change the same things beside kills: what happened, and what is missing."""
    with tempfile.TemporaryDirectory() as folder:
        server = ServerProcess(Path(folder, "work"), Path(folder, "log"))
        seen = Seen()
        client = RoughClient(server, seen, "first")
        table = "video,step\n" + "".join(f"v{video},{step}\n" for video in range(3) for step in STEPS)
        data = client.ask("upload", "POST", "/api/data?name=toast.csv", table)
        graph = client.ask("draw", "POST", "/api/drawn", {"graph": GRAPH})
        client.ask("open", "GET", f"/api/data/{data['id']}/workbench?person=Ann&task=toast")
        tabs = [
            Tab(server, data["id"], graph["id"], person, f"{person} {seed} {tab}")
            for person in ("Ann", "Ben") for tab in (1, 2)
        ]  # fmt: skip
        end = time.monotonic() + seconds
        threads = [threading.Thread(target=tab.run, args=(end,)) for tab in tabs]
        for thread in threads:
            thread.start()
        while time.monotonic() < end - 5:
            time.sleep(min(10, seconds / 4))
            server.kill()
            server.start()
        for thread in threads:
            thread.join()
        missing = []
        steps = {*tabs[0].ask("GET", f"/api/work/{graph['id']}/as/json")[1]["steps"]}
        opened = {*tabs[0].ask("GET", f"/api/data/{data['id']}/workbench?person=Ann&task=toast")[1]["steps"]}
        for tab in tabs:
            kept = tab.labels()
            labels = {row["step"] for row in kept["labels"]} & {row["step"] for row in kept["settled"]}
            for what, there in (("label", labels), ("step", opened), ("graph", steps)):
                missing += [f"{what} {name}" for name in tab.accepted[what] if name not in there]
        counts = {what: sum(len(tab.accepted[what]) for tab in tabs) for what in tabs[0].accepted}
        conflicts, lost = sum(tab.conflicts for tab in tabs), sum(tab.lost for tab in tabs)
        said = f"accepted: {counts}; {conflicts} conflicts, {lost} lost answers, {len(server.down)} kills"
        missing += ["a traceback in the log:\n" + server.log()[-2000:]] if "Traceback" in server.log() else []
        server.stop()
        return said, missing


def _lives(memory: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, int]]:
    for process in dict.fromkeys(process for process, *_ in memory):
        held = [own for one, own, _ in memory if one == process and own]
        if len(held) >= 3:
            yield max(held[: len(held) // 3]), max(held[-(len(held) // 3) :])


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was seen; 1 where anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--disk", type=int, default=1000, metavar="MB", help="size of the disk of the server")
    parser.add_argument("--strangers", type=int, help="so many who do not know the token, instead of hard times")
    parser.add_argument("--people", action="store_true", help="two people with two tabs each, instead of hard times")
    given = parser.parse_args(arguments)
    if given.people:
        said, missing = run_people(given.seconds, given.seed)
        print(f"{said}; {len(missing)} missing", *missing[:10], sep="\n")
        return int(bool(missing))
    if given.strangers is not None:
        waited, problems, log = run_strangers(given.strangers, given.clients, given.seconds)
        waited.sort()
        shares = ", ".join(f"{waited[int(share * (len(waited) - 1))]:.2f} s ({share:.0%})" for share in (0.5, 0.99, 1))
        print(f"{len(waited)} answers waited for: {shares}; log {log:,} bytes; {len(problems)} lost or wrong")
        print(*problems[:10], sep="\n")
        return int(bool(problems))
    outcome = run_load(given.clients, given.seconds, given.seed, given.disk)
    seen = outcome.seen
    statuses = sorted({status for _, status in seen.answers})
    print(f"| Request | {' | '.join(str(status or 'down') for status in statuses)} |\n|{'---|' * (1 + len(statuses))}")
    for what in sorted({what for what, _ in seen.answers}):
        print(f"| {what} | {' | '.join(str(seen.answers[what, status]) for status in statuses)} |")
    lives = ", ".join(f"{first} to {last}" for first, last in outcome.lives)
    print(f"\nmemory of the server, first to last third of each life: {lives} MB; all processes {outcome.processes} MB")
    print(
        f"accepted: {len(seen.datasets)} datasets, {len(seen.jobs)} jobs, {len(seen.graphs)} graphs, "
        f"{sum(seen.events.values())} events; {len(outcome.lost)} lost or wrong; {len(seen.problems)} bad answers"
    )
    for problem in [*outcome.lost, *seen.problems][:20]:
        print(problem)
    return int(bool(outcome.lost or seen.problems))


if __name__ == "__main__":
    sys.exit(main())

"""Many clients of one server at the same time: no error, and no job that is lost.

Every client uploads, learns, asks and downloads, in an order of its own, and looks at every answer. Times depend on the
machine, so they come beside the time that one client alone takes for the same.
"""

from __future__ import annotations

import argparse
import http.client
import json
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import quantiles
from typing import Any

STEPS = ["whisk", "heat", "dip", "fry", "flip", "serve"]
PATIENCE = 300.0
"""Seconds until a request, or a job, counts as lost."""


@dataclass
class LoadClient:
    """One client: it sends a request of each kind, and then any until `end`; what it saw is in its fields."""

    port: int
    seed: int
    times: dict[str, list[float]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    jobs: list[str] = field(default_factory=list)

    def run(self, end: float) -> None:
        """Upload, then everything once, then anything in any order."""
        self._random = random.Random(self.seed)
        kinds = [self._learn, self._infer, self._next, self._check, self._list]
        try:
            data = self.ask("upload", "POST", f"/api/data?name=toast-{self.seed}.csv", self._table())["id"]
            for send in self._random.sample(kinds, len(kinds)):
                send(data)
            while time.monotonic() < end:
                self._random.choice(kinds)(data)
        except Exception as error:
            self.errors.append(f"client {self.seed}: {error!r}")

    def ask(self, what: str, method: str, path: str, body: Any = None) -> Any:
        """Send one request, which must be a success, and return its answer: parsed where it is JSON, else its bytes.

        Its time is kept under `what`; a `body` that is no text is sent as JSON.
        """
        content = body if isinstance(body, str | None) else json.dumps(body)
        headers = {"Content-Type": "application/json" if content is not body else "application/octet-stream"}
        begin = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        try:
            connection.request(method, path, content, headers)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        self.times.setdefault(what, []).append(time.monotonic() - begin)
        if answer.status not in (200, 201, 204):
            self.errors.append(f"{what}: {answer.status} {text[:200]!r}")
        return json.loads(text) if text[:1] in (b"{", b"[") else text

    def _table(self) -> str:
        rows = [f"v{video},{step}\n" for video in range(10) for step in self._order()]
        return "video,step\n" + "".join(rows)

    def _order(self) -> list[str]:
        places = sorted(range(len(STEPS)), key=lambda place: place + self._random.gauss(0, 0.7))
        return [STEPS[place] for place in places]

    def _rows(self) -> list[dict[str, str]]:
        return [{"video": f"v{video}", "step": step} for video in range(5) for step in self._order()]

    def _learn(self, data: str) -> None:
        self.jobs.append(self.ask("begin a job", "POST", "/api/work", {"data": data})["id"])

    def _infer(self, data: str) -> None:
        graph = self.ask("infer", "POST", "/api/infer", {"labels": self._rows()})
        if sorted(graph["steps"]) != sorted(STEPS):
            self.errors.append(f"infer: {graph}")

    def _next(self, data: str) -> None:
        ranked = self.ask("next", "POST", "/api/next", {"graph": GRAPH, "done": ["whisk"]})["steps"]
        if ranked[0]["step"] != "dip":
            self.errors.append(f"next: {ranked}")

    def _check(self, data: str) -> None:
        labels = [{"video": "v", "step": name} for name in ("fry", "dip")]
        report = self.ask("check", "POST", "/api/check", {"graph": GRAPH, "labels": labels})
        if not report["mistakes"]:
            self.errors.append(f"check: {report}")

    def _list(self, data: str) -> None:
        if self.ask("one dataset", "GET", f"/api/data/{data}")["id"] != data:
            self.errors.append("one dataset: it is another one")


GRAPH = {
    "format": "msg2.graph/1", "task": "toast", "steps": STEPS,
    "preconditions": {"dip": "whisk", "fry": {"all": ["dip", "heat"]}, "flip": "fry", "serve": "flip"},
}  # fmt: skip


@dataclass(frozen=True)
class LoadResult:
    """What came of it: times in seconds by kind of request, errors, and jobs that did not come to a good end."""

    times: dict[str, list[float]]
    errors: list[str]
    jobs: int
    lost: list[str]


def run_load_test(clients: int, seconds: float) -> LoadResult:
    """Run clients against a server, and wait until the last job has ended.

    Parameters
    ----------
    clients : int
        Clients at the same time.
    seconds : float
        How long each of them goes on after a request of each kind.

    Returns
    -------
    LoadResult
        What they saw.
    """
    with tempfile.TemporaryDirectory() as folder:
        program = Path(sys.executable).with_name("msg2")
        command = [program, "serve", "--folder", f"{folder}/work", "--port", "0", "--no-token", "--no-browser"]
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert server.stdout is not None
        try:
            port = re.search(r":(\d+)/", server.stdout.readline())
            assert port
            return _run_clients(int(port[1]), clients, seconds)
        finally:
            server.terminate()
            server.communicate(timeout=30)


def _run_clients(port: int, clients: int, seconds: float) -> LoadResult:
    group = [LoadClient(port, seed) for seed in range(clients)]
    end = time.monotonic() + seconds
    threads = [threading.Thread(target=client.run, args=(end,)) for client in group]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    begun = {job for client in group for job in client.jobs}
    states: dict[str, str] = {}
    while time.monotonic() < end + PATIENCE:
        states = {work["id"]: work["state"] for work in LoadClient(port, -1).ask("", "GET", "/api/work")["work"]}
        if not {"waiting", "running"} & set(states.values()):
            break
        time.sleep(0.5)
    kinds = sorted({kind for client in group for kind in client.times})
    times = {kind: [time for client in group for time in client.times.get(kind, ())] for kind in kinds}
    lost = [f"{job}: {states.get(job, 'gone')}" for job in begun if states.get(job) != "done"]
    return LoadResult(times, [error for client in group for error in client.errors], len(begun), lost)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the tables; 1 where anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args(arguments)
    alone = run_load_test(1, min(5, given.seconds))
    together = run_load_test(given.clients, given.seconds)
    print(f"{given.clients} clients for {given.seconds:g} s; seconds, median and the slowest 5 %\n")
    print(f"| Request | Count | Median | 95 % | One client alone |\n|{'---|' * 5}")
    for kind, times in together.times.items():
        cuts = quantiles(times, n=20) if len(times) > 1 else times * 19
        single = f"{min(alone.times[kind]):.3f}" if kind in alone.times else ""
        print(f"| {kind} | {len(times)} | {cuts[9]:.3f} | {cuts[18]:.3f} | {single} |")
    count = sum(map(len, together.times.values()))
    print(f"\n{count} requests, {len(together.errors)} errors; {together.jobs} jobs, {len(together.lost)} lost")
    for problem in [*together.errors, *together.lost][:10]:
        print(problem)
    return int(bool(together.errors or together.lost))


if __name__ == "__main__":
    sys.exit(main())

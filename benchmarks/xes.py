"""How long a large XES log takes to read, and how much memory: `python -m benchmarks.xes`.

The log is made in a temporary folder. Time is also a ratio to a pass of expat over the same bytes that calls a function
which does nothing for every element, which no reader in Python can do without; memory is the peak of a process of its
own, above that of one which has only imported msg2. Fails where that is above `MOST_SHARE` of the file.
"""

from __future__ import annotations

import argparse
import random
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.parsers import expat

MOST_SHARE = 0.5
"""Of the file's size, in memory: the labels stay, the file does not."""
ACTIVITIES = [f"activity {number:02d}" for number in range(40)]
HEAD = """<?xml version="1.0" encoding="UTF-8" ?>
<log xes.version="1.0" xmlns="http://www.xes-standard.org/">
  <extension name="Concept" prefix="concept" uri="http://www.xes-standard.org/concept.xesext"/>
  <string key="concept:name" value="synthetic"/>
"""
EVENT = """    <event>
      <string key="concept:name" value="{step}"/>
      <string key="lifecycle:transition" value="{phase}"/>
      <date key="time:timestamp" value="{time}"/>
      <string key="org:resource" value="clerk {clerk}"/>
      <int key="cost" value="{cost}"/>
    </event>
"""


def write_log(path: Path, megabytes: float, seed: int = 0) -> int:
    """A log of about that size; the number of its events, half of them starts and half completes."""
    rng = random.Random(seed)
    events = case = 0
    with path.open("w", encoding="utf-8") as file:
        file.write(HEAD)
        while file.tell() < megabytes * 1e6:
            case += 1
            file.write(f'  <trace>\n    <string key="concept:name" value="case {case}"/>\n')
            now = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(minutes=case)
            for step in rng.sample(ACTIVITIES, 12):
                for phase in ("start", "complete"):
                    now += timedelta(milliseconds=rng.randrange(1, 600_000))
                    clerk, cost = rng.randrange(50), rng.randrange(1000)
                    at = now.isoformat(timespec="milliseconds")
                    file.write(EVENT.format(step=step, phase=phase, time=at, clerk=clerk, cost=cost))
                    events += 1
            file.write("  </trace>\n")
        file.write("</log>\n")
    return events


def plain_pass(path: Path) -> None:
    """Expat alone, which tells of every element."""
    parser = expat.ParserCreate()
    parser.StartElementHandler = lambda name, attributes: None
    parser.EndElementHandler = lambda name: None
    with path.open("rb") as file:
        parser.ParseFile(file)


def measured(path: str, what: str) -> tuple[float, float]:
    """Seconds and peak megabytes of a process of its own that imports msg2, and then reads the log or does not."""
    code = (
        "import logging, sys; logging.disable(logging.WARNING); from benchmarks import xes; import msg2.formats;"
        "print(*xes.run(*sys.argv[1:]))"
    )
    output = subprocess.run([sys.executable, "-c", code, path, what], capture_output=True, text=True, check=True).stdout
    seconds, megabytes = map(float, output.split())
    return seconds, megabytes


def run(path: str, what: str) -> tuple[float, float]:
    """What `measured` does in its process."""
    from msg2.formats import read_all

    start = time.perf_counter()
    if what == "read":
        read_all(path)
    elif what == "plain":
        plain_pass(Path(path))
    return time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the figures; 1 where memory is above what is promised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=200)
    megabytes = parser.parse_args(arguments).megabytes
    with TemporaryDirectory() as folder:
        path = Path(folder, "log.xes")
        events = write_log(path, megabytes)
        size = path.stat().st_size / 1e6
        idle = measured(str(path), "nothing")[1]
        plain = measured(str(path), "plain")[0]
        seconds, peak = measured(str(path), "read")
    print(f"{size:.0f} MB, {events} events: {seconds:.1f} s, {seconds / plain:.2f} × a plain pass of expat")
    print(f"peak memory {peak:.0f} MB, of which {idle:.0f} MB is there before: {(peak - idle) / size:.2f} × the file")
    return int(size > 20 and peak - idle > MOST_SHARE * size)


if __name__ == "__main__":
    sys.exit(main())

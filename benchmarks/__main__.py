"""`make benchmark`: prints the tables, and fails where growth is worse than promised."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

from benchmarks.inference import BASELINE, RUNS, Timing, growth, peak_megabytes, seconds, synthetic, timings
from msg2.readers import read_all

VIDEOS = (1000, 2000, 4000, 8000)
STEPS = (20, 40, 80, 160)


def main() -> int:
    """Run everything; 1 where the fitted growth is above linear in videos or cubic in steps."""
    logging.disable(logging.WARNING)
    data = Path(os.environ.get("MSG2_DATA", "../shared/data")) / "crosstask" / "crosstask_release"
    if data.is_dir():
        show("18 CrossTask tasks together", timings(read_all(data)))
    else:
        print(f"CrossTask is not in {data} (set MSG2_DATA): left out")
    for steps, videos in ((25, 20), (60, 1_000)):
        show(f"{steps} steps, {videos} videos", timings([synthetic(steps, videos)], repeats=1))
    quick = [run for run in RUNS if run != "likelihood"]
    for steps, videos in ((60, 10_000), (300, 2_000)):
        show(f"{steps} steps, {videos} videos", timings([synthetic(steps, videos)], quick, repeats=1))
        print(f"peak memory so far: {peak_megabytes():.0f} MB\n")
    failed = False
    for what, sizes, tasks, most in (
        ("videos (40 steps)", VIDEOS, [synthetic(40, n) for n in VIDEOS], 1.15),
        ("steps (1000 videos)", STEPS, [synthetic(n, 1000) for n in STEPS], 3.0),
    ):
        for run in ("msg2", BASELINE):
            exponent = growth(sizes, [seconds([task], run) for task in tasks])
            failed |= run == "msg2" and exponent > most
            print(f"{run}: time grows with {what} to the power {exponent:.2f} (msg2: at most {most})")
    return int(failed)


def show(title: str, rows: list[Timing]) -> None:
    """One table."""
    print(title)
    for row in rows:
        print(f"  {row.run:18} {row.seconds:8.3f} s   {row.ratio:6.2f} × {BASELINE}")


if __name__ == "__main__":
    sys.exit(main())

"""`make benchmark`: prints the tables of speed, and fails where growth is worse than promised."""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path

from experiments.experiment_options import ExperimentOptions
from experiments.graph_learning.runtime_scaling import BASELINE, growth_exponents, measure_timings, peak_megabytes, run
from msg2.formats import read_all

MOST = {"videos": 1.15, "steps": 3.0}
"""Exponents of growth of the paper's method: linear, but for noise, and cubic."""


def main() -> int:
    """Run everything; 1 where the fitted growth is above linear in videos or cubic in steps."""
    logging.disable(logging.WARNING)
    data = Path(os.environ.get("MSG2_DATA", "../shared/data")) / "crosstask" / "crosstask_release"
    if data.is_dir():
        print("18 CrossTask tasks together")
        for row in measure_timings(read_all(data)):
            print(f"  {row.run:18} {row.seconds:8.3f} s   {row.ratio:6.2f} × {BASELINE}")
    else:
        print(f"CrossTask is not in {data} (set MSG2_DATA): left out")
    print(run(None, ExperimentOptions(), lambda news: print(news, file=sys.stderr)).to_markdown())
    print(f"peak memory: {peak_megabytes():.0f} MB")
    exponents = dict(zip(MOST, growth_exponents("msg2"), strict=True))
    for what, most in MOST.items():
        print(f"msg2 grows with {what} to the power {exponents[what]:.2f} (at most {most})")
    return int(any(exponents[what] > most for what, most in MOST.items()))


if __name__ == "__main__":
    sys.exit(main())

"""How difficult the simulated features are: `python -m benchmarks.features` prints the probe against the clutter."""

from __future__ import annotations

import sys

from msg2.experiments.probe import difficulty

if __name__ == "__main__":
    print(difficulty(report=lambda stage: print(stage, file=sys.stderr)).to_markdown())

"""How difficult the simulated features are: `python -m benchmarks.features` prints the probe against the clutter."""

from __future__ import annotations

import sys

from experiments.state_prediction.linear_probe import difficulty_table


def _print_progress(done: int, total: int | None, message: str) -> None:
    print(f"{done} of {total}: {message}", file=sys.stderr)


if __name__ == "__main__":
    print(difficulty_table(progress=_print_progress).to_markdown())

"""The directly-follows graph of the data itself: how often one step came right after another, nothing learnt.

An arrow from a to b counts the places where b is the next label after a, over all videos; START and END stand for the
beginning and the end of a video.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise

from msg2.drawing import style
from msg2.drawing.dot import quote, tooltip
from msg2.drawing.style import PictureOptions
from msg2.graph import END, START
from msg2.task import Step, Task
from msg2.text import wrap

_RARE = 0.05
"""Share of the videos below which an arrow is left out, unless it is the most frequent one from or to a step."""
_LABEL_COLUMNS = 22
_Pair = tuple[Step | None, Step | None]


def directly_follows(task: Task) -> Counter[_Pair]:
    """Count the direct successions of a task; None before the first and after the last step of a video."""
    sequences = [[None, *video.sequence(), None] for video in task if video.segments]
    return Counter(pair for sequence in sequences for pair in pairwise(sequence))


def directly_follows_dot(task: Task, options: PictureOptions) -> str:
    """Draw how often one step came right after another; the wider an arrow, the more often."""
    counts = directly_follows(task)
    drawn = _frequent(counts, len(task))
    names: list[Step | None] = [None, *task.steps]
    ids = {name: f"s{number}" for number, name in enumerate(names)}
    limit = "" if options.inches is None else f'size="{options.inches:.4g},1000", '
    hidden = len(counts) - len(drawn)
    said = f"{hidden} rarer successions are not drawn" if hidden else ""
    lines = [
        f'graph [rankdir={options.direction}, {limit}pad=0.15, bgcolor="{style.PAPER}", fontname="sans-serif", '
        f'fontsize={options.font_size:g}, fontcolor="{style.QUIET_INK}", labelloc=b, label={quote(said)}];',
        f'node [shape=box, style="rounded,filled", fillcolor="{style.STEP_FILL}", color="{style.STEP_LINE}", '
        f'fontname="sans-serif", fontsize={options.font_size:g}, fontcolor="{style.INK}", height=0.3];',
        f'edge [color="{style.ARROW["common"]}", fontcolor="{style.INK}", fontname="sans-serif", '
        f"fontsize={0.86 * options.font_size:.3g}, arrowsize=0.65];",
    ]
    done = Counter(segment.step for video in task for segment in video.segments)
    for name in task.steps:
        label = "\\n".join(quote(line)[1:-1] for line in wrap(name, _LABEL_COLUMNS, 90))
        lines.append(f'{ids[name]} [label="{label}\\n{done[name]}", tooltip={tooltip(name)}];')
    ends = f'shape=circle, label="", width=0.2, fillcolor="{style.START_FILL}", color="{style.START_LINE}"'
    lines += [f"start [{ends}, tooltip={START}];", f"end [{ends}, peripheries=2, tooltip={END}];"]
    most = max(counts.values(), default=1)
    for (before, after), count in drawn.items():
        source, target = ids[before] if before is not None else "start", ids[after] if after is not None else "end"
        lines.append(f"{source} -> {target} [label={count}, penwidth={0.6 + 2.4 * count / most:.2f}];")
    return "digraph {\n  " + "\n  ".join(lines) + "\n}\n"


def _frequent(counts: Mapping[_Pair, int], videos: int) -> dict[_Pair, int]:
    """The pairs that are drawn, the most frequent first."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], [name or "" for name in item[0]]))
    best_from: dict[Step | None, _Pair] = {}
    best_to: dict[Step | None, _Pair] = {}
    for pair, _ in ranked:
        best_from.setdefault(pair[0], pair)
        best_to.setdefault(pair[1], pair)
    kept = {*best_from.values(), *best_to.values()}
    return {pair: count for pair, count in ranked if count >= _RARE * videos or pair in kept}

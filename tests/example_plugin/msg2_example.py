"""A plug-in for the tests: a method, a format and a ranker, in a package of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msg2.assist import RankerFactory
from msg2.formats.reading import LabelCollector, ReadOptions, WriteOptions, file_reader, files_where
from msg2.formats.source import Source
from msg2.graph import step
from msg2.inference import Method
from msg2.inference.result import LearnedPreconditions
from msg2.options import Count, options_class
from msg2.sequences import Sequences
from msg2.task import Segment, Task


@options_class
class ChainOptions:
    """Of the method `chain`."""

    skip: Count = 1
    """Number of places between a step and the one it needs."""


def learn(sequences: Sequences, options: ChainOptions) -> LearnedPreconditions:
    """Every step needs the one before it in the alphabet."""
    names = sorted(sequences.steps)
    return LearnedPreconditions(
        {name: step(before) for before, name in zip(names, names[options.skip :], strict=False)}, {}
    )


METHOD = Method(ChainOptions, learn, "A step needs the one before it in the alphabet.")


def _read(file: Source, options: ReadOptions, labels: LabelCollector) -> None:
    labels.timed = False
    for line in file.head.decode().splitlines()[1:]:
        video, _, name = line.partition(" | ")
        labels.video(file, video).append(Segment(name))


def _write(tasks: Sequence[Task], path: Path, options: WriteOptions) -> Mapping[Path, str]:
    rows = [f"{video.id} | {segment.step}\n" for task in tasks for video in task for segment in video.segments]
    return {path: "#pipes\n" + "".join(rows)}


READER = file_reader("lines with pipes", files_where(lambda file: file.head.startswith(b"#pipes")), _read)
WRITERS = {".pipes": _write}

RANKER = RankerFactory(lambda graph, task: lambda done: {min(set(graph.steps) - set(done), default=""): 1.0})

"""A summary of some data: what is in it, every label counted, and what looks wrong with it (`msg2 describe`).

And what a table looks like before it is read: its first rows, and which column is taken for what.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from msg2.errors import InputError, errors_at, require
from msg2.formats import step_table
from msg2.formats.columns import EVENTS, STEPS, ColumnMapping, TableKind, format_columns
from msg2.formats.event_log import EVENT_TABLES
from msg2.formats.reading import ReadOptions
from msg2.formats.registry import FORMAT_OPTIONS, find_reader, read_source
from msg2.formats.run_selection import RunVariant, column_of, find_variants, run_dates, select_runs
from msg2.formats.source import Source
from msg2.formats.tables import open_table
from msg2.metrics import AnnotatorAgreement, annotator_agreement
from msg2.sequences import read_moments
from msg2.task import DRAFT, LLM, PREDICTED, LabelColumns, Step, Task, Video, demonstrations_noun
from msg2.text import fold_lookalikes, join_names

_CLOCKS = {"a day": 86_400, "an hour": 3600, "a minute": 60}
_FEW_TIMES = 20  # which may be whole minutes by chance
LONG_VIDEO_HOURS = 6.0  # a label that ends later is suspicious
FRAMES_HOURS = 1.0  # whole numbers and a median video longer than this look like frames taken for seconds
ODD_RATIO = 20.0  # a video this many times longer than the task's median looks like another unit of time


@dataclass(frozen=True, slots=True)
class PairAgreement:
    """How far two annotators agree on the videos that both labelled, and where only one of them has a step."""

    annotators: tuple[str, str]
    agreement: AnnotatorAgreement
    only_first: Mapping[Step, tuple[str, ...]]
    """Step -> videos in which only the first has it; `only_second` likewise."""
    only_second: Mapping[Step, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class TaskSummary:
    """The facts of one task."""

    task: str
    videos: int
    steps: int
    segments: int
    coverage: float
    """Share of the task's steps that a video has, mean of the videos."""
    videos_with_step: Mapping[Step, float]
    """Share of the videos that have the step."""
    timed_videos: int
    narrated_videos: int
    repeats: int
    """Segments of a step that the video has had before."""
    videos_with_repeats: int
    overlaps: int
    """Segments that start before an earlier one of the video has ended."""
    videos_with_overlaps: int
    zero_length: int
    """Timed segments that end when they start."""
    videos_with_one_segment: int
    videos_without_segments: int
    never: tuple[Step, ...]
    """Steps that never occur."""
    lookalikes: tuple[tuple[Step, ...], ...]
    """Groups of names that differ only by case, spaces or Unicode form."""
    median_seconds: float | None
    """Length of a timed segment, median."""
    median_last_end: float | None
    """When the last label of a timed video ends, in seconds, median; the longest is `longest_last_end`."""
    longest_last_end: float | None
    findings: tuple[str, ...]
    """What looks wrong, in words."""
    simultaneous: int = 0
    """Segments without length at the same instant as the one before them."""
    dates: tuple[str, str] | None = None
    """When the first video begins and the last one ends, where the data has dates."""
    variants: tuple[RunVariant, ...] = ()
    """How videos go, the most frequent way first."""
    agreement: tuple[PairAgreement, ...] = ()
    """Of every two annotators with videos in common."""

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        return dataclasses.asdict(self)


@dataclass(frozen=True, slots=True)
class DataSummary:
    """The facts of all tasks in some data; `format` is what it was recognised as."""

    format: str
    tasks: tuple[TaskSummary, ...]
    unsorted: Mapping[str, int]
    """File -> rows with times that start before the row above them of the same video."""
    findings: tuple[str, ...]
    """What looks wrong with the data as a whole; each task has its own besides."""
    assumptions: tuple[str, ...] = ()
    """What was assumed where the data leaves it open."""

    def to_json(self) -> dict[str, Any]:
        """Plain values, for `--json`."""
        return dataclasses.asdict(self)


def summarize(path: str | Path, *, where: Sequence[str] = (), variants: bool = False, **options: Any) -> DataSummary:
    """What is in a file or folder, and what looks wrong with it.

    Parameters
    ----------
    path : str or Path
        A file or folder in any format that msg2 reads.
    where : sequence of str
        Conditions that videos must meet, such as ``"step=pay"`` or ``"start>=2012-01-01"``; see `run_selection`.
    variants : bool
        Whether to count the ways in which videos go.
    **options
        Those of `ReadOptions`, such as ``columns="case=Order"``. All labels are counted, repeated ones too.

    Returns
    -------
    DataSummary
        The facts, every label counted.

    Raises
    ------
    InputError
        Where the data cannot be read.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "toast.csv")
    ...     _ = path.write_text("video,step\\nv1,fry\\nv1,flip\\nv2,fry\\n")
    ...     summary = summarize(path).tasks[0]
    >>> summary.videos, summary.steps, summary.findings
    (2, 2, ('1 video with only one label, which says nothing about order',))
    """
    source = Source.of_data(path)
    keep = tuple(dict.fromkeys(name for text in where for name in column_of(text)))
    chosen = ReadOptions(**options, every_annotator=True, keep=keep)
    reader = find_reader(source, chosen.columns)
    if chosen.order is None and reader in FORMAT_OPTIONS["order"]:
        chosen = dataclasses.replace(chosen, order="time")
    result = read_source(source, reader, chosen)
    names = _lookalikes(task.name for task in result.tasks)
    findings = [f"task names that look the same: {join_names(group, most=8, limit=40)}" for group in names]
    if result.unsorted:
        rows = _count_noun(sum(result.unsorted.values()), "row")
        findings.append(f"{rows} in {_count_noun(len(result.unsorted), 'file')} not in time order; they were sorted")
    if faults := result.notes.faults:
        findings.append(f"{_count_noun(len(faults), 'bad row')} set aside: {'; '.join(faults[:3])}")
    tasks = result.tasks
    if where:
        with errors_at(source.path):
            places = [np.flatnonzero(select_runs(task, where, result.notes)).tolist() for task in tasks]
            tasks = [task.select(kept) for task, kept in zip(tasks, places, strict=True) if kept]
            require(tasks, "nothing meets the conditions of --where")
    summaries = [
        dataclasses.replace(summarize_task(task), variants=tuple(find_variants(task)[0]) if variants else ())
        for task in tasks
    ]
    return DataSummary(
        reader.description, tuple(summaries), result.unsorted, tuple(findings), tuple(result.notes.assumptions)
    )


def summarize_task(task: Task) -> TaskSummary:
    """The facts of one task."""
    columns = task.columns
    count = np.bincount(columns.video, minlength=len(task))
    shown = np.zeros((len(task), len(task.steps)), np.bool_)
    shown[columns.video, columns.step] = True
    is_timed, narrated = np.full(len(task), columns.is_timed), 0
    if not task.is_columnar:
        is_timed = np.array([video.is_timed for video in task], np.bool_)
        narrated = sum(bool(video.sentences) for video in task)
    timed = is_timed[columns.video]
    # An overlap starts before an earlier label of its video has ended. Moments are counted from 0 in each video:
    # shifted, those of a video come after all of the video before it.
    first, last = read_moments(columns)
    shift = columns.video * (np.int64(last.max(initial=0)) + 1)
    latest = np.maximum.accumulate(np.append(np.int64(0), last + shift))[:-1]
    overlaps = np.bincount(columns.video, timed & (first + shift < latest), len(task))
    same = np.diff(columns.video) == 0
    tied = same & timed[1:] & (np.diff(first) == 0) & (np.diff(last) == 0) & (first == last)[1:]
    dates = run_dates(columns)
    begun = None if dates is None else columns.began != LabelColumns.NO_DATE
    start, end = columns.start[timed], columns.end[timed]
    first_labels = np.flatnonzero(np.diff(columns.video[timed], prepend=-1))
    last_ends = np.maximum.reduceat(end, first_labels) if len(first_labels) else end
    present = shown.sum(axis=0).tolist()
    repeats = count - shown.sum(axis=1)
    facts = TaskSummary(
        task=task.name,
        videos=len(task),
        steps=len(task.steps),
        segments=task.labels,
        coverage=sum(present) / max(1, len(task) * len(task.steps)),
        videos_with_step={step: videos / max(1, len(task)) for step, videos in zip(task.steps, present, strict=True)},
        timed_videos=len(last_ends),
        narrated_videos=narrated,
        repeats=int(repeats.sum()),
        videos_with_repeats=int((repeats > 0).sum()),
        overlaps=int(overlaps.sum()),
        videos_with_overlaps=int((overlaps > 0).sum()),
        zero_length=int((start == end).sum()),
        videos_with_one_segment=int((count == 1).sum()),
        videos_without_segments=int((count == 0).sum()),
        never=tuple(step for step, videos in zip(task.steps, present, strict=True) if not videos),
        lookalikes=_lookalikes(task.steps),
        median_seconds=_median(end - start),
        median_last_end=_median(last_ends),
        longest_last_end=float(last_ends.max()) if len(last_ends) else None,
        findings=(),
        agreement=_agreements(task),
        simultaneous=int(tied.sum()),
        dates=None if dates is None else (str(dates[0][begun].min()), str(dates[1][begun].max())),
    )
    noun = demonstrations_noun(task.absent)[:-1]
    findings = [*_findings(facts, noun, int(same.sum()))]
    if columns.began is not None and (clock := _find_clock(columns.began[begun], np.append(start, end))):
        findings.append(f"the clock has a resolution of {clock}: what happens within one is at the same instant")
    if task.absent != "skipped":  # in a log, an event may be an instant and a case take days
        findings += _time_findings(facts, last_ends, bool((start % 1 == 0).all() and (end % 1 == 0).all()))
    return dataclasses.replace(facts, findings=tuple(findings))


def _agreements(task: Task) -> tuple[PairAgreement, ...]:
    """Compare every two annotators with videos in common; a source of labels is one unless it is a program."""
    if task.is_columnar:  # which has no sources
        return ()
    sources = {segment.source for video in task for segment in video.segments} - {None, PREDICTED, DRAFT, LLM}
    labels: dict[str, Task] = {}
    for source in sorted(filter(None, sources)):
        own = (Video(video.id, [s for s in video.segments if s.source == source]) for video in task)
        labels[source] = task.with_videos(video for video in own if video.segments)
    steps = {source: {video.id: set(video.sequence()) for video in own} for source, own in labels.items()}
    pairs = []
    for pair in combinations(labels, 2):
        first, second = (steps[source] for source in pair)
        if shared := [id for id in first if id in second]:
            only = (
                {step: videos for step in task.steps if (videos := tuple(id for id in shared if step in a[id] - b[id]))}
                for a, b in ((first, second), (second, first))
            )
            pairs.append(PairAgreement(pair, annotator_agreement(labels[pair[0]], labels[pair[1]]), *only))
    return tuple(pairs)


def _lookalikes(names: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Groups of names that differ only by case, spaces, Unicode form, invisible characters or borrowed letters."""
    groups: dict[str, list[str]] = {}
    for name in sorted(names):
        groups.setdefault(fold_lookalikes(name), []).append(name)
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def _find_clock(began: NDArray[np.int64], times: NDArray[np.float64]) -> str | None:
    """What the clock of a log tells at the finest, where that is coarse; times are seconds since a run began."""
    for clock, size in _CLOCKS.items():
        whole_dates = len(began) >= _FEW_TIMES and not (began % (size * 10**6)).any()
        if not (times % size).any() and (whole_dates or np.count_nonzero(times) >= _FEW_TIMES):
            return clock
    return None


def _findings(facts: TaskSummary, noun: str, pairs: int) -> Iterator[str]:
    if facts.agreement:
        names = sorted({name for pair in facts.agreement for name in pair.annotators})
        yield f"labels of {len(names)} annotators, which are counted together: {join_names(names, most=8, limit=40)}"
    if facts.never:
        yield f"steps that never occur: {join_names(facts.never, most=8, limit=40)}"
    yield from (f"names that look the same: {join_names(group, most=8, limit=40)}" for group in facts.lookalikes)
    if 0 < facts.timed_videos < facts.videos - facts.videos_without_segments:
        yield f"only {facts.timed_videos} of {_count_noun(facts.videos, 'video')} have times"
    if facts.videos_without_segments:
        yield f"{_count_noun(facts.videos_without_segments, 'video')} with no label at all"
    if facts.videos_with_one_segment:
        videos = _count_noun(facts.videos_with_one_segment, noun)
        yield f"{videos} with only one label, which says nothing about order"
    if facts.simultaneous:
        what = f"{facts.simultaneous} of {pairs} labels are at the same instant as the one before them"
        yield f"{what}, which says nothing about their order; --ties file takes that of the file"


def _time_findings(facts: TaskSummary, last_ends: NDArray[np.float64], whole: bool) -> Iterator[str]:
    """Frames, milliseconds or minutes taken for seconds betray themselves by the size of the numbers."""
    if facts.zero_length:
        yield f"{_count_noun(facts.zero_length, 'label')} of no length"
    usual = facts.median_last_end or 0.0
    if whole and usual > FRAMES_HOURS * 3600:
        yield f"the times may be frames, not seconds: all are whole numbers, a video ends at {usual:g}"
    if late := int((last_ends > LONG_VIDEO_HOURS * 3600).sum()):
        yield f"{_count_noun(late, 'video')} with labels after more than {LONG_VIDEO_HOURS:g} hours"
    if usual > 0 and (odd := int((last_ends > ODD_RATIO * usual).sum())):
        yield f"{_count_noun(odd, 'video')} over {ODD_RATIO:g} times longer than usual: another unit of time?"


def _median(values: NDArray[np.float64]) -> float | None:
    """The median; halves are averaged, whose sum stays finite for any finite times. None of no values."""
    return float(2 * np.median(values / 2)) if len(values) else None


def _count_noun(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


# -- the head of a table -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TablePreview:
    """A table as it would be read."""

    kind: Literal["steps", "events"]
    """A table of steps, or an event log."""
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """The first ones below the header, as text."""
    columns: Mapping[str, str]
    """What was found: "step" -> "Step name"; where there is a problem, what was found nevertheless."""
    choices: tuple[str, ...]
    """What a column can be in a table of this kind."""
    assumptions: tuple[str, ...]
    """What is assumed of the header, in words."""
    problem: str | None
    """Why the header is not enough, in words; None where it is."""


def preview_table(
    path: str | Path | Source, columns: str | Mapping[str, str] | None = None, rows: int = 5
) -> TablePreview | None:
    """Look at the head of a table: delimited text, or an Excel workbook.

    Parameters
    ----------
    path : str, Path or Source
        The file.
    columns : str or mapping of str to str, optional
        What the user says about its columns.
    rows : int
        How many rows are shown.

    Returns
    -------
    TablePreview or None
        None of data in another format, whose columns nobody has to name.

    Raises
    ------
    InputError
        Where the file cannot be read, or `columns` makes no sense whatever the table.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     table = Path(folder, "log.csv")
    ...     _ = table.write_text("Case ID;Activity;When\\n7;pack;1.2.2024\\n")
    ...     found = preview_table(table)
    >>> found.kind, found.columns, found.rows, found.problem
    ('events', {'case': 'Case ID', 'activity': 'Activity'}, (('7', 'pack', '1.2.2024'),), None)
    """
    source = path if isinstance(path, Source) else Source.of_data(path)
    text = format_columns(columns)
    if source.is_folder or source.kind in ("JSON lines", "parquet"):
        return None
    reader = find_reader(source, text)
    if reader not in (EVENT_TABLES, step_table.READER):
        return None

    steps, log = STEPS.for_user(text), EVENTS.for_user(text)
    table = open_table(source, lambda cells: log.fits(cells) or steps.fits(cells))
    shown = tuple(tuple(cells) for _, cells in islice(table.text_rows(), rows))
    if text is not None:
        kind = steps if steps.chosen.keys() <= steps.names.keys() else log
    else:  # a log, where more of what every table needs is found as its columns
        of_log, of_steps = (len(_guess_columns(table.header, each, each.required)) for each in (log, steps))
        kind = log if reader is EVENT_TABLES or of_log > of_steps else steps
    try:
        mapping, problem = kind.match(table.header, table.where), None
    except InputError as error:
        mapping, problem = ColumnMapping(_guess_columns(table.header, kind, kind.names), ()), error.what
    assumptions = (*table.assumptions, *mapping.assumptions)
    return TablePreview(kind.name, table.header, shown, mapping.columns, tuple(kind.names), assumptions, problem)


def _guess_columns(header: Sequence[str], kind: TableKind, roles: Iterable[str]) -> dict[str, str]:
    """What can be told of the columns, each by itself, where something is wrong with others."""
    matched: dict[str, str] = {}
    for role in roles:
        with suppress(InputError):
            matched |= dataclasses.replace(kind, names={role: kind.names[role]}).match(header, "", ()).columns
    return matched

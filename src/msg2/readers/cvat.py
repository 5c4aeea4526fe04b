"""CVAT: `annotations.xml` of "CVAT for video 1.1" or "CVAT for images 1.1", one per video or one for a project.

In the first, a track is a step: from the frame where it appears to the one where it is outside. In the second, a run
of neighbouring frames with the same tag or shape is. The files number frames but state no frame rate: `--fps` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import NamedTuple

from msg2.errors import InputError, shortened
from msg2.options import ReadOptions
from msg2.readers.found import Found, Labels, merge, tasks_of, timed_segment, unsorted_rows
from msg2.readers.markup import attribute, root_name, walk
from msg2.readers.sources import Source
from msg2.task import Step

READS = "CVAT annotations (XML for video or images 1.1)"
TAKES = ("fps",)

_SHAPES = {"box", "polygon", "polyline", "points", "ellipse", "cuboid", "mask", "skeleton"}
_META = {"id", "name", "source", "frame_filter"}


class _Frame(NamedTuple):
    """A label on one frame of a video; `track` tells apart what bears the same label."""

    video: str
    track: str
    step: Step
    number: int
    shown: bool


def recognises(source: Source) -> bool:
    """Whether the file, a file in the folder, or one in a folder in it is a CVAT export."""
    return bool(_exports(source))


def read(source: Source, options: ReadOptions) -> Found:
    """One task, named after the folder or file; videos are named as the export names their file, else their task."""
    labels: Labels = {}
    for file in _exports(source):
        if options.fps is None:
            hint = "say how many frames of the videos make a second: --fps 30"
            raise InputError("counts in frames, and does not say how long they are", where=file.path, hint=hint)
        export = _Export()
        walk(file, export.opened, export.closed, export.text)
        found: Labels = {(source.stem, export.video(id) or file.stem): [] for id in export.about or {"": {}}}
        for track in export.tracks.values():
            about = track[0].video
            segments = found.setdefault((source.stem, export.video(about) or file.stem), [])
            for first, end in _spans(track, export.every(about)):
                where = f"{file.path}, label {shortened(track[0].step)}, frame {first}"
                segments.append(timed_segment(track[0].step, first / options.fps, end / options.fps, where))
        merge(labels, found, str(file.path))
    return Found.of(tasks_of(labels), {source.path.name: unsorted_rows(labels)})


def _exports(source: Source) -> list[Source]:
    """Exports unpack to a folder with this file and images: a folder of such folders is fine."""
    if not source.is_folder:
        return [source] if _is_export(source) else []
    files = [*source.files, *(file for folder in source.folders for file in folder.files)]
    return [file for file in files if file.path.suffix.lower() in (".xml", ".gz") and _is_export(file)]


def _is_export(file: Source) -> bool:
    return root_name(file) == "annotations" and b"<meta>" in file.head


class _Export:
    """What has been read of an export: what it says of its videos, by their number in it, and tracks of frames."""

    def __init__(self) -> None:
        self.about: dict[str, dict[str, str]] = {}
        self.tracks: dict[tuple[str, str, str], list[_Frame]] = {}
        self._path: list[str] = []
        self._facts: dict[str, str] = {}
        self._text: list[str] = []
        self._holder: dict[str, str] = {}
        """Attributes of the track or image that is open."""

    def opened(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""
        inside = self._path[-1] if self._path else ""
        self._path.append(name)
        self._text = []
        if name in ("track", "image") and inside == "annotations":
            self._holder = attributes
        elif inside == "track" and name in _SHAPES:
            label, number = attribute(self._holder, "label", "track"), attribute(self._holder, "id", "track")
            shown = attributes.get("outside", "0") != "1"
            self._keep(f"track {number}", label, attribute(attributes, "frame", name), shown)
        elif inside == "image" and (name in _SHAPES or name == "tag"):
            self._keep("", attribute(attributes, "label", name), attribute(self._holder, "id", "image"), True)

    def text(self, piece: str) -> None:
        """A part of what stands in an element."""
        if len(self._path) > 1 and self._path[1] == "meta":
            self._text.append(piece)

    def closed(self, name: str) -> None:
        """An element ends; in `meta`, a task, a job, or the tasks of a project are described."""
        self._path.pop()
        if len(self._path) < 2 or self._path[1] != "meta":
            return
        inside = self._path[-1]
        if inside in ("task", "job") and name in _META:
            self._facts[name] = "".join(self._text)
        elif inside == "meta" and name == "source":
            for facts in self.about.values():
                facts.setdefault("source", "".join(self._text))
        elif name in ("task", "job"):
            self.about[self._facts.get("id", "")] = self._facts
            self._facts = {}

    def _keep(self, track: str, step: Step, frame: str, shown: bool) -> None:
        if not (frame.isascii() and frame.isdigit() and len(frame) <= 12):
            raise InputError(f"the frame {shortened(frame)} is not a whole number")
        video = self._holder.get("task_id", "")
        found = _Frame(video, track, step, int(frame), shown)
        self.tracks.setdefault((video, track, step), []).append(found)

    def video(self, id: str) -> str:
        """The name of the video with this number, or of the only one; empty where it has none."""
        facts = self._facts_of(id)
        return PurePosixPath(facts.get("source", "").replace("\\", "/")).stem or facts.get("name", "")

    def every(self, id: str) -> int:
        """How many frames of the video lie between neighbours in the export."""
        step = self._facts_of(id).get("frame_filter", "").strip().removeprefix("step=")
        return int(step) if step.isascii() and step.isdigit() and 0 < int(step) < 10**6 else 1

    def _facts_of(self, id: str) -> dict[str, str]:
        return self.about.get(id) or next(iter(self.about.values()), {})


def _spans(frames: list[_Frame], every: int) -> Iterator[tuple[int, int]]:
    """First frame and the one after the last, of every run of frames in which the label is shown.

    A track may leave out the frames between its key frames; images that lack a label end its run.
    """
    start: int | None = None
    last = 0
    for frame in sorted(frames, key=lambda one: one.number):
        gap = not frame.track and frame.number > last + every
        if start is not None and (gap or not frame.shown):
            yield start, last + every if gap else frame.number
            start = None
        if frame.shown and start is None:
            start = frame.number
        last = frame.number
    if start is not None:
        yield start, last + every

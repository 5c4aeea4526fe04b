"""CVAT: `annotations.xml` of "CVAT for video 1.1" or "CVAT for images 1.1", one per video or one for a project.

In the first, a track is a step: from the frame where it appears to the one where it is outside. In the second, a run
of neighbouring frames with the same tag or shape is. The files number frames but state no frame rate: `--fps` does.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from pathlib import PurePosixPath
from typing import TypeAlias

from msg2.errors import InputError
from msg2.formats.reading import (
    Reader,
    ReadOptions,
    ReadResult,
    SegmentsByVideo,
    merge_labels,
    parse_frame,
    timed_segment,
)
from msg2.formats.source import Source
from msg2.formats.xml_parser import parse_xml, require_attribute, root_name
from msg2.task import Step
from msg2.text import short_repr

_SHAPES = {"box", "polygon", "polyline", "points", "ellipse", "cuboid", "mask", "skeleton"}
_META = {"id", "name", "source", "frame_filter"}
_CvatFrames: TypeAlias = list[tuple[int, bool]]
"""The numbers of the frames on which a label is noted, and whether it is visible there."""


def read(source: Source, options: ReadOptions) -> ReadResult:
    """Read one task, named after the folder or file; videos are named after their file, else their CVAT task."""
    labels: SegmentsByVideo = {}
    for file in _exports(source):
        if options.fps is None:
            hint = "say how many frames of the videos make a second: --fps 30"
            raise InputError("counts in frames, and does not say how long they are", where=file.path, hint=hint)
        export = _CvatExport()
        parse_xml(file, export.start_element, export.end_element, export.add_text)
        videos = [export.video(id)[0] or file.stem for id in export.videos or ("",)]
        own: SegmentsByVideo = {(source.stem, video): [] for video in videos}
        for (id, track, step), frames in export.tracks.items():
            name, frame_step = export.video(id)
            segments = own.setdefault((source.stem, name or file.stem), [])
            for first, end in _spans(frames, frame_step, only_key_frames=bool(track)):
                where = f"{file.path}, label {short_repr(step)}, frame {first}"
                segments.append(timed_segment(step, first / options.fps, end / options.fps, where))
        merge_labels(labels, own, str(file.path))
    return ReadResult.from_labels(labels, source.path.name)


def _exports(source: Source) -> list[Source]:
    """Exports unpack to a folder with this file and images: a folder of such folders is fine."""
    inside = (*source.files, *(file for folder in source.folders for file in folder.files))
    files = [file for file in inside if file.path.suffix.lower() in (".xml", ".gz")] if source.is_folder else [source]
    return [file for file in files if root_name(file) == "annotations" and b"<meta>" in file.head]


class _CvatExport:
    """What has been read of an export: what it says of its videos, by their number in it, and tracks of frames."""

    def __init__(self) -> None:
        self.videos: dict[str, dict[str, str]] = {}
        self.tracks: dict[tuple[str, str, Step], _CvatFrames] = {}
        """(video, track, step) -> its frames; the track is empty for labels of images."""
        self._path: list[str] = []
        self._facts: dict[str, str] = {}
        self._text: list[str] = []
        self._parent: dict[str, str] = {}  # attributes of the track or image that is open

    def start_element(self, name: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element."""
        inside = self._path[-1] if self._path else ""
        self._path.append(name)
        self._text = []
        if name in ("track", "image") and inside == "annotations":
            self._parent = attributes
        elif inside == "track" and name in _SHAPES:
            label, number = (require_attribute(self._parent, key, "track") for key in ("label", "id"))
            frame, visible = require_attribute(attributes, "frame", name), attributes.get("outside", "0") != "1"
            self._frames(f"track {number}", label).append((parse_frame(frame), visible))
        elif inside == "image" and (name in _SHAPES or name == "tag"):
            label, frame = require_attribute(attributes, "label", name), require_attribute(self._parent, "id", "image")
            self._frames("", label).append((parse_frame(frame), True))

    def add_text(self, piece: str) -> None:
        """Handle a part of the text of an element."""
        if self._path[1:2] == ["meta"]:
            self._text.append(piece)

    def end_element(self, name: str) -> None:
        """Handle the end of an element; in `meta`, a task, a job, or the tasks of a project are described."""
        self._path.pop()
        if self._path[1:2] != ["meta"]:
            return
        inside, text = self._path[-1], "".join(self._text)
        if inside in ("task", "job") and name in _META:
            self._facts[name] = text
        elif inside == "meta" and name == "source":
            for facts in self.videos.values():
                facts.setdefault("source", text)
        elif name in ("task", "job"):
            self.videos[self._facts.get("id", "")] = self._facts
            self._facts = {}

    def _frames(self, track: str, step: Step) -> _CvatFrames:
        return self.tracks.setdefault((self._parent.get("task_id", ""), track, step), [])

    def video(self, id: str) -> tuple[str, int]:
        """Name of the video with this number, or the only one, and its frames between neighbours in the export."""
        facts = self.videos.get(id) or next(iter(self.videos.values()), {})
        name = PurePosixPath(facts.get("source", "").replace("\\", "/")).stem or facts.get("name", "")
        step = facts.get("frame_filter", "").strip().removeprefix("step=")
        return name, int(step) if step.isascii() and step.isdigit() and 0 < int(step) < 10**6 else 1


def _spans(frames: _CvatFrames, frame_step: int, only_key_frames: bool) -> Iterator[tuple[int, int]]:
    """First frame and the one after the last, of every run of frames in which the label is visible.

    A track may leave out the frames between its key frames; images that lack a label end its run.
    """
    start: int | None = None
    last = 0
    for number, visible in sorted(frames, key=itemgetter(0)):
        gap = not only_key_frames and number > last + frame_step
        if start is not None and (gap or not visible):
            yield start, last + frame_step if gap else number
            start = None
        if visible and start is None:
            start = number
        last = number
    if start is not None:
        yield start, last + frame_step


READER = Reader("CVAT annotations (XML for video or images 1.1)", lambda source: bool(_exports(source)), read, ("XML",))

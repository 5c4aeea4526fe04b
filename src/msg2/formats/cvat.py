"""CVAT: `annotations.xml` of "CVAT for video 1.1" or "CVAT for images 1.1", one per video or one for a project.

In the first, a track is a step: from the frame where it appears to the one where it is outside. In the second, a run
of neighbouring frames with the same tag or shape is. The files number frames but state no frame rate: `--fps` does.
"""

from collections.abc import Iterator
from operator import itemgetter
from pathlib import PurePosixPath
from xml.etree.ElementTree import Element

from msg2.errors import InputError
from msg2.formats.reading import LabelCollector, ReadOptions, file_reader, parse_frame, timed_segment
from msg2.formats.source import Source
from msg2.formats.xml_parser import parse_children, require_attribute, root_name
from msg2.task import Step
from msg2.text import short_repr

_SHAPES = {"box", "polygon", "polyline", "points", "ellipse", "cuboid", "mask", "skeleton"}


def _read(file: Source, options: ReadOptions, labels: LabelCollector) -> None:
    """Read the videos of an export, which are named after their file, else their CVAT task."""
    if options.fps is None:
        hint = "say how many frames of the videos make a second: --fps 30"
        raise InputError("counts in frames, and does not say how long they are", where=file.path, hint=hint)
    meta = Element("meta")  # describes a task, a job, or the tasks of a project
    tracks: dict[tuple[str, str, Step], list[tuple[int, bool]]] = {}
    """(video, track, step) -> its frames, and whether it is visible there; the track is empty for labels of images."""

    def add(element: Element) -> None:
        if element.tag == "meta":
            meta[:] = element
        for mark in element:
            if element.tag == "track" and mark.tag in _SHAPES:
                track, step = f"track {require_attribute(element, 'id')}", require_attribute(element, "label")
                frame = require_attribute(mark, "frame")
            elif element.tag == "image" and mark.tag in (*_SHAPES, "tag"):
                track, step, frame = "", require_attribute(mark, "label"), require_attribute(element, "id")
            else:
                continue
            frames = tracks.setdefault((element.get("task_id", ""), track, step), [])
            frames.append((parse_frame(frame), mark.get("outside", "0") != "1"))

    parse_children(file, add)
    videos = {part.findtext("id", ""): part for part in meta.iter() if part.tag in ("task", "job")}
    segments, frame_steps = {}, {}
    for id in {**dict.fromkeys(videos or [""]), **dict.fromkeys(video for video, _, _ in tracks)}:
        facts = videos.get(id, next(iter(videos.values()), Element("task")))
        path = facts.findtext("source", meta.findtext("source", "")).replace("\\", "/")
        segments[id] = labels.video(file, PurePosixPath(path).stem or facts.findtext("name", "") or file.stem)
        every = facts.findtext("frame_filter", "").strip().removeprefix("step=")
        frame_steps[id] = max(int(every), 1) if every.isascii() and every.isdigit() and len(every) < 7 else 1
    for (id, track, step), frames in tracks.items():
        for first, end in _spans(frames, frame_steps[id], only_key_frames=bool(track)):
            where = f"{file.path}, label {short_repr(step)}, frame {first}"
            segments[id].append(timed_segment(step, first / options.fps, end / options.fps, where))


def _exports(source: Source) -> list[Source]:
    """Find the exports: each unpacks to a folder with one XML file and images, and a folder may hold many of these."""
    inside = (*source.files, *(file for folder in source.folders for file in folder.files))
    files = [file for file in inside if file.path.suffix.lower() in (".xml", ".gz")] if source.is_folder else [source]
    return [file for file in files if root_name(file) == "annotations" and b"<meta>" in file.head]


def _spans(frames: list[tuple[int, bool]], frame_step: int, only_key_frames: bool) -> Iterator[tuple[int, int]]:
    """Yield the first frame and the one after the last of every run of frames in which the label is visible."""
    start: int | None = None
    last = 0
    for number, visible in sorted(frames, key=itemgetter(0)):
        gap = not only_key_frames and number > last + frame_step  # a track may leave frames out, images may not
        if start is not None and (gap or not visible):
            yield start, last + frame_step if gap else number
            start = None
        if visible and start is None:
            start = number
        last = number
    if start is not None:
        yield start, last + frame_step


READER = file_reader("CVAT annotations (XML for video or images 1.1)", _exports, _read)

"""A picture of each step, taken from the videos: the middle of the step in the video that shows it most usually."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

from msg2.drawing.procedure import Still
from msg2.errors import optional_dependency
from msg2.formats.video_files import find_video_files
from msg2.media.video_decoding import FrameOptions, frame_at
from msg2.progress import Progress, no_progress
from msg2.task import Segment, Step, Task

PIXELS = 360
"""Of the shorter side of a picture."""


def find_stills(task: Task, folder: Path, progress: Progress = no_progress) -> dict[Step, Still]:
    """Take a picture of every step from the videos.

    Steps that no video file in the folder shows have none. `progress` is told how many steps are done.
    """
    with optional_dependency("pictures of steps", "video"):
        from PIL import Image
    recordings, _ = find_video_files(folder, wanted=[video.id for video in task])
    files = {recording.video: recording.media for recording in recordings if recording.media is not None}
    shown: dict[Step, list[tuple[float, str, Segment]]] = {}
    for video in task:
        for segment in video.segments if video.id in files else ():
            if segment.start is not None and segment.end is not None:
                shown.setdefault(segment.step, []).append((segment.end - segment.start, video.id, segment))
    stills: dict[Step, Still] = {}
    for number, (name, segments) in enumerate(sorted(shown.items()), start=1):
        by_length = sorted(segments, key=lambda each: each[:2])
        length, video_id, segment = by_length[len(by_length) // 2]
        seconds = (segment.start or 0.0) + length / 2
        image = frame_at(files[video_id], seconds, FrameOptions(size=PIXELS))
        if image is not None:
            jpeg = BytesIO()
            Image.fromarray(image).save(jpeg, "JPEG", quality=80)
            minutes, rest = divmod(int(seconds), 60)
            stills[name] = Still(jpeg.getvalue(), f"{video_id}, at {minutes}:{rest:02d}")
        progress(number, len(shown), name)
    return stills

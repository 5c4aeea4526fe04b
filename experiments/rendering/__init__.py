"""Rendered worlds: simulated demonstrations as real video files with captions and, with espeak-ng, a narrator's voice.

Steps become props (things, tools, motions), drawn as `sprites` in `scenes`; the `narrator` speaks of them; the
`video_writer` puts frames and sound into mp4 files. `python -m experiments.rendering OUT` renders what
`msg2 simulate -o OUT` has written.
"""

from experiments.rendering.scenes import RenderOptions
from experiments.rendering.video_writer import write_videos

__all__ = ["RenderOptions", "write_videos"]

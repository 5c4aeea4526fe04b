"""Videos whose steps are known: the words of a step are said while it is done, others in between."""

from __future__ import annotations

import numpy as np

from msg2.task import Segment, Sentence, Task, Video

STEPS = ("crack eggs", "whisk mixture", "dip bread", "fry bread", "serve toast")
SAID = {
    "crack eggs": ("crack eggs now", "open every shell", "eggs go into this bowl"),
    "whisk mixture": ("whisk mixture well", "beat until smooth", "a fork does fine"),
    "dip bread": ("dip bread quickly", "soak both sides", "let slices drip"),
    "fry bread": ("fry bread slowly", "the pan is sizzling", "golden underneath"),
    "serve toast": ("serve toast warm", "pour maple syrup", "sprinkle sugar on top"),
}
CHATTER = ("hello everyone", "my kids adore this", "weather was lovely", "sorry about noise", "here we are today")


def planted_task(videos: int = 30, seed: int = 0, labelled: int = 0, named: bool = True) -> Task:
    """A task of narrated videos, the first few of them labelled; unless `named`, no cue has the name of its step."""
    rng = np.random.default_rng(seed)
    made = []
    for number in range(videos):
        time, segments, sentences = 0.0, [], []
        for step in STEPS:
            if rng.random() < 0.15:
                continue
            for _ in range(rng.integers(1, 4)):
                sentences.append(Sentence(str(rng.choice(CHATTER)), time, time + 4))
                time += 4
            segments.append(Segment(step, time, time + 12))
            for _ in range(3):
                said = SAID[step] if named or rng.random() < 0.2 else SAID[step][1:]
                sentences.append(Sentence(str(rng.choice(said)), time, time + 4))
                time += 4
        sentences.append(Sentence("goodbye", time, time + 4))
        made.append(Video(f"v{number:02}", segments if number < labelled else (), sentences))
    return Task("Make Toast", STEPS, made)


def planted_truth(videos: int = 30, seed: int = 0, named: bool = True) -> Task:
    """The same task with all its labels."""
    return planted_task(videos, seed, videos, named)


def planted_recall(drafted: Task, truth: Task) -> float:
    """Share of the annotated steps whose drafted segment has its middle within the true one."""
    right = asked = 0
    known = {video.id: {s.step: s for s in video.segments} for video in truth}
    for video in drafted:
        drafts = {s.step: s for s in video.segments if s.source == "draft"}
        if not drafts:
            continue
        for step, true in known[video.id].items():
            asked += 1
            if step in drafts:
                middle = (drafts[step].start + drafts[step].end) / 2
                right += true.start <= middle <= true.end
    return right / asked

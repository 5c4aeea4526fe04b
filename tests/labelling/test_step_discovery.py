from __future__ import annotations

import numpy as np
import pytest

from msg2.errors import InputError
from msg2.labelling.step_names import discover_steps
from msg2.task import Sentence
from msg2.text_encoders import text_encoder


def test_phrases_of_many_videos_become_steps_in_their_order() -> None:
    rng = np.random.default_rng(0)
    said = {}
    for number in range(12):
        phrases = ["crack egg into bowl", "whisk egg mixture", "flip bread over"]
        variants = ["crack egg into cup", "whisk egg mixture well", "flip bread over now"]
        chosen = [a if rng.random() < 0.7 else b for a, b in zip(phrases, variants, strict=True)]
        chosen += ["thank everybody", f"mention thing {number}"]
        said[f"v{number}"] = [Sentence(text, 10.0 * place, 10.0 * place + 2) for place, text in enumerate(chosen)]
    found = discover_steps(said, text_encoder("words"), 5)
    assert [step.name for step in found] == ["crack egg into bowl", "whisk egg mixture", "flip bread over"]
    assert [step.videos for step in found] == [12, 12, 12]


def test_pronouns_are_no_part_of_a_name() -> None:
    said = {f"v{n}": [Sentence(text, 0, 1) for text in ("flip over it", "cut it", "melt butter")] for n in range(3)}
    assert [step.name for step in discover_steps(said, text_encoder("words"), 5)] == ["flip over", "melt butter"]


def test_nothing_in_common() -> None:
    with pytest.raises(InputError, match="hardly any phrase"):
        discover_steps({"v": [Sentence("crack egg", 0, 1)]}, text_encoder("words"))

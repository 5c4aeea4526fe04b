"""What is written for another tool is read back as the same labels."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from msg2.formats import read_all
from msg2.formats.reading import WriteOptions
from msg2.formats.registry import write
from msg2.task import Segment, Task, Video
from msg2.text import name_fault

names = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="\ufffe\uffff"), min_size=1).filter(
    lambda text: not name_fault(text)
)
labels = st.builds(
    lambda step, start, length, source: Segment(step, start / 10, (start + length) / 10, None, source),
    st.sampled_from(["a", "b <i>", "ключ"]), st.integers(0, 50), st.integers(1, 30),
    st.sampled_from([None, "predicted"]),
)  # fmt: skip


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(labels, max_size=6), names, names, st.sampled_from([".eaf", ".label-studio.json"]), st.booleans())
def test_what_is_written_is_read(
    tmp_path: Path, given_labels: list[Segment], name: str, video: str, suffix: str, frames: bool
) -> None:
    task = Task(name, {"a", "b <i>", "ключ"}, [Video(video, given_labels)])
    path = tmp_path / f"out{suffix}"
    rate = 10.0 if frames and suffix != ".eaf" else None
    write([task], path, WriteOptions(fps=rate))
    (found,) = read_all(path, repeats="keep", fps=rate)
    assert found.name == name
    assert [one.id for one in found] == [video]
    assert set(found.videos[0].segments) == set(given_labels)

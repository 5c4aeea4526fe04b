"""What the page says about filled labels: right counts, and names that stay text."""

from __future__ import annotations

import re

from msg2 import drawing
from msg2.drawing.page_parts import comparison_section, filling_section
from msg2.graph import SubtaskGraph, step
from msg2.metrics import score_graph
from msg2.task import Segment, Task, Video

NASTY = "<script>milk & more"
TASK = Task("tea", ["boil", NASTY, "pour"], [
    Video("v1", [
        Segment("boil", 0, 1), Segment(NASTY, 1, 2, 0.75, "predicted"), Segment("pour", 1, 2, 0.5, "predicted"),
    ]),
    Video("v2", [Segment("boil", 0, 1), Segment("boil", 5, 6), Segment(NASTY, 2, 3, 0.25, "predicted")]),
    Video("v3", [Segment("pour", 0, 1, None, "annotator")]),
])  # fmt: skip
PERFORMED = Task("tea", TASK.steps, [
    Video("v1", [Segment(NASTY, 0, 1)]), Video("v2", [Segment(NASTY, 0, 1)]), Video("v3", []),
])  # fmt: skip


def cells(html: str, name: str) -> list[str]:
    """The cells of the row with this heading, as text."""
    (row,) = re.findall(rf'<th scope="row"><bdi>{re.escape(name)}</bdi></th>(.*?)</tr>', html)
    return [re.sub("<[^>]+>", "", cell) for cell in re.findall("<td>(.*?)</td>", row)]


def test_labels_are_counted_by_step_and_by_video() -> None:
    html = filling_section(TASK)
    assert "3 labels were added to 2 of 3 videos" in html
    assert cells(html, "boil") == ["2", "", ""]
    assert cells(html, "&lt;script&gt;milk &amp; more") == ["0", "2", "50 %"]
    assert cells(html, "pour") == ["1", "1", "50 %"]
    assert cells(html, "v2") == ["&lt;script&gt;milk &amp; more (25 %)"]
    assert "v3" not in html
    assert "<script" not in html


def test_with_the_truth_it_says_which_are_right() -> None:
    html = filling_section(TASK, PERFORMED)
    assert "2 of them were really done" in html
    assert cells(html, "&lt;script&gt;milk &amp; more")[-1] == "2 of 2"
    assert cells(html, "pour")[-1] == "0 of 1"
    assert "<s><bdi>pour</bdi></s>" in html


def test_a_page_with_both_graphs() -> None:
    truth = SubtaskGraph("tea", TASK.steps, {"pour": step("boil")})
    before = SubtaskGraph("tea", TASK.steps, {})
    section = comparison_section(
        drawing.svg(before), {"before": score_graph(before, truth), "after": score_graph(truth, truth)}
    )
    assert cells(section, "before")[:3] == ["83.33", "83.33", "N/A"]
    assert cells(section, "after")[:2] == ["100.00", "100.00"]
    assert "percent" not in comparison_section(drawing.svg(before), {})
    page = drawing.html_page(truth, sections=section)
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert page.count("<figure") == 2
    assert page.index("</table>") < page.index(section) < page.index("</body>")

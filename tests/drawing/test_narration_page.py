"""The page of what is said: right counts, as many phrases as wanted, and names that stay text."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from msg2.drawing.page_parts import step_phrases_page
from msg2.metrics.step_phrases import PhraseStatistics, phrases_around_steps
from msg2.task import Segment, Sentence, Task, Video

NASTY = "<script>alert(1)</script> & more"
TASK = Task(NASTY, ["dip", NASTY], [
    Video("v1", [Segment("dip", 0, 2), Segment(NASTY, 100, 102)], [
        Sentence("dip it", 0, 1), Sentence("soak it", 1, 2), Sentence(NASTY, 100, 101), Sentence("so", 50, 51),
    ]),
    Video("v2", [Segment("dip", 0, 2)], [Sentence("dip it", 0, 1), Sentence("so", 50, 51)]),
    Video("v3", [], []),
])  # fmt: skip
AROUND = phrases_around_steps(TASK, 10)


class Rows(HTMLParser):
    """The texts of the cells of every row; what is opened is closed in its turn."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[list[str]] = []
        self.open: list[str] = []
        self.feed(page)
        assert not self.open

    def handle_starttag(self, tag: str, attributes: object) -> None:
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)
        if tag == "tr":
            self.found.append([])
        elif tag in ("td", "th"):
            self.found[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if {"td", "th"} & set(self.open):
            self.found[-1][-1] += data


def test_a_table_of_phrases_per_step() -> None:
    page = step_phrases_page([(TASK, AROUND)], 10, 15)
    head = ["Phrase", "Videos", "Around", "In all", "Times as often"]
    assert Rows(page).found == [
        head, [NASTY.casefold(), "1", "1", "1", "6.0"],
        head, ["dip it", "2", "2", "2", "2.0"], ["soak it", "1", "1", "1", "2.0"],
    ]  # fmt: skip
    assert "2 of 3 videos have narration, 6 phrases in all" in page
    assert "from 10 seconds before it begins to 10 seconds after it ends" in re.sub(r"\s+", " ", page)
    assert re.findall(r"\((\d+) videos\)</summary>", page) == ["1", "2"]


def test_names_are_text() -> None:
    page = step_phrases_page([(TASK, AROUND)], 10, 15)
    assert "<script" not in page.lower()
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt; &amp; more") >= 3


def test_only_so_many_phrases_and_a_word_where_there_are_none() -> None:
    many = {
        step: [PhraseStatistics(f"phrase {number}", 1, 1, 1, 2.0, 1.0) for number in range(9)] for step in TASK.steps
    }
    assert len(Rows(step_phrases_page([(TASK, many)], 10, 4)).found) == 2 * (1 + 4)
    none = {step: [] for step in TASK.steps}
    assert step_phrases_page([(TASK, none)], 10, 4).count("nothing more than elsewhere") == 2


def test_several_tasks_on_one_page() -> None:
    page = step_phrases_page([(TASK, AROUND), (Task("tea", ["boil"], []), {"boil": []})], 2.5, 15)
    assert [re.sub("<[^>]+>", "", title) for title in re.findall("<h2>(.*?)</h2>", page)][1:] == ["tea"]
    assert "from 2.5 seconds" in page

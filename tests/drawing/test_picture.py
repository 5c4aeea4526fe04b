"""Pictures of a size: what is asked for is what the file has."""

from __future__ import annotations

import io
import logging
import re
import time
import zlib
from itertools import pairwise
from pathlib import Path

import pytest
from PIL import Image

from msg2 import drawing
from msg2.drawing import PictureOptions
from msg2.drawing.diagram import build_diagram
from msg2.drawing.style import SIGNS
from msg2.errors import InputError
from msg2.graph import SubtaskGraph, all_of, any_of, negation, step


def size_in_points(path: Path) -> tuple[float, float]:
    """Width and height of an SVG, PNG or PDF as it is printed."""
    content = path.read_bytes()
    if path.suffix == ".png":
        image = Image.open(io.BytesIO(content))
        dots = image.info["dpi"]
        return image.width / dots[0] * 72, image.height / dots[1] * 72
    if path.suffix == ".pdf":
        found = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ([\d.]+) \]", content)
    else:
        found = re.search(rb'<svg width="(\d+)pt" height="(\d+)pt"', content)
    assert found
    return float(found[1]), float(found[2])


def chain(size: int) -> SubtaskGraph:
    names = [f"step number {number} of the recipe" for number in range(size)]
    return SubtaskGraph("t", names, {after: step(before) for before, after in pairwise(names)})


@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
@pytest.mark.parametrize("direction", ["LR", "TB"])
@pytest.mark.parametrize(("width", "points"), [("8.4cm", 238.1), ("3.5in", 252), ("60mm", 170.1), ("400pt", 400)])
def test_a_picture_keeps_to_its_width(
    coffee: SubtaskGraph, suffix: str, direction: str, width: str, points: float, tmp_path: Path
) -> None:
    file = coffee.show(tmp_path / f"g{suffix}", width=width, direction=direction)
    assert size_in_points(file)[0] <= points + 1.5


def test_a_picture_that_fits_is_not_changed(coffee: SubtaskGraph) -> None:
    plain, limited = (drawing.svg(coffee, picture=PictureOptions(width=width)) for width in (None, "40cm"))
    assert plain.count("<text") == limited.count("<text")
    assert re.findall(r'<svg width="\d+pt', plain) == re.findall(r'<svg width="\d+pt', limited)


def test_names_get_more_lines_before_they_get_smaller(caplog: pytest.LogCaptureFixture) -> None:
    graph = SubtaskGraph("t", ["whisk eggs and milk well", "fry"], {"fry": step("whisk eggs and milk well")})
    wide, narrow = (drawing.svg(graph, picture=PictureOptions(width=width)) for width in (None, "170pt"))
    assert wide.count("<text") < narrow.count("<text")
    assert not caplog.records
    narrowest = drawing.svg(graph, picture=PictureOptions(width="60pt"))
    scales = [re.findall(r"scale\(([\d.]+)", svg)[0] for svg in (wide, narrow, narrowest)]
    assert [float(scale) == 1 for scale in scales] == [True, True, False]
    caplog.clear()
    with caplog.at_level(logging.WARNING, "msg2"):
        drawing.svg(chain(12), picture=PictureOptions(width="8cm"))
    assert "points high" in caplog.text


def test_dots_per_inch(coffee: SubtaskGraph, tmp_path: Path) -> None:
    sizes = []
    for dpi in (72, 144, 300):
        with Image.open(coffee.show(tmp_path / f"{dpi}.png", dpi=dpi)) as image:
            image.load()  # its checksums are right
            sizes.append(image.width)
            assert image.info["dpi"] == pytest.approx((dpi, dpi), abs=0.05)
    assert sizes[1] / sizes[0] == pytest.approx(2, rel=0.01)
    assert sizes[2] / sizes[0] == pytest.approx(300 / 72, rel=0.01)


def test_the_direction(tmp_path: Path) -> None:
    wide, high = (size_in_points(chain(6).show(tmp_path / f"{way}.pdf", direction=way)) for way in ("LR", "TB"))
    assert wide[0] > wide[1]
    assert high[0] < high[1]


def test_the_font_size(coffee: SubtaskGraph, tmp_path: Path) -> None:
    small, large = (coffee.show(tmp_path / f"{size}.svg", font_size=size, legend=False) for size in (8, 16))
    found = [{float(size) for size in re.findall(r'font-size="([\d.]+)"', path.read_text())} for path in (small, large)]
    assert [max(sizes) for sizes in found] == [8, 16]
    assert min(found[0]) == 7
    ratio = size_in_points(large)[0] / size_in_points(small)[0]
    assert ratio == pytest.approx(2, rel=0.15)


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="this system has no time zone of a process")
def test_a_pdf_does_not_depend_on_the_time_zone(
    coffee: SubtaskGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = set()
    try:
        for zone in ("UTC", "Asia/Tokyo", "America/St_Johns"):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            written.add(coffee.show(tmp_path / "graph.pdf").read_bytes())
    finally:
        monkeypatch.undo()
        time.tzset()
    (content,) = written
    start = int(content.rpartition(b"startxref\n")[2].split()[0])
    offsets = re.findall(rb"(\d{10}) 00000 n", content[start:])
    assert content[start:].startswith(b"xref")
    assert [content[int(at) :].split(maxsplit=1)[0] for at in offsets] == [
        b"%d" % n for n in range(1, len(offsets) + 1)
    ]


def test_a_pdf_holds_text_and_no_date(coffee: SubtaskGraph, tmp_path: Path) -> None:
    one, other = coffee.show(tmp_path / "one.pdf"), coffee.show(tmp_path / "other.pdf")
    content = one.read_bytes()
    assert content == other.read_bytes()
    assert content.startswith(b"%PDF-")
    assert b"CreationDate" not in content
    assert b"/FontFile" in content  # embedded, as journals ask for
    # Everything stands where the table at its end says.
    table = int(content.rpartition(b"startxref")[2].split()[0])
    assert content[table : table + 4] == b"xref"
    for place in re.findall(rb"^(\d{10}) 00000 n", content[table:], re.MULTILINE):
        assert re.match(rb"\d+ 0 obj", content[int(place) :])
    streams = re.findall(rb"stream\r?\n(.*?)endstream", content, re.DOTALL)
    assert any(b"Tj" in zlib.decompress(stream) or b"TJ" in zlib.decompress(stream) for stream in streams[:1])


def test_a_full_legend_names_everything_that_occurs(coffee: SubtaskGraph, cpr: SubtaskGraph) -> None:
    """With what occurs told by the graph itself, not by the diagram."""
    for graph in (coffee, cpr, chain(3), SubtaskGraph("t", "ab", {})):
        formulas = graph.preconditions.values()
        kinds = frozenset().union(*(formula.kinds for formula in formulas))
        shares = {edge.support.share for edge in graph.edges() if edge.support}
        occurs = {
            "needs": bool(graph.preconditions),
            "alternative": "any" in kinds,
            "after": bool(graph.order),
            "exclusive": bool(graph.exclusive),
            "response": bool(graph.responses),
            "loop": bool(graph.loops),
            "optional": bool(graph.optional),
            "repeats": bool(graph.repeats),
            "start": True,
            "all": any(formula.kind == "all" and "any" in formula.kinds for formula in formulas),
            "not": "not" in kinds,
            "share": len(shares) > 1,
            "weak": any(edge.support.weak for edge in graph.edges() if edge.support),
        }
        assert set(build_diagram(graph).drawn_kinds) == {kind for kind, does in occurs.items() if does}
        svg = drawing.svg(graph, picture=PictureOptions(legend=True)).replace("&#45;", "-")
        for kind, sign in SIGNS.items():
            if kind != "needs":  # also a word of the full names
                assert (f"{sign.words}</text>" in svg) == occurs[kind], (kind, sign)


def test_no_legend(coffee: SubtaskGraph) -> None:
    assert "after, if done</text>" in drawing.svg(coffee)
    assert "after, if done</text>" not in drawing.svg(coffee, picture=PictureOptions(legend=False))


def test_every_kind_of_line_is_told_without_its_colour() -> None:
    """Line, head and ends as SVG elements, with all colours taken out."""
    formulas = {"c": any_of([step("a"), step("b")]), "d": all_of([step("a"), negation(step("b"))])}
    graph = SubtaskGraph("t", "abcdef", formulas, order=[("a", "e")], exclusive=["ef"])
    svg = drawing.svg(graph, picture=PictureOptions(legend=False))
    looks: dict[str, set[tuple[object, ...]]] = {}
    for kind, inner in re.findall(r'<g id="[ex][^"]*" class="edge ([^"]*)">(.*?)</g>\n</g>', svg, re.DOTALL):
        filled = tuple(sorted(fill == "none" for fill in re.findall(r'<polygon fill="([^"]*)"', inner)))
        style = next((word for word in ("after", "alternative", "exclusive") if word in kind), "needs")
        looks.setdefault(style, set()).add((filled, inner.count("<polyline")))
    assert set(looks) == {"needs", "alternative", "after", "exclusive"}
    assert all(len(look) == 1 for look in looks.values())
    assert len({look for (look,) in looks.values()}) == 4, looks


@pytest.mark.parametrize(
    "wrong", [{"width": "8"}, {"width": "-2cm"}, {"width": "0in"}, {"width": "x"}, {"dpi": 0}, {"font_size": 1000.0}]
)
def test_impossible_sizes(wrong: dict[str, object], coffee: SubtaskGraph, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        coffee.show(tmp_path / "g.png", **wrong)
    assert not list(tmp_path.iterdir())

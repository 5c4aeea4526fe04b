"""A written procedure as a Word document (python-docx) and as PDF (ReportLab). Drafts say so on every page."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msg2.drawing.procedure import PEOPLE, LineKind, Procedure
from msg2.errors import InputError, optional_dependency
from msg2.text import one_line

if TYPE_CHECKING:
    from reportlab.lib.styles import ParagraphStyle

_DOCX_STYLES: Mapping[LineKind, str] = {
    "title": "Title", "status": "Subtitle", "heading": "Heading 1", "item": "List Bullet", "warning": "Intense Quote",
    "choice": "Heading 3", "step": "Heading 3", "must": "Strong", "note": "Normal", "evidence": "Normal",
}  # fmt: skip
_STILL_CM = 7.0
"""Width of a picture."""
_BEGINS = 6
"""Points above a paragraph that begins something."""


def to_docx(procedure: Procedure) -> bytes:
    """The procedure as a Word document."""
    with optional_dependency("a Word document", "docx"):
        import docx
        from docx.shared import Cm
    document = docx.Document()
    document.core_properties.title = one_line(procedure.title)
    document.sections[0].header.paragraphs[0].text = one_line(f"{procedure.title} · {procedure.subtitle}")
    for line in procedure.lines():
        text = one_line(line.text)
        if line.kind == "still":
            document.add_picture(BytesIO(line.jpeg), width=Cm(_STILL_CM))
            document.add_paragraph(text, "Caption")
        elif line.kind == "must":
            document.add_paragraph().add_run(text, _DOCX_STYLES["must"])
        else:
            document.add_paragraph(text, _DOCX_STYLES[line.kind])
    if procedure.has_stills:
        document.add_paragraph(PEOPLE)
    content = BytesIO()
    document.save(content)
    return content.getvalue()


def to_pdf(procedure: Procedure) -> bytes:
    """The procedure as PDF on A4; the same procedure gives the same bytes."""
    with optional_dependency("a PDF of a procedure", "docx"):
        from reportlab.lib.pagesizes import A4
        from reportlab.lib.units import cm
        from reportlab.lib.utils import ImageReader
        from reportlab.platypus import Image, Paragraph, SimpleDocTemplate
    font, characters = _font()
    missing = {c for line in procedure.lines() for c in one_line(line.text) if ord(c) not in characters}
    if missing:
        some = " ".join(sorted(missing)[:5])
        raise InputError(f"the font of the PDF does not have {some}", hint="write .html, and print it from the browser")
    styles, story = _pdf_styles(font), []
    for line in procedure.lines():
        if line.kind == "still":
            width, height = ImageReader(BytesIO(line.jpeg)).getSize()
            story.append(Image(BytesIO(line.jpeg), _STILL_CM * cm, _STILL_CM * cm * height / width, hAlign="LEFT"))
        text = escape(one_line(line.text))
        story.append(Paragraph(text, styles[line.kind], bulletText="•" if line.kind == "item" else None))
    if procedure.has_stills:
        story.append(Paragraph(PEOPLE, styles["evidence"]))

    def add_footer(canvas: Any, page: Any) -> None:
        canvas.setFont(font, 8)
        canvas.drawString(2 * cm, 1.2 * cm, one_line(f"{procedure.title} · {procedure.subtitle}")[:120])
        canvas.drawRightString(A4[0] - 2 * cm, 1.2 * cm, str(page.page))

    content = BytesIO()
    margins = dict.fromkeys(("leftMargin", "rightMargin", "topMargin", "bottomMargin"), 2 * cm)
    pages = SimpleDocTemplate(content, pagesize=A4, title=one_line(procedure.title), invariant=1, **margins)
    pages.build(story, onFirstPage=add_footer, onLaterPages=add_footer)
    return content.getvalue()


@cache
def _font() -> tuple[str, Mapping[int, object]]:
    """The name of a font, and the characters that it has.

    DejaVu Sans, which comes with matplotlib, has most alphabets; Vera, which comes with ReportLab, has Latin.
    """
    import reportlab
    from reportlab.pdfbase.pdfmetrics import registerFont
    from reportlab.pdfbase.ttfonts import TTFont

    path = Path(reportlab.__file__).parent / "fonts" / "Vera.ttf"
    matplotlib = find_spec("matplotlib")
    if matplotlib is not None and matplotlib.origin is not None:
        path = Path(matplotlib.origin).parent / "mpl-data" / "fonts" / "ttf" / "DejaVuSans.ttf"
    font = TTFont("msg2", str(path))
    registerFont(font)
    return "msg2", font.face.charToGlyph


def _pdf_styles(font: str) -> dict[LineKind, ParagraphStyle]:
    from reportlab.lib.styles import ParagraphStyle

    def style(size: float, before: float = 0, indent: float = 0, colour: str = "#2b2f36") -> ParagraphStyle:
        # What begins something stays on the page of what it begins.
        return ParagraphStyle(
            f"{size}-{before}-{indent}", fontName=font, fontSize=size, leading=1.35 * size, spaceBefore=before,
            spaceAfter=2, leftIndent=indent, textColor=colour, keepWithNext=before >= _BEGINS,
        )  # fmt: skip

    return {
        "title": style(20), "status": style(10, 2, colour="#a32407"), "heading": style(14, 12),
        "item": style(10, indent=12), "warning": style(10, 6, 8, "#a32407"), "choice": style(11, 8),
        "step": style(12, 8), "must": style(10, 0, 14, "#a32407"), "note": style(10, 0, 14), "still": style(8, 0, 14),
        "evidence": style(9, 3, colour="#5c636e"),
    }  # fmt: skip

"""XML, read once and in small pieces: nothing in it is fetched or expanded, and nothing grows without end.

Documents that define entities are refused (they are how a small file becomes a large one, or reads another file), as
are values and nesting beyond any use, and archives that unpack to hundreds of times their size.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn
from xml.parsers import expat

from msg2.errors import InputError, shortened
from msg2.readers import sources
from msg2.readers.sources import Source

CHUNK = 64 * 1024
MAX_DEPTH = 100
"""Elements within elements; the formats that we read have up to ten."""
MAX_RATIO = 300
"""A gzip file may unpack to this many times its size, once it is larger than `sources.MAX_DOCUMENT`: logs reach 60."""
_TOO_LONG = "has a value of more than {:,} characters"

Opened = Callable[[str, dict[str, str]], None]
"""Is told the name and the attributes of an element that begins."""


def root_name(source: Source) -> str | None:
    """The name of the outermost element; None where the file does not begin as XML."""
    if not source.head.lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n").startswith(b"<"):
        return None

    def found(name: str, attributes: dict[str, str]) -> None:
        raise _Root(name)

    parser = expat.ParserCreate()
    parser.StartElementHandler = found
    try:
        parser.Parse(source.head)
    except _Root as root:
        return str(root)
    except expat.ExpatError:
        pass
    return None


class _Root(Exception):  # noqa: N818
    """Ends the reading once the outermost element is known."""


def walk(
    source: Source, opened: Opened, closed: Callable[[str], None], text: Callable[[str], None] | None = None
) -> None:
    """Tell `opened` and `closed` of every element in the order of the file, and `text` what stands between them.

    An `InputError` that they raise without a place gets the line that was being read.
    """
    parser = _parser(opened, closed, text)
    try:
        _feed(parser, source)
    except expat.ExpatError as error:
        what = f"is not valid XML: {expat.errors.messages[error.code]} (column {error.offset + 1})"
        raise InputError(what, where=source.row(error.lineno)) from None
    except InputError as error:
        where: str | Path = error.where or source.row(parser.CurrentLineNumber)
        raise InputError(error.what, where=where, hint=error.hint) from None


def _feed(parser: expat.XMLParserType, source: Source) -> None:
    fed, most = 0, max(sources.MAX_DOCUMENT, MAX_RATIO * source.path.stat().st_size)
    with source.binary() as stream:
        while chunk := stream.read(CHUNK):
            parser.Parse(chunk)
            fed += len(chunk)
            if fed - parser.CurrentByteIndex > sources.MAX_LINE:
                raise InputError(_TOO_LONG.format(sources.MAX_LINE))
            if fed > most:
                raise InputError(f"unpacks to more than {MAX_RATIO} times its size", where=source.path)
        parser.Parse(b"", True)


def _parser(
    opened: Opened, closed: Callable[[str], None], text: Callable[[str], None] | None = None
) -> expat.XMLParserType:
    depth = length = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth, length
        depth, length = depth + 1, 0
        if depth > MAX_DEPTH:
            raise InputError(f"is nested more than {MAX_DEPTH} levels deep")
        opened(name, attributes)

    def end(name: str) -> None:
        nonlocal depth
        depth -= 1
        closed(name)

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = start, end
    if text is not None:

        def between(piece: str) -> None:
            nonlocal length
            length += len(piece)
            if length > sources.MAX_LINE:
                raise InputError(_TOO_LONG.format(sources.MAX_LINE))
            text(piece)

        parser.CharacterDataHandler = between
    parser.EntityDeclHandler = _refuse_entity
    parser.ExternalEntityRefHandler = _refuse_entity
    return parser


def _refuse_entity(name: str, *details: Any) -> NoReturn:
    what = f"defines the entity {shortened(str(name))}, which may be anything"
    raise InputError(what, hint="msg2 reads no XML with entities of its own; write out what they stand for")


def attribute(attributes: dict[str, str], name: str, of: str) -> str:
    """The attribute `name` of an element called `of`, which must have it."""
    if name not in attributes:
        raise InputError(f"<{of}> has no attribute {name!r}")
    return attributes[name]

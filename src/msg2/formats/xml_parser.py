"""XML, read once and in small pieces: nothing in it is fetched or expanded, and nothing grows without end.

Documents that define entities are refused: they are how a small file becomes a large one, or reads another file.
"""

import codecs
import re
from collections.abc import Callable, Iterator
from typing import IO, NoReturn
from xml.etree.ElementTree import Element, TreeBuilder
from xml.parsers import expat

from msg2.errors import InputError
from msg2.formats import source as source_module
from msg2.formats.source import Source
from msg2.text import short_repr

CHUNK = 64 * 1024
_ROOT = re.compile(r"(?s)(?:\s++|<\?.*?\?>|<!--.*?-->|<!DOCTYPE[^\[>]*+(?:\[.*?\]\s*+)?>)*+<([\w.:-]+)[\s/>]")
"""What may stand before the outermost element, and its name; names of other encodings are not those that msg2 reads."""
MAX_DEPTH = 100  # elements within elements; the formats that we read have up to ten


def root_name(source: Source) -> str | None:
    """The name of the outermost element; None where the file does not begin as XML."""
    head = source.head.removeprefix(codecs.BOM_UTF8)
    match = _ROOT.match(head.decode("utf-16" if b"\0" in head[:4] else "latin-1", "replace"))
    return match[1] if match else None


def read_chunks(stream: IO[bytes]) -> Iterator[bytes]:
    """A file in pieces."""
    return iter(lambda: stream.read(CHUNK), b"")


def feed_parser(
    parser: expat.XMLParserType, source: Source, pieces: Callable[[IO[bytes]], Iterator[bytes]] = read_chunks
) -> None:
    """Let a parser with its handlers read a file, or what is left of it in some pieces."""
    fed = 0
    parser.EntityDeclHandler = parser.ExternalEntityRefHandler = _refuse_entity
    parser.AttlistDeclHandler = _refuse_default
    try:
        with source.open_binary() as stream:
            for chunk in pieces(stream):
                parser.Parse(chunk)
                fed += len(chunk)
                _require_short(fed - parser.CurrentByteIndex)
            parser.Parse(b"", True)
    except expat.ExpatError as error:
        what = f"is not valid XML: {expat.errors.messages[error.code]} (column {error.offset + 1})"
        raise InputError(what, where=source.row(error.lineno)) from None
    except InputError as error:
        raise error.at(source.row(parser.CurrentLineNumber)) from None
    except (LookupError, ValueError) as error:
        what = f"is XML in an encoding that cannot be read ({error})"
        raise InputError(what, where=source.path, hint="save it as UTF-8") from None


def _require_short(length: int) -> None:
    if length > source_module.MAX_LINE:
        raise InputError(f"has a value of more than {source_module.MAX_LINE:,} characters")


def _refuse_entity(name: str, *details: object) -> NoReturn:
    what = f"defines the entity {short_repr(str(name))}, which may be anything"
    raise InputError(what, hint="msg2 reads no XML with entities of its own; write out what they stand for")


def _refuse_default(element: str, attribute: str, kind: str, default: str | None, required: bool) -> None:
    if default is not None:  # which every such element would get, however long it is
        what = f"gives <{short_repr(element)}> a default for {short_repr(attribute)}"
        raise InputError(what, hint="msg2 reads no XML with defaults of its own; write the attributes out")


def parse_children(source: Source, handle: Callable[[Element], object]) -> None:
    """Call a function for every element directly in the outermost one, once it is complete; none is kept."""
    parser, builder, outermost = expat.ParserCreate(), TreeBuilder(), Element("")
    parser.buffer_text = True
    depth = length = 0

    def start(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth, length, outermost
        depth, length = depth + 1, 0
        if depth > MAX_DEPTH:
            raise InputError(f"is nested more than {MAX_DEPTH} levels deep")
        element = builder.start(name, attributes)
        outermost = element if depth == 1 else outermost

    def end(name: str) -> None:
        nonlocal depth
        element, depth = builder.end(name), depth - 1
        if depth == 1:
            outermost.clear()
            handle(element)

    def add_text(piece: str) -> None:
        nonlocal length
        length += len(piece)
        _require_short(length)
        builder.data(piece)

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, add_text
    feed_parser(parser, source)


def require_attribute(element: Element, name: str) -> str:
    """One attribute of an element, which must have it."""
    if name not in element.attrib:
        raise InputError(f"<{element.tag}> has no attribute {name!r}")
    return element.attrib[name]

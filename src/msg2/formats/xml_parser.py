"""XML, read once and in small pieces: nothing in it is fetched or expanded, and nothing grows without end.

Documents that define entities are refused: they are how a small file becomes a large one, or reads another file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NoReturn, TypeAlias
from xml.parsers import expat

from msg2.errors import InputError
from msg2.formats import source as source_module
from msg2.formats.source import Source
from msg2.text import short_repr

CHUNK = 64 * 1024
MAX_DEPTH = 100  # elements within elements; the formats that we read have up to ten
_TOO_LONG = "has a value of more than {:,} characters"

StartHandler: TypeAlias = Callable[[str, dict[str, str]], object]
"""Is called with the name and the attributes of an element that begins."""
TextHandler: TypeAlias = Callable[[str], object]
"""Is called with a text: the name of an element that ends, or what stands between elements."""


def root_name(source: Source) -> str | None:
    """The name of the outermost element; None where the file does not begin as XML."""
    if not source.head.lstrip(b"\xef\xbb\xbf\xff\xfe\0 \t\r\n").startswith(b"<"):
        return None

    def stop(name: str, attributes: dict[str, str]) -> None:
        raise _RootReached(name)

    for encoding in (None, "iso-8859-1"):  # the second where Python does not know its own: who reads it will say so
        parser = expat.ParserCreate(encoding)
        parser.StartElementHandler = stop
        try:
            parser.Parse(source.head)
        except _RootReached as root:
            return str(root)
        except (LookupError, ValueError):
            continue
        except expat.ExpatError:
            pass
        break
    return None


class _RootReached(Exception):  # noqa: N818
    """Ends the reading once the outermost element is known."""


def parse_xml(source: Source, start: StartHandler, end: TextHandler, text: TextHandler | None = None) -> None:
    """Call the handlers for every element of a file, in its order."""
    parser = _make_parser(start, end, text)
    fed = 0
    try:
        with source.open_binary() as stream:
            while chunk := stream.read(CHUNK):
                parser.Parse(chunk)
                fed += len(chunk)
                if fed - parser.CurrentByteIndex > source_module.MAX_LINE:
                    raise InputError(_TOO_LONG.format(source_module.MAX_LINE))
            parser.Parse(b"", True)
    except expat.ExpatError as error:
        what = f"is not valid XML: {expat.errors.messages[error.code]} (column {error.offset + 1})"
        raise InputError(what, where=source.row(error.lineno)) from None
    except InputError as error:
        raise error.at(source.row(parser.CurrentLineNumber)) from None
    except (LookupError, ValueError) as error:
        if isinstance(error, KeyError | IndexError):  # of a handler
            raise
        what = f"is XML in an encoding that cannot be read ({error})"
        raise InputError(what, where=source.path, hint="save it as UTF-8") from None


def _make_parser(start: StartHandler, end: TextHandler, text: TextHandler | None) -> expat.XMLParserType:
    depth = length = 0

    def start_element(name: str, attributes: dict[str, str]) -> None:
        nonlocal depth, length
        depth, length = depth + 1, 0
        if depth > MAX_DEPTH:
            raise InputError(f"is nested more than {MAX_DEPTH} levels deep")
        start(name, attributes)

    def end_element(name: str) -> None:
        nonlocal depth
        depth -= 1
        end(name)

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = start_element, end_element
    if text is not None:

        def add_text(piece: str) -> None:
            nonlocal length
            length += len(piece)
            if length > source_module.MAX_LINE:
                raise InputError(_TOO_LONG.format(source_module.MAX_LINE))
            text(piece)

        parser.CharacterDataHandler = add_text
    parser.EntityDeclHandler = _refuse_entity
    parser.ExternalEntityRefHandler = _refuse_entity
    return parser


def _refuse_entity(name: str, *details: object) -> NoReturn:
    what = f"defines the entity {short_repr(str(name))}, which may be anything"
    raise InputError(what, hint="msg2 reads no XML with entities of its own; write out what they stand for")


def require_attribute(attributes: Mapping[str, str], name: str, element: str) -> str:
    """One attribute of an element, which must have it."""
    if name not in attributes:
        raise InputError(f"<{element}> has no attribute {name!r}")
    return attributes[name]

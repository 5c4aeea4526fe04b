"""MATLAB files as plain values, read by scipy in a process of its own: a broken file can crash scipy's reader.

A cell array becomes the list of its cells, a matrix of numbers the list of its rows, a text a str, all else None.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Sequence
from typing import IO, Any

from msg2.errors import InputError, optional_dependency
from msg2.formats.source import Source, UnpackingBudget
from msg2.text import short_repr

_COMPRESSED = 15
"""The type of an element that is packed; its data is a zlib stream."""
_CHUNK = 64 * 1024
_SECONDS = 120
"""A file takes a few."""
_ADDRESS_SPACE = 4 << 30
"""Bytes of the process that reads: what a broken file claims to hold is not to be made room for."""
_READER = "from msg2.formats.matlab_file import print_variables; print_variables()"


def read_variables(file: Source, needed: Sequence[str], others: Sequence[str] = ()) -> dict[str, Any]:
    """Read some variables of a MATLAB file."""
    with optional_dependency("reading MATLAB files", "matlab"):
        import scipy.io  # noqa: F401
    if file.head.startswith(b"MATLAB 7.3"):
        raise InputError("is a MATLAB 7.3 file", where=file.path, hint="save it from MATLAB with the option -v7")
    with file.open_binary() as stream:
        _count_unpacked(stream, file.unpacking_budget)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OPENBLAS_NUM_THREADS": "1"}
    try:
        ran = subprocess.run(
            [sys.executable, "-c", _READER, str(file.path), *needed, *others], env=environment, capture_output=True,
            stdin=subprocess.DEVNULL, timeout=_SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise InputError(f"takes more than {_SECONDS} seconds to read as MATLAB data", where=file.path) from None
    if ran.returncode != 0:
        raise InputError("is broken MATLAB data (its reader has crashed)", where=file.path)
    answer = json.loads(ran.stdout)
    if "error" in answer:
        raise InputError(f"is broken MATLAB data ({short_repr(answer['error'])})", where=file.path)
    variables: dict[str, Any] = answer["variables"]
    for name in needed:
        if name not in variables:
            hint = f"its variables are: {', '.join(answer['names'])}"
            raise InputError(f"has no variable {name!r}", where=file.path, hint=hint)
    return variables


def print_variables() -> None:
    """Print the variables of the file that the command line names as JSON; this runs in a process of its own."""
    from scipy.io import loadmat

    path, *names = sys.argv[1:]
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    try:
        with Source.at(path).open_binary() as stream:
            content = loadmat(stream)
        variables = {name: _to_plain(content[name]) for name in names if name in content}
        answer: dict[str, Any] = {
            "variables": variables,
            "names": sorted(name for name in content if not name.startswith("__")),
        }
    except Exception as error:  # broken files raise almost anything in there
        answer = {"error": str(error) or type(error).__name__}
    sys.stdout.write(json.dumps(answer))


def _to_plain(value: Any) -> Any:
    kind = value.dtype.kind if hasattr(value, "dtype") else ""
    if kind == "O":
        return [_to_plain(cell) for cell in value.ravel()]
    if kind == "U":
        return str(value.ravel()[0]) if value.size else ""
    return None if not kind or kind not in "iuf" else value.tolist() if value.size else []


def _count_unpacked(stream: IO[bytes], budget: UnpackingBudget) -> None:
    """Unpack the elements of the file without keeping anything; where it is broken, its reader will say so."""
    order = "<" if stream.read(128)[126:] == b"IM" else ">"
    unpacked = 0
    while len(tag := stream.read(8)) == 8:
        kind, size = struct.unpack(f"{order}II", tag)
        unpacker = zlib.decompressobj()
        while size > 0 and (chunk := stream.read(min(size, _CHUNK))):
            size -= len(chunk)
            while kind == _COMPRESSED and chunk:
                try:
                    unpacked += len(unpacker.decompress(chunk, _CHUNK))
                except zlib.error:
                    break
                budget.require(unpacked=unpacked)
                chunk = unpacker.unconsumed_tail

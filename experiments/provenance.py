"""What an experiment was made with: versions, and a fingerprint of the annotations it has read."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("msg2", "numpy", "scipy", "torch", "transformers")


def provenance(folder: Path | None) -> dict[str, Any]:
    """Versions of what has a part in the numbers; of the `folder` of annotations how many files, bytes, and a hash."""
    found: dict[str, Any] = {"python": f"{sys.version_info.major}.{sys.version_info.minor}", **dict(_versions())}
    if folder is not None:
        found["data"] = {"folder": folder.name, **fingerprint(folder)}
    return found


def _versions() -> Iterator[tuple[str, str]]:
    for package in PACKAGES:
        try:
            yield package, version(package).split("+")[0]  # without its build, which is a matter of the machine
        except PackageNotFoundError:
            continue


def fingerprint(folder: Path) -> dict[str, Any]:
    """How many files, how many bytes, and the SHA-256 of all names and contents in the order of the names."""
    whole, files, size = hashlib.sha256(), 0, 0
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            whole.update(f"{path.relative_to(folder).as_posix()}\0{hashlib.sha256(content).hexdigest()}\n".encode())
            files, size = files + 1, size + len(content)
    return {"files": files, "bytes": size, "sha256": whole.hexdigest()}

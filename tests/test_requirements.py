"""The lock has what the two commands install, at the pinned versions, with hashes for all platforms and no address."""

from __future__ import annotations

import re
from pathlib import Path

REQUIREMENTS = Path(__file__).parents[1] / "requirements"
PIN = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)
LOCK = (REQUIREMENTS / "lock.txt").read_text(encoding="utf-8")


def pins(*names: str) -> dict[str, str]:
    """Versions by normalized name."""
    text = "".join((REQUIREMENTS / name).read_text(encoding="utf-8") for name in names)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in PIN.findall(text)}


def test_the_lock_has_every_pin_but_pytorch() -> None:
    pinned = pins("demo.txt", "run.txt", "test.txt")
    assert pinned.pop("torch")
    assert pins("lock.txt") == pinned, "make lock"


def test_every_entry_has_hashes_and_compiled_ones_those_of_many_platforms() -> None:
    entries = {entry.split("==")[0]: entry.count("--hash=sha256:") for entry in re.split(r"\n(?=\w)", LOCK)}
    assert len(entries) == len(pins("lock.txt"))
    assert min(entries.values()) >= 1
    assert all(entries[name] > 20 for name in ("numpy", "scipy", "matplotlib", "pillow"))
    assert len(re.findall(r"sha256:[0-9a-f]{64}\b", LOCK)) == LOCK.count("--hash=")


def test_no_file_names_an_index() -> None:
    for path in REQUIREMENTS.glob("*.txt"):
        assert not re.search(r"://|--(extra-)?index-url|--find-links", path.read_text(encoding="utf-8")), path.name

"""What an installation weighs: megabytes on the disk and to download, by distribution and by optional part.

    python -m benchmarks.install_size                  # the core
    python -m benchmarks.install_size media server     # the core, and what each of these parts adds to it

Wheels are downloaded at the pinned versions and installed into a fresh environment, bytecode included, as pip does. A
part adds what the core does not have already; what two parts share is counted for both.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterable
from importlib.metadata import Distribution, distributions
from pathlib import Path

ROOT = Path(__file__).parents[1]
PINS = ("demo.txt", "run.txt", "test.txt")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_EXTRA = re.compile(r"extra\s*==\s*['\"]([^'\"]+)['\"]")


def normalized(name: str) -> str:
    """A name as indexes write it: ``Jinja2`` is ``jinja2``, ``typing_extensions`` is ``typing-extensions``."""
    return re.sub(r"[-_.]+", "-", name).lower()


def required(installed: dict[str, Distribution], name: str, extras: Iterable[str] = ()) -> set[str]:
    """Everything that a distribution needs, itself included, of what is installed.

    Parameters
    ----------
    installed : dict from str to Distribution
        By normalized name. What is not there is not needed on this machine.
    name : str
        The distribution.
    extras : iterable of str
        Its optional parts.

    Returns
    -------
    set of str
        Normalized names.
    """
    found: set[str] = set()
    waiting = [(name, frozenset(extras))]
    while waiting:
        current, wanted = waiting.pop()
        if current not in installed:
            continue
        found.add(current)
        for requirement in installed[current].requires or ():
            needed, _, marker = requirement.partition(";")
            match = _NAME.match(needed)
            extra = _EXTRA.search(marker)
            if match and (extra is None or extra[1] in wanted) and normalized(match[0]) not in found:
                waiting.append((normalized(match[0]), frozenset()))
    return found


def disk_bytes(distribution: Distribution) -> int:
    """The bytes of the files of a distribution, bytecode included; of an editable one, only the link to it."""
    paths = {Path(str(distribution.locate_file(file))) for file in distribution.files or ()}
    return sum(path.stat().st_size for path in paths if path.is_file())


def main(arguments: list[str] | None = None) -> int:
    """Install, measure, and print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.install_size", description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help="optional parts of msg2: media, server, …")
    parts = parser.parse_args(arguments).parts
    with tempfile.TemporaryDirectory() as folder:
        wheels, environment = Path(folder, "wheels"), Path(folder, "environment")
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
        project = f"{ROOT}[{','.join(parts)}]" if parts else str(ROOT)
        pins = Path(folder, "pins.txt")  # without `-r`, which pip would install from
        lines = "".join((ROOT / "requirements" / name).read_text(encoding="utf-8") for name in PINS).splitlines(True)
        pins.write_text("".join(line for line in lines if "==" in line), encoding="utf-8")
        subprocess.run([*pip, "wheel", "--no-cache-dir", "-c", pins, "-w", wheels, project], check=True)
        venv.create(environment, with_pip=True)
        (own,) = wheels.glob("msg2-*.whl")
        fresh = [environment / "bin" / "python", *pip[1:], "install", "--no-cache-dir", "--no-index"]
        subprocess.run([*fresh, "--no-deps", *wheels.glob("*.whl")], check=True)
        (site,) = environment.glob("lib/python3*/site-packages")
        installed = {normalized(each.name): each for each in distributions(path=[str(site)])}
        downloads = {normalized(wheel.name.split("-")[0]): wheel.stat().st_size for wheel in wheels.iterdir()}
        sizes = {name: disk_bytes(each) for name, each in installed.items()}
        print(f"msg2 itself: a wheel of {own.stat().st_size / 1e6:.1f} MB")
        core = required(installed, "msg2")
        for part in (None, *parts):
            names = required(installed, "msg2", [part]) - core if part else core
            _print_part(part or "core", {name: (sizes[name], downloads[name]) for name in names})
    return 0


def _print_part(part: str, sizes: dict[str, tuple[int, int]]) -> None:
    print(f"\n{part}: {' and '.join(_megabytes(sizes.values()))} to download")
    for name, (disk, download) in sorted(sizes.items(), key=lambda item: -item[1][0]):
        if disk >= 1e6:
            print(f"  {name:24} {disk / 1e6:8.1f} {download / 1e6:8.1f}")


def _megabytes(sizes: Iterable[tuple[int, int]]) -> tuple[str, str]:
    disk, download = map(sum, zip(*sizes, strict=True))
    return f"{disk / 1e6:.0f} MB on the disk", f"{download / 1e6:.0f} MB"


if __name__ == "__main__":
    sys.exit(main())

"""CONTRIBUTING describes the code as it is: what it names exists, and all packages and modules are named."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
NAMED = re.findall(r"^\| `([\w./]+)` \|", TEXT, re.MULTILINE)
IN_REPOSITORY = ("experiments", "benchmarks")


def parts(folder: Path) -> Iterator[str]:
    """The packages (as `name/`) and modules (as `name.py`) of a package."""
    for path in sorted(folder.iterdir()):
        if (path / "__init__.py").is_file():
            yield f"{path.name}/"
        elif path.suffix == ".py" and not path.stem.startswith("__"):
            yield path.name


def test_all_packages_and_modules_of_the_wheel_are_named_and_exist() -> None:
    named = [name for name in NAMED if not name.startswith(IN_REPOSITORY)]
    assert sorted(named) == sorted(parts(ROOT / "src/msg2"))


def test_all_folders_beside_the_package_are_named_and_exist() -> None:
    named = {name for name in NAMED if name.startswith(IN_REPOSITORY)}
    packages = {f"{name}/" for name in IN_REPOSITORY}
    inner = {f"experiments/{name}" for name in parts(ROOT / "experiments") if name.endswith("/")}
    assert named == packages | inner


def test_the_packages_stand_in_the_order_that_import_linter_checks() -> None:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = next(each for each in configuration["tool"]["importlinter"]["contracts"] if each["type"] == "layers")
    layers = [
        {name.strip().removeprefix("msg2.") for name in re.split(r"[|:]", layer)}
        for layer in reversed(contract["layers"])
        if layer.startswith("msg2.")
    ]
    rank = {name: number for number, layer in enumerate(layers) for name in layer}
    named = [name.rstrip("/").removesuffix(".py") for name in NAMED if not name.startswith(IN_REPOSITORY)]
    assert set(named) == set(rank)
    assert [rank[name] for name in named] == sorted(rank[name] for name in named)


def test_modules_and_functions_that_the_pages_name_exist() -> None:
    """Every `src/…`, `inference/registry.py` and the like in CONTRIBUTING and on the page on extending."""
    pages = TEXT + (ROOT / "docs/extending.md").read_text(encoding="utf-8")
    for path in re.findall(r"`((?:\w+/)+\w+\.(?:py|md))`", pages):
        assert any((folder / path).is_file() for folder in (ROOT, ROOT / "src/msg2")), path

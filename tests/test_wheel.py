"""The wheel as a user gets it: built, installed without extras into an empty environment, and used."""

from __future__ import annotations

import ast
import os
import subprocess
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(WheelBuilder, ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(SdistBuilder, ROOT, tmp_path_factory.mktemp("archive"))


def build(builder: type[WheelBuilder] | type[SdistBuilder], root: Path, folder: Path) -> Path:
    """What `python -m build` makes of a checkout, in this process."""
    (built,) = builder(str(root)).build(directory=str(folder), versions=["standard"])
    return Path(built)


@pytest.fixture(scope="module")
def commands(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of commands of an environment that holds nothing but the wheel and what it requires."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    pins = ROOT / "requirements" / "demo.txt"
    install = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-cache-dir", "-c", pins, wheel]
    done = subprocess.run(install, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "bin"


def run(commands: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # No PATH and no home: nothing of the machine may help, no `dot` above all.
    environment = {"PATH": "", "HOME": str(folder), "LANG": os.environ.get("LANG", "C.UTF-8")}
    return subprocess.run(
        [commands / "msg2", *arguments], cwd=folder, env=environment, check=False, capture_output=True, text=True
    )


def test_the_wheel_carries_types_and_schema_and_no_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {"msg2/py.typed", "msg2/graph/schema.json"} <= set(names)
    assert all(name.startswith(("msg2/", "msg2-")) for name in names)


def test_the_wheel_is_the_same_bytes_from_the_checkout_and_from_the_source_archive(
    wheel: Path, archive: Path, tmp_path: Path
) -> None:
    """As `make dist` makes them."""
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    assert build(WheelBuilder, unpacked, tmp_path / "dist").read_bytes() == wheel.read_bytes()
    assert {entry.date_time for entry in zipfile.ZipFile(wheel).infolist()} == {(2020, 2, 2, 0, 0, 0)}


def test_the_version_is_the_same_everywhere(wheel: Path) -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert wheel.name == f"msg2-{version}-py3-none-any.whl"


@pytest.mark.slow
def test_the_source_archive_installs_into_an_empty_environment(archive: Path, tmp_path: Path) -> None:
    """On a bare machine: pip alone, which fetches what builds the archive."""
    venv.create(tmp_path / "environment", with_pip=True)
    python = tmp_path / "environment" / "bin" / "python"
    pins = ROOT / "requirements" / "demo.txt"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-cache-dir", "-c", pins, archive], check=True)
    (tmp_path / "steps.csv").write_text("video,step\nv1,a\nv1,b\nv2,a\nv2,b\n")
    assert run(python.parent, tmp_path, "infer", "steps.csv", "-o", "graph.json").returncode == 0


def test_the_wheel_has_no_experiments_and_needs_none(wheel: Path) -> None:
    packed = zipfile.ZipFile(wheel)
    sources = [name for name in packed.namelist() if name.endswith(".py")]
    assert len(sources) > 100
    assert not any("experiments" in name for name in sources)
    for name in sources:
        for node in ast.walk(ast.parse(packed.read(name))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not any(module.split(".")[0] in ("experiments", "benchmarks") for module in names), name


@pytest.mark.slow
def test_first_commands_work_in_an_empty_environment(commands: Path, tmp_path: Path) -> None:
    assert run(commands, tmp_path, "--version").stdout.startswith("msg2 ")
    demo = run(commands, tmp_path, "demo", "-o", "demo")
    assert demo.returncode == 0, demo.stderr
    assert demo.stdout.rstrip().endswith("graph.html")
    assert run(commands, tmp_path, "describe", "demo/steps.csv").returncode == 0
    assert run(commands, tmp_path, "infer", "demo/steps.csv", "-o", "again.json").returncode == 0
    for suffix in ("svg", "png", "html", "dot", "mmd", "graphml", "pddl"):
        shown = run(commands, tmp_path, "show", "again.json", "-o", f"graph.{suffix}")
        assert shown.returncode == 0, shown.stderr
        assert (tmp_path / f"graph.{suffix}").stat().st_size > 100
    assert run(commands, tmp_path, "evaluate", "again.json", "--truth", "demo/truth.json").returncode == 0


@pytest.mark.slow
def test_a_missing_extra_names_its_pip_install(commands: Path, tmp_path: Path) -> None:
    (tmp_path / "steps.csv").write_text("video,step\nv1,a\nv1,b\nv2,a\nv2,b\n")
    sweep = run(commands, tmp_path, "sweep", "steps.csv", "-o", "sweep.csv")
    assert sweep.returncode == 0
    assert "pip install 'msg2[plot]'" in sweep.stderr
    assert {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")} == {"steps.csv", "sweep.csv"}

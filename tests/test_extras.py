"""Optional packages: one that is missing names its `pip install`, one that is broken shows its own error."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from msg2.errors import InputError, MissingExtraError, optional_dependency
from msg2.media.feature_store import Encoders, VideoFeatures, write_store

CUDA = "libcudart.so.13: cannot open shared object file"
BROKEN = {
    "a library": (f"raise OSError({CUDA!r})", f"OSError: {CUDA}"),
    "another version": (
        "raise ImportError('cannot import name \\'ndarray\\' from \\'numpy\\'')",
        "ImportError: cannot import name 'ndarray' from 'numpy'",
    ),
    "a name": ("from json import no_such_name", "ImportError: cannot import name 'no_such_name' from 'json'"),
    "a module of its own": ("import {name}._compiled", "ModuleNotFoundError: No module named '{name}._compiled'"),
}


def install(folder: Path, name: str, code: str) -> None:
    """Put a package into a folder."""
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text(code.replace("{name}", name) + "\n")


# -- the context ------------------------------------------------------------------------------------------------


def test_a_package_that_is_missing_names_its_extra() -> None:
    with pytest.raises(MissingExtraError) as caught, optional_dependency("reading Parquet", "parquet"):
        import_module("no_such_package")
    assert str(caught.value) == (
        "reading Parquet needs an optional part of msg2 that is not installed\n  pip install 'msg2[parquet]'"
    )


def test_a_package_whose_own_dependency_is_missing_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "halfway", "import no_such_package.part")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingExtraError), optional_dependency("reading Parquet", "parquet"):
        import_module("halfway")


@pytest.mark.parametrize("kind", BROKEN)
def test_a_package_that_is_broken_shows_its_own_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    code, expected = BROKEN[kind]
    name = f"broken_{len(code)}"
    install(tmp_path, name, code)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(InputError) as caught, optional_dependency("reading Parquet", "parquet"):
        import_module(name)
    assert not isinstance(caught.value, MissingExtraError)
    assert expected.replace("{name}", name) in str(caught.value)
    assert "pip install" not in str(caught.value)
    assert len(str(caught.value).splitlines()) <= 2
    assert caught.value.__cause__ is not None, "whoever looks for the reason finds it"


def test_errors_that_have_nothing_to_do_with_imports_pass() -> None:
    for error in (KeyError("x"), InputError("is empty"), ZeroDivisionError()):
        with pytest.raises(type(error)) as caught, optional_dependency("reading Parquet", "parquet"):
            raise error
        assert caught.value is error


def test_a_module_of_msg2_that_is_missing_is_no_missing_extra() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"msg2\.no_such_module"), optional_dependency("reading", "parquet"):
        import_module("msg2.no_such_module")


# -- the commands -----------------------------------------------------------------------------------------------


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Labels of two videos, and their features."""
    (tmp_path / "steps.csv").write_text("video,step,start,end\nv1,a,0,1\nv1,b,1,2\nv2,a,0,1\nv2,b,1,2\n")
    features = VideoFeatures(np.arange(3.0), np.ones((3, 2)), np.array([[0.0, 1.0]]), np.ones((1, 2)))
    write_store(tmp_path / "features", dict.fromkeys([(None, "v1"), (None, "v2")], features), Encoders("x", "y", 2, 2))
    return tmp_path


def environment(packages: Path) -> dict[str, str]:
    """One where these packages are found first."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(packages), os.environ.get("PYTHONPATH", "")])}


def run(folder: Path, *arguments: str) -> list[str]:
    """The error of a command that finds the packages in `folder`/packages first: it fails, in at most three lines."""
    done = subprocess.run(
        [Path(sys.executable).with_name("msg2"), *arguments], cwd=folder, check=False, capture_output=True, text=True,
        env=environment(folder / "packages"), timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, ""), done
    assert done.stderr.startswith("msg2: ")
    assert len(done.stderr.splitlines()) <= 3
    return done.stderr.splitlines()


TRAIN = ("states", "train", "steps.csv", "--features", "features", "-o", "model")
MISSING = "raise ModuleNotFoundError('No module named \\'{name}\\'', name='{name}_of_nobody')"


@pytest.mark.parametrize("kind", ["a library", "another version"])
def test_training_with_a_broken_torch_says_what_torch_says(work: Path, kind: str) -> None:
    code, expected = BROKEN[kind]
    install(work / "packages", "torch", code)
    first, *rest = run(work, *TRAIN)
    assert first.endswith(f"state prediction needs a package that is installed but cannot be imported: {expected}")
    assert not any("pip install" in line for line in rest)
    assert not (work / "model").exists()


@pytest.mark.parametrize("package", ["torch", "safetensors", "scipy"])
def test_training_without_a_package_says_what_to_install(work: Path, package: str) -> None:
    install(work / "packages", package, MISSING)
    assert run(work, *TRAIN) == [
        "msg2: state prediction needs an optional part of msg2 that is not installed",
        "  pip install 'msg2[states]'",
    ]


@pytest.mark.parametrize(
    ("package", "arguments"),
    [
        ("pyarrow", ("describe", "steps.parquet")),
        ("fastapi", ("serve",)),
        ("torch", ("run", "steps.csv", "--features", "features", "-o", "out")),
        ("scipy", ("label", "said", "--steps", "steps.csv", "-o", "draft.csv")),
        ("scipy", ("describe", "data.mat")),
    ],
)
def test_other_commands_tell_broken_from_missing_too(work: Path, package: str, arguments: tuple[str, ...]) -> None:
    (work / "steps.parquet").write_bytes(b"PAR1\x00\x00PAR1")
    (work / "data.mat").write_bytes(b"MATLAB 5.0 MAT-file".ljust(124) + b"\x00\x01IM")
    install(work / "packages", package, BROKEN["a library"][0])
    said = " ".join(run(work, *arguments))
    assert CUDA in said
    assert "pip install" not in said
    (work / "packages" / package / "__init__.py").write_text(MISSING.replace("{name}", package))
    assert "pip install 'msg2[" in run(work, *arguments)[-1]


def test_state_models_without_a_transformer_do_without_its_package(tmp_path: Path) -> None:
    """What `make demo` trains; a variant with a transformer names the part that is missing."""
    install(tmp_path, "transformers", MISSING.replace("{name}", "transformers"))
    code = """
from msg2 import states
from msg2.errors import MissingExtraError
from msg2.states.network import StateModel
from msg2.states.configuration import VARIANTS
states.require_torch()
StateModel(3, 4, 4, VARIANTS["evidence"].options()[0])
try:
    StateModel(3, 4, 4, VARIANTS["paper"].options()[0])
except MissingExtraError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment(tmp_path)
    )
    assert done.stdout.splitlines() == [
        "a model with a transformer needs an optional part of msg2 that is not installed",
        "  pip install 'msg2[states]'",
    ]

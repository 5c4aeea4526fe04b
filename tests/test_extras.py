"""Optional packages: one that is missing names its `pip install`, one that is broken shows its own error."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from msg2.errors import InputError, MissingExtraError, optional_dependency
from msg2.formats.feature_store import Encoders, VideoFeatures, write_store

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

MISSING = "raise ModuleNotFoundError('No module named \\'{name}\\'', name='{name}_of_nobody')"
TRAIN = "states train steps.csv --features features -o model"
CASES = [
    ("torch", BROKEN["a library"][0], TRAIN),
    ("torch", BROKEN["another version"][0], TRAIN),
    ("torch", MISSING, TRAIN),
    ("torch", BROKEN["a library"][0], "run steps.csv --features features -o out"),
    ("torch", MISSING, "run steps.csv --features features -o out"),
    ("fastapi", BROKEN["a library"][0], "serve"),
    ("fastapi", MISSING, "serve"),
    ("safetensors", MISSING, TRAIN),
]
"""A package, what happens when it is imported, and a command that needs it."""
PROGRAM = """
import contextlib, importlib, io, json, shlex, sys
from pathlib import Path

answers = []
for number, (package, code, command) in enumerate(json.load(sys.stdin)):
    folder = Path("packages", str(number)).resolve()
    (folder / package).mkdir(parents=True)
    (folder / package / "__init__.py").write_text(code)
    sys.path.insert(0, str(folder))
    for name in [name for name in sys.modules if name.partition(".")[0] in ("msg2", package)]:
        del sys.modules[name]
    importlib.invalidate_caches()
    sys.argv = ["msg2", *shlex.split(command)]
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            importlib.import_module("msg2.cli").main()
        except SystemExit as ended:
            answers.append((ended.code, out.getvalue(), err.getvalue()))
    sys.path.remove(str(folder))
print(json.dumps(answers))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str, str], list[str]]:
    """What the commands say, one after the other in one process, each with its package in the place of the real one."""
    folder = tmp_path_factory.mktemp("extras")
    (folder / "steps.csv").write_text("video,step,start,end\nv1,a,0,1\nv1,b,1,2\nv2,a,0,1\nv2,b,1,2\n")
    features = VideoFeatures(np.arange(3.0), np.ones((3, 2)), np.array([[0.0, 1.0]]), np.ones((1, 2)))
    write_store(folder / "features", dict.fromkeys([(None, "v1"), (None, "v2")], features), Encoders("x", "y", 2, 2))
    cases = [(package, code.replace("{name}", package), command) for package, code, command in CASES]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=json.dumps(cases), cwd=folder, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = {}
    for case, (code, out, err) in zip(CASES, json.loads(done.stdout), strict=True):
        assert (code, out) == (1, ""), err
        assert err.startswith("msg2: ")
        found[case] = err.splitlines()
    assert {path.name for path in folder.iterdir()} == {"steps.csv", "features", "packages"}
    return found


def test_a_command_with_a_broken_package_says_what_the_package_says(
    answers: dict[tuple[str, str, str], list[str]],
) -> None:
    for kind in ("a library", "another version"):
        code, expected = BROKEN[kind]
        for package, how, command in CASES:
            if how == code:
                said = answers[package, how, command]
                assert f"needs a package that is installed but cannot be imported: {expected}" in " ".join(said)
                assert "pip install" not in " ".join(said)
                assert len(said) <= 3


def test_a_command_without_a_package_says_what_to_install(answers: dict[tuple[str, str, str], list[str]]) -> None:
    for package, how, command in CASES:
        if how == MISSING:
            first, last = answers[package, how, command]
            assert first.endswith("needs an optional part of msg2 that is not installed")
            assert last.startswith("  pip install 'msg2[")


def test_state_models_without_a_transformer_do_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `make demo` trains; a variant with a transformer names the part that is missing."""
    pytest.importorskip("torch")
    from msg2.states.configuration import VARIANTS
    from msg2.states.network import StateModel

    monkeypatch.setitem(sys.modules, "transformers", None)
    monkeypatch.delitem(sys.modules, "msg2.states.transformer_encoders", raising=False)
    StateModel(3, 4, 4, VARIANTS["evidence"].options()[0])
    with pytest.raises(MissingExtraError, match="a model with a transformer needs an optional part of msg2"):
        StateModel(3, 4, 4, VARIANTS["paper"].options()[0])

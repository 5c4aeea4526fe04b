"""What `import msg2` promises: every public name, documented, and nothing heavy until it is used."""

from __future__ import annotations

import copy
import doctest
import inspect
import pickle
import subprocess
import sys
from importlib.metadata import version

import pytest

import msg2

OPTIONAL = (
    "av", "fastapi", "faster_whisper", "matplotlib", "pandas", "ray", "safetensors", "sklearn", "spacy", "torch",
    "transformers",
)  # fmt: skip
HEAVY = ("numpy", "networkx", "pyarrow", "pydantic", "pygraphviz", "rich", "scipy", "typer", *OPTIONAL)
STAGES = (
    "import msg2.cli",
    "import msg2; msg2.Task; msg2.InputError",
    "; ".join(f"msg2.{name}" for name in msg2.__all__),
    "msg2.infer([['a', 'b'], ['a', 'b']])",
    "from msg2.cli import app",
)


@pytest.fixture(scope="module")
def imported() -> dict[str, set[str]]:
    """Which heavy packages a fresh interpreter has imported after each stage, one after the other."""
    asked = "".join(f"{stage}\nprint(*(name for name in {HEAVY} if name in sys.modules))\n" for stage in STAGES)
    done = subprocess.run([sys.executable, "-c", f"import sys\n{asked}"], capture_output=True, text=True, check=True)
    return {stage: set(line.split()) for stage, line in zip(STAGES, done.stdout.splitlines(), strict=True)}


def test_importing_msg2_imports_nothing_heavy(imported: dict[str, set[str]]) -> None:
    assert imported[STAGES[0]] == set(), "so that Ctrl-C is handled from the first moment on"
    assert imported[STAGES[1]] == set()


def test_neither_a_public_name_nor_the_command_line_imports_an_optional_package(imported: dict[str, set[str]]) -> None:
    assert imported[STAGES[-1]] & set(OPTIONAL) == set()


def test_public_names_are_documented_with_an_example() -> None:
    for name in msg2.__all__:
        value = getattr(msg2, name)
        assert inspect.getdoc(value), name
        if inspect.isclass(value) or inspect.isfunction(value):
            assert value.__module__.startswith("msg2.")
            assert doctest.DocTestFinder(recurse=False).find(value)[0].examples, f"{name} has no example"


def test_the_names_are_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(msg2.__all__) <= set(dir(msg2))
    assert sorted(msg2.__all__) == msg2.__all__
    assert msg2.__version__ == version("msg2")
    namespace: dict[str, object] = {}
    exec("from msg2 import *", namespace)
    assert set(msg2.__all__) <= set(namespace)
    with pytest.raises(AttributeError, match="module 'msg2' has no attribute 'nothing'"):
        _ = msg2.nothing


def test_the_example_of_the_design(tmp_path) -> None:
    path = tmp_path / "toast.csv"
    rows = "".join(f"v{n},{step}\n" for n in range(6) for step in ("whisk mixture", "dip bread", "flip bread"))
    path.write_text("video,step\n" + rows)
    task = msg2.read(path, task="Toast")
    graph = msg2.infer(task, method="msg2")
    assert graph.eligible({"whisk mixture"}) == {"whisk mixture", "dip bread"}
    assert graph.show(tmp_path / "toast.html").exists()
    assert "dip bread" in graph.explain("flip bread")
    assert msg2.metrics.accuracy(graph, graph) == 1
    assert msg2.next_steps(graph, done=["whisk mixture"])[0].step == "dip bread"
    assert msg2.check(graph, task.videos[0]).mistakes == ()
    assert msg2.read_all(path) == [task]


def test_what_was_seen_and_learnt_can_be_pickled_and_copied() -> None:
    videos = [msg2.Video(name, [msg2.Segment("a", 0, 1), msg2.Segment("b", 1, 2)]) for name in "vw"]
    task = msg2.Task("t", "ab", videos)
    graph = msg2.infer(task)
    for value in (task, graph):
        assert pickle.loads(pickle.dumps(value)) == copy.deepcopy(value) == value
    assert pickle.loads(pickle.dumps(graph)).dumps() == graph.dumps()

"""A plug-in package on the path adds a method, a format and a ranker, and what is broken in it is named."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import pytest

import msg2
from msg2.assist import RANKERS, next_steps
from msg2.assist.rankers import make_ranker
from msg2.cli.flags import complete_method, complete_ranker
from msg2.formats import registry
from msg2.graph import step
from msg2.inference import METHODS
from msg2.plugins import Registry

FOLDER = Path(__file__).parent / "example_plugin"
OWN = {"msg2", "msgi", "msgi+", "always-before", "likelihood"}


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is installed, as far as Python can tell, and no registry has looked for plug-ins yet."""
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, "msg2_example", raising=False)
    for each in (METHODS, RANKERS, registry.WRITERS, registry._PLUGINS):
        assert isinstance(each, Registry)
        monkeypatch.setattr(each, "data", dict(each.data))
        monkeypatch.setattr(each, "_loaded", False)


@pytest.mark.usefixtures("plugin")
def test_its_method_learns_with_its_options(tmp_path: Path) -> None:
    graph = msg2.infer([["b", "a", "c"]], "chain")
    assert graph.preconditions == {"b": step("a"), "c": step("b")}
    assert msg2.infer([["b", "a", "c"]], "chain", skip=2).preconditions == {"c": step("a")}
    with pytest.raises(msg2.InputError, match="'chain' has no option 'delta'"):
        msg2.infer([["a"]], "chain", delta=1)
    truth = {"task": graph}
    table = msg2.benchmark([["b", "a", "c"]] * 2, truth, ["chain", "chain:skip=2"]).table()
    assert table.rows[0][1] == 100


@pytest.mark.usefixtures("plugin")
def test_its_format_is_recognised_read_and_written(tmp_path: Path) -> None:
    data = tmp_path / "tea.txt"
    data.write_text("#pipes\nv1 | boil\nv1 | pour\nv2 | boil\n")
    assert msg2.summarize(data).format == "lines with pipes"
    task = msg2.read(data)
    assert [video.sequence() for video in task] == [("boil", "pour"), ("boil",)]
    msg2.write(task, tmp_path / "again.pipes")
    assert (tmp_path / "again.pipes").read_text() == data.read_text()
    plain = tmp_path / "plain.csv"
    plain.write_text("video,step\nv1,boil\n")
    assert msg2.read(plain).steps == ("boil",), "our own formats are read as before"


@pytest.mark.usefixtures("plugin")
def test_its_ranker_says_what_comes_next() -> None:
    graph = msg2.SubtaskGraph("t", "abc", {})
    assert next_steps(graph, ["a"], make_ranker("alphabet", graph))[0].step == "b"
    assert msg2.evaluate_next_step([["a", "b"]] * 4, "alphabet").accuracy == 1


@pytest.mark.usefixtures("plugin")
def test_all_are_listed_wherever_there_is_a_choice() -> None:
    routes = pytest.importorskip("msg2.server.routes")
    choices = routes.list_choices()
    assert set(complete_method()) == set(METHODS) == set(choices["methods"]) == {*OWN, "chain"}
    assert [option["name"] for option in choices["method_options"]["chain"]["options"]] == ["skip"]
    assert "pipes" in choices["label_formats"]
    assert complete_ranker()[-1] == "alphabet"


@pytest.mark.usefixtures("plugin")
def test_what_is_broken_is_named_in_a_line_and_the_rest_works(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "msg2"):
        assert len(METHODS) == 6
        assert METHODS["likelihood"].options.__name__ == "LikelihoodOptions", "a plug-in cannot replace our own"
        assert [*RANKERS][-1] == "alphabet"
        assert ".pipes" in registry.WRITERS
        assert len(registry._PLUGINS) == 1
    said = [record.getMessage() for record in caplog.records]
    assert [line.partition(" is left out: ")[0] for line in said] == [
        "the plug-in 'likelihood' (msg2_example:METHOD)", "the plug-in 'lost' (msg2_example:LOST)",
        "the plug-in 'wrong' (msg2_example:RANKER)", "the plug-in 'absent' (msg2_example_absent:RANKER)",
        "the plug-in 'nothing' (msg2_example:METHOD)",
    ]  # fmt: skip
    assert not any("\n" in line for line in said)
    assert "No module named 'msg2_example_absent'" in said[3]


@pytest.mark.usefixtures("plugin")
def test_a_format_that_breaks_down_does_not_keep_others_from_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import msg2_example  # type: ignore[import-not-found]

    def fail(source: object) -> bool:
        raise KeyError("tea")

    monkeypatch.setattr(msg2_example, "READER", registry.Reader("broken", fail, msg2_example.READER.read))
    data = tmp_path / "steps.csv"
    data.write_text("video,step,note\nv1,boil,hot\n")
    assert msg2.read(data).steps == ("boil",)
    assert "the plug-in 'pipes' cannot tell whether it reads steps.csv: KeyError('tea')" in caplog.text


def test_plugins_appear_in_the_help_and_are_not_loaded_without_need(tmp_path: Path) -> None:
    """In a fresh process: nothing asks for entry points before a registry is asked."""
    (tmp_path / "steps.csv").write_text("video,step\nv1,a\nv1,b\nv2,a\nv2,b\n")
    code = (
        "import sys, msg2; msg2.infer('steps.csv'); assert 'msg2_example' not in sys.modules\n"
        "from typer.main import get_command; from msg2.cli.app import app\n"
        "for name in ('infer', 'next'):\n"
        "    try: get_command(app)([name, '--help'], prog_name='msg2')\n"
        "    except SystemExit: pass\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={"PYTHONPATH": f"{FOLDER}:{Path(msg2.__file__).parents[1]}", "COLUMNS": "200", "PATH": ""},
    )  # fmt: skip
    infer, _, following = ran.stdout.partition("Usage: msg2 next")
    assert "chain" in infer
    assert "alphabet" in following
    assert "lost" not in infer

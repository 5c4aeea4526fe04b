"""Running the command line as a user does, and a small task whose graph is plain to see."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from msg2.cli.app import main
from msg2.formats.step_table import to_csv
from msg2.simulation import household_world, simulate
from msg2.simulation.simulator import SimulationOptions


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object on stdout."""
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The error, which is alone on stderr in one to three lines, with nothing on stdout."""
        assert self.code == 1, self
        assert self.out == ""
        assert self.err.startswith("msg2: ")
        assert len(self.err.splitlines()) <= 3
        return self.err


Msg2 = Callable[..., Ran]


@pytest.fixture
def msg2(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Msg2:
    """`msg2("infer", path, "-o", out)`: runs a command in this process; what nobody foresaw fails the test."""
    monkeypatch.setenv("MSG2_TRACEBACK", "1")

    def run(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["msg2", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        captured = capfd.readouterr()
        return Ran(int(ended.value.code or 0), captured.out, captured.err)

    return run


@pytest.fixture(scope="session")
def command() -> Path:
    """The installed program."""
    return Path(sys.executable).with_name("msg2")


@pytest.fixture
def shell(command: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """`shell("msg2 --version | head -1", LC_ALL="C")`: runs a line of bash in a fresh process, in `tmp_path`."""

    def run(line: str, **environment: str) -> subprocess.CompletedProcess[str]:
        path = {"PATH": f"{command.parent}:/usr/bin:/bin", **environment}
        return subprocess.run(
            ["bash", "-o", "pipefail", "-c", line], cwd=tmp_path, env=path, capture_output=True, text=True, timeout=600,
            check=False,
        )  # fmt: skip

    return run


TRUTH = {
    "format": "msg2.graph/1",
    "task": "toast",
    "steps": ["Whisk ", "HEAT", "dip", "fry"],
    "preconditions": {"dip": "Whisk ", "fry": {"all": ["dip", "HEAT"]}},
}

CHAIN = "".join(
    f"v{number},{step},{time},{time + 1}\n" for number in range(8) for time, step in enumerate(["whisk", "dip", "fry"])
)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Eight videos that all whisk, dip and fry; the last one heats the pan all the while."""
    path = tmp_path / "toast.csv"
    path.write_text("video,step,start,end\n" + CHAIN + "v7,heat,0.5,2.5\n")
    return path


@pytest.fixture
def graph(tmp_path: Path, table: Path, msg2: Msg2) -> Path:
    """What is learnt from `table`: first whisk, then dip, then fry."""
    path = tmp_path / "toast.json"
    assert msg2("infer", table, "-o", path, "--method", "msg2", "--set", "delta=0.9").code == 0
    return path


@pytest.fixture(scope="session")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Noisy demonstrations of three tasks in one table."""
    path = tmp_path_factory.mktemp("many") / "many.csv"
    names = ("Perform CPR", "Make Coffee", "Repot Plant")
    path.write_text(
        to_csv(simulate(household_world(name), SimulationOptions(videos=15), seed=1).task for name in names)
    )
    return path


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    """The true graph, with names that are written differently."""
    path = tmp_path / "truth.json"
    path.write_text(json.dumps(TRUTH))
    return path

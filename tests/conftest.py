"""Where tests find the real data and what they do without it; what every test leaves as it found it."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import hypothesis
import pytest

# The same digits on any number of cores, whoever starts the tests: set before NumPy and PyTorch are imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# A shell that starts the tests in the background ignores Ctrl-C for them; the programs that they start must not.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A busy machine is no failure: examples have no deadline. They are the same every time, until a test is changed.
hypothesis.settings.register_profile("fast", deadline=None, derandomize=True, max_examples=25)
hypothesis.settings.register_profile("thorough", deadline=None, derandomize=True, max_examples=100)
hypothesis.settings.load_profile(os.environ.get("MSG2_EXAMPLES", "fast"))  # `make test-slow` takes the other one


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of public annotation sets (`MSG2_DATA`, by default ../shared/data beside the checkout)."""
    root = Path(__file__).parents[1]
    folder = Path(os.environ.get("MSG2_DATA", root / "../shared/data")).resolve()
    if not folder.is_dir():
        if os.environ.get("MSG2_REQUIRE_DATA") == "1":
            pytest.fail(f"MSG2_REQUIRE_DATA=1, but the annotation sets are not in {folder}")
        pytest.skip(f"the public annotation sets are not in {folder} (set MSG2_DATA)")
    return folder


@pytest.fixture(autouse=True)
def _the_logger_as_it_was() -> Iterator[None]:
    """The command line takes over the logger of the package, for its process; in tests, for one test."""
    logger = logging.getLogger("msg2")
    before = (logger.handlers[:], logger.level, logger.propagate)
    yield
    logger.handlers, level, logger.propagate = before
    logger.setLevel(level)


@pytest.fixture(autouse=True)
def _interrupts_as_they_were() -> Iterator[None]:
    """The command line handles Ctrl-C for its process; in tests, for one test."""
    before, hook = signal.getsignal(signal.SIGINT), sys.unraisablehook
    yield
    signal.signal(signal.SIGINT, before)
    sys.unraisablehook = hook


# -- processes --------------------------------------------------------------------------------------------------


class Apart:
    """Starts programs, and knows whatever they have started in turn by a mark in its environment."""

    def __init__(self) -> None:
        self.mark = f"MSG2_APART={uuid.uuid4().hex}"

    def start(self, *command: object, **environment: str) -> subprocess.Popen[str]:
        """A program in a session of its own, as a terminal would start it."""
        key, value = self.mark.split("=")
        return subprocess.Popen(
            [*map(str, command)], env={**os.environ, **environment, key: value}, start_new_session=True, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def running(self, patience: float = 0) -> list[int]:
        """Processes that are still there; with patience, those that a busy machine has not ended in minutes either."""
        end = time.monotonic() + (max(patience, 300) if patience else 0)
        while found := [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/environ") if self._ours(path)]:
            if time.monotonic() >= end:
                break
            time.sleep(0.05)
        return found

    def _ours(self, path: Path) -> bool:
        try:
            return self.mark.encode() in path.read_bytes().split(b"\0")  # of a process that has ended, it is empty
        except OSError:
            return False


@pytest.fixture
def apart() -> Iterator[Apart]:
    """`apart.start("msg2", ...)`; whatever a failing test leaves running is killed."""
    if not Path("/proc/self/environ").exists():
        pytest.skip("there is no /proc to find processes in")
    processes = Apart()
    yield processes
    for process in processes.running():
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)

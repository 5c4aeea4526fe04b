"""Where tests find the real data and what they do without it; what every test leaves as it found it."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

# A busy machine is no failure: examples have no deadline.
hypothesis.settings.register_profile("msg2", deadline=None)
hypothesis.settings.load_profile("msg2")


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

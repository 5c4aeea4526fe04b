"""Where tests find the real data, and what they do without it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


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

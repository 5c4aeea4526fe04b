"""How much a packed file may hold: a small file must not become a large one in memory.

What is packed (gzip, Parquet, MATLAB) may unpack to `RATIO` times its size in bytes, and to a row per byte: real logs
reach 60 times, and a row or event takes several bytes. Small files may always hold `LEAST_BYTES` and `LEAST_ROWS`.
"""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from msg2.errors import InputError

RATIO = 100
LEAST_BYTES = 64_000_000
LEAST_ROWS = 2_000_000
JSON_VALUES_PER_ROW = 4
"""A value of a JSON document takes a quarter of the memory that a row of a table does."""
COLUMN_ROWS_PER_ROW = 4
"""Read in columns, a row takes a quarter of the memory; and Parquet packs rows of real labels to half a byte."""
VARIABLE = "MSG2_UNPACK"
"""Variable of the environment: packed files may hold so many times as much."""


@dataclass(frozen=True, slots=True)
class UnpackingBudget:
    """What one packed file may hold."""

    path: Path
    bytes: int
    rows: int

    @staticmethod
    def for_size(path: Path, size: int) -> UnpackingBudget:
        """The budget of a file.

        Parameters
        ----------
        path : Path
            What errors call it.
        size : int
            Bytes that it takes where it is packed.

        Returns
        -------
        UnpackingBudget
        """
        factor = _factor()
        return UnpackingBudget(path, int(factor * max(LEAST_BYTES, RATIO * size)), int(factor * max(LEAST_ROWS, size)))

    def require(self, *, unpacked: int = 0, rows: int = 0) -> None:
        """Refuse more bytes or rows than the file may hold.

        Parameters
        ----------
        unpacked, rows : int
            What has been unpacked so far, or what the file says that it holds.

        Raises
        ------
        InputError
            Where that is too much.
        """
        if unpacked > self.bytes or rows > self.rows:
            much = f"{self.bytes // 1_000_000:,} MB" if unpacked > self.bytes else f"{self.rows:,} rows or values"
            hint = f"unpack it to see what is in it; if you trust it, set {VARIABLE}=10 to allow ten times as much"
            raise InputError(
                f"unpacks to more than {much}, which is suspicious for its size", where=self.path, hint=hint
            )


class BoundedGzipFile(gzip.GzipFile):
    """A gzip file that stops where its budget ends."""

    def __init__(self, raw: IO[bytes], budget: UnpackingBudget) -> None:
        self.budget = budget
        super().__init__(fileobj=raw)

    def read(self, size: int | None = -1) -> bytes:
        """Read at most `size` bytes; what is to be held in memory as a whole is bounded as well."""
        most = self.budget.bytes + 1 - self.tell()
        content = super().read(most if size is None or size < 0 else min(size, max(most, 1)))
        self.budget.require(unpacked=self.tell())
        return content

    def read1(self, size: int = -1) -> bytes:
        """Read what is there, at most `size` bytes."""
        content = super().read1(size)
        self.budget.require(unpacked=self.tell())
        return content


def _factor() -> float:
    text = os.environ.get(VARIABLE, "1")
    try:
        factor = float(text)
    except ValueError:
        factor = 0.0
    if not 0 < factor <= 1_000_000:
        raise InputError(
            f"is {text!r}, not a number above 0", where=VARIABLE, hint="packed files may hold so many times as much"
        )
    return factor

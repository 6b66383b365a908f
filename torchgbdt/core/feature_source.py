"""The feature matrix X as the core sees it: read in place, a block at a time, never copied whole.

A host matrix is a ``HostMatrix``; a device backend brings its own ``FeatureSource``.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from torchgbdt.core.arrays import MAX_EXACT_INTEGER, AnyArray, Float64Array
from torchgbdt.core.errors import InvalidDataError

_BLOCK_BYTES = 8 << 20


class FeatureSource(Protocol):
    """Read access to a (n_rows, n_features) matrix of numbers; NaN means missing."""

    @property
    def n_rows(self) -> int:
        """Rows of X."""
        ...

    @property
    def n_features(self) -> int:
        """Columns of X."""
        ...

    def column(self, feature: int, start: int, stop: int) -> Float64Array:
        """Rows start..stop of one feature as float64 on the host."""
        ...

    def sample(self, rows: AnyArray, features: slice) -> Float64Array:
        """Chosen rows of a few features as float64 on the host, (n_chosen, n_features)."""
        ...


@dataclass(frozen=True)
class HostMatrix:
    """A 2-D numpy array of any strides, in native byte order.

    Attributes
    ----------
    values : bool, (u)int8..64, float16, float32 or float64, shape (n_rows, n_features). With
        ``is_bfloat16`` it is uint16 and holds the bits of bfloat16 numbers, which numpy lacks.
    """

    values: AnyArray
    is_bfloat16: bool = False

    @property
    def n_rows(self) -> int:
        """Rows of X."""
        return int(self.values.shape[0])

    @property
    def n_features(self) -> int:
        """Columns of X."""
        return int(self.values.shape[1])

    def column(self, feature: int, start: int, stop: int) -> Float64Array:
        """Rows start..stop of one feature as float64; a copy of that stretch only."""
        return self._to_float64(self.values[start:stop, feature])

    def sample(self, rows: AnyArray, features: slice) -> Float64Array:
        """Chosen rows of a few features as float64, (n_chosen, n_features)."""
        return self._to_float64(self.values[:, features][rows])

    def _to_float64(self, values: AnyArray) -> Float64Array:
        if self.is_bfloat16:
            values = (values.astype(np.uint32) << 16).view(np.float32)
        with np.errstate(invalid="ignore"):  # a signalling NaN is missing like any other
            return values.astype(np.float64)


def row_blocks(n_rows: int, row_bytes: int) -> Iterator[slice]:
    """Slices that cover n_rows in order, each about 8 MiB at ``row_bytes`` per row."""
    step = max(1, _BLOCK_BYTES // max(row_bytes, 1))
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def check_exact_integers(matrix: HostMatrix, name: str) -> None:
    """Raise InvalidDataError if a 64-bit integer beyond 2^53 has no float64 of its own."""
    values = matrix.values
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8:
        return
    for rows in row_blocks(matrix.n_rows, 8 * matrix.n_features):
        block = values[rows]
        beyond = (block > MAX_EXACT_INTEGER) | (block < -MAX_EXACT_INTEGER)
        if beyond.any():
            row, feature = (int(i) for i in np.argwhere(beyond)[0])
            number = int(block[row, feature])
            raise InvalidDataError(integer_message(name, number, rows.start + row, feature))


def integer_message(name: str, number: int, row: int, feature: int) -> str:
    """What is wrong with an integer beyond 2^53."""
    return (
        f"{name} has the integer {number} in row {row}, column {feature}; integers beyond 2^53 "
        f"cannot be compared exactly. Scale the column, or rank-transform it."
    )

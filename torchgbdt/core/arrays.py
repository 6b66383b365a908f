"""The dtypes of every array in the core, each with its reason, and the array type aliases.

Nothing else in the package spells these dtypes as literals in an interface.
"""

from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

BIN_DTYPE = np.uint8
"""Bins: one byte per value keeps the hot loop in cache; hence at most 256 codes per feature."""

GRADIENT_DTYPE = np.float32
"""Gradients, Hessians, labels, weights, margins, raw-prediction sums and leaf values: the widest
float an Apple GPU has, so that all devices can hold the same bits."""

FIXED_DTYPE = np.int32
"""Rounded gradients: 31 bits carry more than float32's 24, and integer sums have no order."""

SUM_DTYPE = np.int64
"""Histogram and node totals: 2^32 rows x 2^30 per row = 2^62 fits."""

THRESHOLD_DTYPE = np.float64
"""Thresholds: exact for every float64 and for integers up to 2^53."""

MAX_BINS = 256
"""Codes per feature in one byte, the missing code included."""

MAX_ROWS = 2**32
"""Row limit over all ranks, so that int64 totals cannot overflow."""

MAX_EXACT_INTEGER = 2**53
"""Largest magnitude below which every integer has its own float64."""

SMALLEST_NORMAL = np.float32(2.0**-126)
"""float32 magnitudes below this are +0 in the numerics contract: devices flush them."""

LARGEST_FLOAT32 = float(np.finfo(np.float32).max)
"""Labels, weights, margins and baselines lie within it."""

BinArray: TypeAlias = NDArray[np.uint8]
BoolArray: TypeAlias = NDArray[np.bool_]
Float32Array: TypeAlias = NDArray[np.float32]
Float64Array: TypeAlias = NDArray[np.float64]
Int32Array: TypeAlias = NDArray[np.int32]
Int64Array: TypeAlias = NDArray[np.int64]
UInt64Array: TypeAlias = NDArray[np.uint64]
RecordArray: TypeAlias = NDArray[np.void]
AnyArray: TypeAlias = NDArray[Any]


class BinMatrix(Protocol):
    """uint8 codes, (n_rows, n_features), where a backend keeps them; a numpy array is one.

    The core counts rows and picks some; all else is done by backends. ``np.asarray`` gives a host
    copy, or the array itself.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """(n_rows, n_features)."""
        ...

    def __getitem__(self, rows: Any) -> Any:
        """The same kind of matrix of some rows, a copy: int64 positions, or a slice. IN."""
        ...

    def __array__(self) -> Any:
        """The codes as a numpy array, in C order."""
        ...

"""Data frames of pandas, polars and pyarrow as the feature matrix X, read column by column.

    columns that are plain numbers in memory ---numpy views--------------\
    columns with nulls, packed bits, chunks ----a stretch at a time------ > FeatureSource

No copy of a whole column is ever made, let alone of the frame. Nulls are missing (nan). narwhals
tells the libraries apart; none of them is imported here, only what the user has loaded is seen.
"""

from collections.abc import Callable
from dataclasses import dataclass

import narwhals as nw
import numpy as np

from torchgbdt.core.arrays import MAX_EXACT_INTEGER, AnyArray, Float64Array, Int64Array
from torchgbdt.core.errors import InvalidDataError
from torchgbdt.core.feature_source import FeatureSource, HostMatrix, row_blocks
from torchgbdt.torch_api.columns import Column, Frame, check_numbers

_STRETCH_ROWS = 65_536


@dataclass(frozen=True)
class SlicedColumn:
    """A column that numpy cannot see as it lies; ``read(start, stop)`` converts a stretch.

    It gives float64, nulls as nan.
    """

    read: Callable[[int, int], Float64Array]


@dataclass(frozen=True)
class FrameMatrix:
    """A FeatureSource over columns of any dtypes; a stretch of a column at a time becomes float64.

    Attributes
    ----------
    columns : one per feature; an array is a view of the frame's own memory, (n_rows,).
    """

    columns: tuple[AnyArray | SlicedColumn, ...]
    n_rows: int

    @property
    def n_features(self) -> int:
        """Columns of X."""
        return len(self.columns)

    def column(self, feature: int, start: int, stop: int) -> Float64Array:
        """Rows start..stop of one feature as float64."""
        result = np.empty(len(range(self.n_rows)[start:stop]))
        _read(self.columns[feature], start, stop, result)
        return result

    def sample(self, rows: AnyArray, features: slice) -> Float64Array:
        """Chosen rows of a few features as float64, (n_chosen, n_features); best if ascending."""
        rows = rows.astype(np.int64, copy=False)
        if np.any(np.diff(rows) < 0):
            order = np.argsort(rows, kind="stable")
            result = np.empty((rows.size, len(self.columns[features])))
            result[order] = self.sample(rows[order], features)
            return result
        chosen = self.columns[features]
        result = np.empty((len(chosen), rows.size)).T  # what is filled at once lies together
        is_stretch = bool(np.all(np.diff(rows) == 1)) and rows.size > 0
        for values, column in zip(result.T, chosen, strict=True):
            if is_stretch:
                _read(column, int(rows[0]), int(rows[-1]) + 1, values)
            else:
                _pick(column, rows, values)
        return result


def read_frame(frame: Frame, name: str) -> FeatureSource:
    """The columns of a frame as a matrix that the core can read.

    Parameters
    ----------
    frame : as narwhals sees it. IN, never written to.
    name : how messages call it.

    Raises
    ------
    InvalidDataError : a column holds no numbers, or integers that have no float64 of their own.
    """
    columns: list[AnyArray | SlicedColumn] = []
    for column in frame.iter_columns():
        where = f"{name} has the column {column.name!r}"
        check_numbers(column, where)
        values = _view(column)
        if values is None:
            columns.append(_sliced(column))
            _check_exact_column(column, where)
        else:
            columns.append(values)
            _check_exact_array(values, where)
    return _as_one_array(columns) or FrameMatrix(tuple(columns), len(frame))


# --- reading -------------------------------------------------------------------------------------


def _read(column: AnyArray | SlicedColumn, start: int, stop: int, out: Float64Array) -> None:
    """A stretch of a column."""
    if isinstance(column, SlicedColumn):
        out[...] = column.read(start, stop)
    else:
        with np.errstate(invalid="ignore"):  # a signalling NaN is missing like any other
            out[...] = column[start:stop]


def _pick(column: AnyArray | SlicedColumn, rows: Int64Array, out: Float64Array) -> None:
    """Ascending rows of a column.

    A sliced column is read in stretches that cover them: libraries that gather rows themselves join
    all chunks of a column first, which is a copy of it.
    """
    if not isinstance(column, SlicedColumn):
        with np.errstate(invalid="ignore"):
            out[...] = column[rows]
        return
    position = 0
    while position < rows.size:
        start = int(rows[position])
        end = int(np.searchsorted(rows, start + _STRETCH_ROWS))
        stretch = column.read(start, int(rows[end - 1]) + 1)
        out[position:end] = stretch[rows[position:end] - start]
        position = end


def _view(column: Column) -> AnyArray | None:
    """The memory of a column as an array, or None where it is not laid out as one."""
    native, implementation = column.to_native(), column.implementation
    if implementation.is_pandas():
        return native.to_numpy() if isinstance(native.dtype, np.dtype) else None
    if not column.dtype.is_numeric() or column.null_count():  # bools are packed bits
        return None
    if implementation.is_polars():
        return native.to_numpy(allow_copy=False) if native.n_chunks() == 1 else None
    if implementation.is_pyarrow():
        return native.chunk(0).to_numpy() if native.num_chunks == 1 else None
    return None


def _sliced(column: Column) -> SlicedColumn:
    if column.implementation.is_pandas():  # ten times as fast as slices of a pandas.Series
        array = column.to_native().array

        def read_pandas(start: int, stop: int) -> Float64Array:
            values: Float64Array = array[start:stop].to_numpy(dtype=np.float64, na_value=np.nan)
            return values

        return SlicedColumn(read_pandas)

    def read(start: int, stop: int) -> Float64Array:
        values: Float64Array = column[start:stop].cast(nw.Float64).to_numpy()
        return values

    return SlicedColumn(read)


def _as_one_array(columns: list[AnyArray | SlicedColumn]) -> HostMatrix | None:
    """The columns as one strided matrix, where they are columns of one array already."""
    arrays = [column for column in columns if isinstance(column, np.ndarray)]
    if len(arrays) < len(columns):
        return None
    first = arrays[0]
    # One owner: holding the first column keeps the memory of all of them.
    is_shared = all(
        array.base is first.base is not None
        and (array.dtype, array.strides) == (first.dtype, first.strides)
        for array in arrays
    )
    if not (is_shared and first.dtype.isnative and first.flags.aligned):
        return None
    addresses = np.array([array.__array_interface__["data"][0] for array in arrays], np.int64)
    steps = set(np.diff(addresses).tolist()) or {first.itemsize}
    if len(steps) > 1:
        return None
    shape, strides = (first.size, len(arrays)), (*first.strides, *steps)
    return HostMatrix(np.lib.stride_tricks.as_strided(first, shape, strides, writeable=False))


# --- integers ------------------------------------------------------------------------------------


def _check_exact_array(values: AnyArray, where: str) -> None:
    """Raise InvalidDataError if a 64-bit integer beyond 2^53 has no float64 of its own."""
    if values.dtype.kind not in "iu" or values.dtype.itemsize < 8:
        return
    for rows in row_blocks(values.size, values.itemsize):
        block = values[rows]
        beyond = np.flatnonzero((block > MAX_EXACT_INTEGER) | (block < -MAX_EXACT_INTEGER))
        if beyond.size:
            _refuse_integer(block[beyond[0]], rows.start + int(beyond[0]), where)


def _check_exact_column(column: Column, where: str) -> None:
    """The same for a column that is no array."""
    if not isinstance(column.dtype, nw.Int64 | nw.UInt64) or column.null_count() == len(column):
        return
    low, high = int(column.min()), int(column.max())
    if high > MAX_EXACT_INTEGER:
        _refuse_integer(high, column.arg_max() or 0, where)
    if low < -MAX_EXACT_INTEGER:
        _refuse_integer(low, column.arg_min() or 0, where)


def _refuse_integer(value: int, row: int, where: str) -> None:
    raise InvalidDataError(
        f"{where} with the integer {value} in row {row}; integers beyond 2^53 cannot be compared "
        f"exactly. Scale the column, or rank-transform it."
    )

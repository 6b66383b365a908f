"""Columns of pandas, polars, pyarrow and other data frames: which may be read as numbers.

narwhals tells the libraries apart. None of them is imported here: only what the user has loaded is
seen.
"""

import numbers
import reprlib
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np
from narwhals.exceptions import DuplicateError

from torchgbdt.core.errors import InvalidDataError

Frame: TypeAlias = nw.DataFrame[Any]
Column: TypeAlias = nw.Series[Any]
Kinds: TypeAlias = tuple[type[nw.dtypes.DType], ...]

FLOATS: Kinds = (nw.Float16, nw.Float32, nw.Float64)
_INTEGERS: Kinds = (nw.Int8, nw.Int16, nw.Int32, nw.Int64)
_UNSIGNED: Kinds = (nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64)
_NUMBERS: Kinds = (nw.Boolean, *_INTEGERS, *_UNSIGNED, *FLOATS)

_NO_FRAMES = (np.ndarray, np.generic, list, tuple, range, int, float)
_ALL_MISSING = ("Null", "null", "null[pyarrow]")  # dtypes of columns that hold nothing else

_AS_CODES = "encode it as codes, for example with sklearn.preprocessing.OrdinalEncoder"
_ADVICE: tuple[tuple[Kinds, str], ...] = (
    ((nw.Categorical, nw.Enum), f"{_AS_CODES}; categories are not read yet"),
    ((nw.String,), _AS_CODES),
    (
        (nw.Date, nw.Datetime, nw.Time, nw.Duration),
        "convert it to a number first, for example to days since a fixed date",
    ),
    ((nw.Decimal, nw.Int128, nw.UInt128), "cast it to float64"),
    ((nw.List, nw.Array, nw.Struct), "unnest it into columns of numbers"),
    ((nw.Binary,), "decode it into numbers"),
)


def recognize(values: Any, name: str) -> Frame | Column | None:
    """A data frame or a Series as narwhals sees it; None for anything else.

    Raises
    ------
    InvalidDataError : a lazy frame, or a frame with two columns of one name.
    """
    if isinstance(values, _NO_FRAMES):
        return None
    try:
        found = nw.from_native(values, pass_through=True, allow_series=True)
    except DuplicateError as error:
        repeated = " ".join(str(error).split())
        raise InvalidDataError(
            f"{name} is a {kind_of(values)} with several columns of one name ({repeated}). Rename "
            f"them."
        ) from error
    if isinstance(found, nw.LazyFrame):
        raise InvalidDataError(
            f"{name} is a {kind_of(values)}, a lazy frame, which holds no rows yet. Call "
            f".collect() (.compute() in dask) and pass the result."
        )
    return found if isinstance(found, nw.DataFrame | nw.Series) else None


def columns_of(values: Any, name: str) -> list[Column] | None:
    """The columns of a frame, or a Series as the only one; None for anything else."""
    found = recognize(values, name)
    if isinstance(found, nw.DataFrame):
        return list(found.iter_columns())
    return None if found is None else [found]


def dtype_of(column: Column) -> Any:
    """The dtype as the column's own library calls it."""
    native = column.to_native()
    return native.dtype if hasattr(native, "dtype") else native.type


def check_numbers(column: Column, where: str) -> None:
    """Raise InvalidDataError unless a column holds real numbers or bools, or nothing at all.

    Parameters
    ----------
    where : the start of the message, "X has the column 'a'" or "y is a Series".
    """
    found = dtype_of(column)
    if isinstance(column.dtype, _NUMBERS) or str(found) in _ALL_MISSING:
        return
    if isinstance(found, np.dtype) and found.kind in "iuf" and found.itemsize <= 8:
        return  # in foreign byte order
    advice = next((text for kinds, text in _ADVICE if isinstance(column.dtype, kinds)), None)
    raise InvalidDataError(
        f"{where} of dtype {found}; real numbers or bools are expected. Please "
        f"{advice or _advice_on_other(column, str(found))}."
    )


def check_no_nulls(column: Column, name: str) -> None:
    """Raise InvalidDataError with the first row that holds no value, if there is one."""
    if column.null_count():
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise InvalidDataError(f"{name} is missing in row {row}. Drop such rows, or impute them.")


def kind_of(values: Any) -> str:
    """The type of what was passed, with its library."""
    kind = type(values)
    return f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"


def _advice_on_other(column: Column, found: str) -> str:
    if found.startswith("Sparse"):
        return "make it dense with .sparse.to_dense()"
    if "complex" in found:
        return "pass real and imaginary parts as separate columns"
    if isinstance(column.dtype, nw.Object):
        values = column.to_native().to_numpy()
        others = [v for v in values if not isinstance(v, numbers.Real | np.bool_ | None)]
        if not others:
            return "convert it with .astype('float64')"
        return f"{_AS_CODES}: it holds {reprlib.repr(others[0])}, a {type(others[0]).__name__}"
    return "convert it to float64 first"

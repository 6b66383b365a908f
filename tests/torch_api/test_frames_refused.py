"""Frames that cannot be trained or predicted on: the message names the column and what to do."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from torch_api.small_data import read

from torchgbdt.core.errors import InvalidDataError

ENCODER = "sklearn.preprocessing.OrdinalEncoder"
DICTIONARY = pa.dictionary(pa.int8(), pa.string())
TEXTS = ["x", "y"]


def of_pandas(values: Any, **options: Any) -> pd.DataFrame:
    return pd.DataFrame({"a": [1, 2], "b": pd.Series(values, **options)})


def of_polars(values: Any, dtype: Any = None) -> pl.DataFrame:
    return pl.DataFrame({"a": [1, 2], "b": pl.Series(values, dtype=dtype)})


def of_arrow(values: Any, dtype: Any = None) -> pa.Table:
    return pa.table({"a": [1, 2], "b": pa.array(values, dtype)})


# What -> (frame, dtype in the message, advice).
COLUMNS: dict[str, tuple[Callable[[], Any], str, str]] = {
    "pandas text": (lambda: of_pandas(TEXTS), "str", ENCODER),
    "pandas string": (lambda: of_pandas(TEXTS, dtype="string"), "string", ENCODER),
    "pandas category": (lambda: of_pandas(TEXTS, dtype="category"), "category", ENCODER),
    "pandas codes": (lambda: of_pandas([3, 4], dtype="category"), "category", ENCODER),
    "pandas dictionary": (
        lambda: of_pandas(TEXTS, dtype=pd.ArrowDtype(DICTIONARY)),
        "dictionary<.*>",
        ENCODER,
    ),
    "pandas objects": (
        lambda: of_pandas([1, "x"], dtype=object),
        "object",
        f"{ENCODER}: it holds 'x', a str",
    ),
    "pandas numbers as objects": (
        lambda: of_pandas([1, None], dtype=object),
        "object",
        r"\.astype\('float64'\)",
    ),
    "pandas numpy numbers as objects": (
        lambda: of_pandas([np.float32(1), np.True_], dtype=object),
        "object",
        r"\.astype\('float64'\)",
    ),
    "pandas date": (
        lambda: of_pandas(pd.date_range("2013", periods=2)),
        "datetime64",
        "days since",
    ),
    "pandas time zone": (
        lambda: of_pandas(pd.date_range("2013", periods=2, tz="UTC")),
        "datetime64.*UTC",
        "days since",
    ),
    "pandas duration": (lambda: of_pandas(pd.to_timedelta([1, 2])), "timedelta64", "number first"),
    "pandas period": (lambda: of_pandas(pd.period_range("2013", periods=2)), "period", "float64"),
    "pandas interval": (lambda: of_pandas(pd.interval_range(0, 2)), "interval", "float64"),
    "pandas complex": (lambda: of_pandas([1j, 2]), "complex128", "real and imaginary parts"),
    "pandas sparse": (
        lambda: of_pandas(pd.arrays.SparseArray([0.0, 1.0])),
        "Sparse",
        r"\.sparse\.to_dense\(\)",
    ),
    "pandas sparse nan": (
        lambda: of_pandas(pd.arrays.SparseArray([np.nan, np.nan])),
        "Sparse",
        r"\.sparse\.to_dense\(\)",
    ),
    "pandas long double": (lambda: of_pandas(np.ones(2, np.longdouble)), "float", "to float64"),
    "pandas decimal": (
        lambda: of_pandas([Decimal(1), None], dtype=pd.ArrowDtype(pa.decimal128(5, 2))),
        "decimal128",
        "cast it to float64",
    ),
    "polars text": (lambda: of_polars(TEXTS), "String", ENCODER),
    "polars categorical": (lambda: of_polars(TEXTS, pl.Categorical), "Categorical", ENCODER),
    "polars enum": (lambda: of_polars(TEXTS, pl.Enum(TEXTS)), "Enum", ENCODER),
    "polars date": (lambda: of_polars([1, 2], pl.Int32).cast({"b": pl.Date}), "Date", "days since"),
    "polars duration": (lambda: of_polars([1, 2], pl.Duration), "Duration", "number first"),
    "polars decimal": (lambda: of_polars([Decimal(1)] * 2), "Decimal", "cast it to float64"),
    "polars Int128": (lambda: of_polars([1, 2], pl.Int128), "Int128", "cast it to float64"),
    "polars list": (lambda: of_polars([[1], [2]]), "List", "unnest it"),
    "polars struct": (lambda: of_polars([{"c": 1}] * 2), "Struct", "unnest it"),
    "polars array": (lambda: of_polars([[1]] * 2, pl.Array(pl.Int8, 1)), "Array", "unnest it"),
    "polars bytes": (lambda: of_polars([b"x", b"y"]), "Binary", "decode it"),
    "polars objects": (lambda: of_polars([object(), 1], pl.Object), "Object", "it holds <object"),
    "arrow text": (lambda: of_arrow(TEXTS), "string", ENCODER),
    "arrow large text": (lambda: of_arrow(TEXTS, pa.large_string()), "large_string", ENCODER),
    "arrow dictionary": (lambda: of_arrow(TEXTS, DICTIONARY), "dictionary<.*>", ENCODER),
    "arrow date": (lambda: of_arrow([1, 2], pa.date32()), "date32", "days since"),
    "arrow time": (lambda: of_arrow([1, 2], pa.time32("s")), "time32", "number first"),
    "arrow decimal": (lambda: of_arrow([1, 2], pa.decimal128(5)), "decimal128", "to float64"),
    "arrow list": (lambda: of_arrow([[1], [2]]), "list<.*>", "unnest it"),
    "arrow bytes": (lambda: of_arrow([b"x", b"y"]), "binary", "decode it"),
}


@pytest.mark.parametrize("what", COLUMNS)
def test_column_that_is_no_number_is_refused(what: str) -> None:
    make, dtype, advice = COLUMNS[what]
    with pytest.raises(InvalidDataError) as caught:
        read(make())
    assert caught.match(f"^X has the column 'b' of dtype {dtype}.*; real numbers or bools are")
    assert caught.match(f"Please .*{advice}")


FRAMES: dict[str, tuple[Callable[[], Any], str]] = {
    "pandas, one name twice": (
        lambda: pd.DataFrame(np.ones((2, 2)), columns=["c", "c"]),
        r"several columns of one name \(.*'c' 2 times\)\. Rename",
    ),
    "pandas, one number twice": (
        lambda: pd.DataFrame(np.ones((2, 2)), columns=[0, 0]),
        r"several columns of one name \(.*'0' 2 times\)",
    ),
    "arrow, one name twice": (
        lambda: pa.Table.from_arrays([pa.array([1])] * 2, names=["c", "c"]),
        r"several columns of one name \(.*'c' 2 times\)",
    ),
    "pandas, texts and numbers as names": (
        lambda: pd.DataFrame(np.ones((2, 2)), columns=["c", 1]),
        r"columns named by text and others: 'c' is a str, 1 is of type int\. Make all names texts",
    ),
    "pandas, no columns": (lambda: pd.DataFrame(index=range(3)), r"shape \(3, 0\), so no columns"),
    "polars, no columns": (pl.DataFrame, r"shape \(0, 0\), so no columns"),
    "arrow, no columns": (lambda: pa.table({}), r"shape \(0, 0\), so no columns"),
    "pandas, no rows": (lambda: pd.DataFrame({"a": [1.0]})[:0], r"shape \(0, 1\), so no rows"),
    "polars, no rows": (lambda: pl.DataFrame({"a": [1.0]})[:0], r"shape \(0, 1\), so no rows"),
    "lazy": (lambda: pl.LazyFrame({"a": [1]}), r"polars\.LazyFrame, a lazy frame.*\.collect\(\)"),
    "pandas Series": (
        lambda: pd.Series([1, 2]),
        r"X is a pandas\.Series, one column of 2 rows; .*Pass a frame, for example X\.to_frame\(\)",
    ),
    "polars Series": (lambda: pl.Series([1, 2]), r"X is a polars\.Series, one column of 2 rows"),
    "arrow column": (lambda: pa.chunked_array([[1, 2]]), r"X is a pyarrow\.ChunkedArray, one"),
    "arrow array": (lambda: pa.array([1, 2]), r"X has shape \(2,\)|pyarrow\.table\(X\)"),
    "pandas index": (lambda: pd.Index([1, 2]), r"X has shape \(2,\)"),
    "record batch": (
        lambda: pa.RecordBatch.from_pydict({"a": [1]}),
        r"X is a pyarrow\.RecordBatch, .*pass pyarrow\.table\(X\)",
    ),
}


@pytest.mark.parametrize("what", FRAMES)
def test_frame_is_refused(what: str) -> None:
    make, message = FRAMES[what]
    with pytest.raises(InvalidDataError, match=message):
        read(make())


BIG = {
    "pandas": lambda value, dtype: pd.DataFrame({"id": np.array([0, value, 1], dtype)}),
    "pandas array": lambda value, dtype: pd.DataFrame(
        np.array([[0], [value]], dtype), columns=["id"]
    ),
    "pandas nullable": lambda value, dtype: pd.DataFrame(
        {"id": pd.array([None, value, 1], dtype=dtype.replace("i", "I").replace("uI", "UI"))}
    ),
    "pandas arrow": lambda value, dtype: pd.DataFrame(
        {"id": pd.array([None, value, 1], dtype=f"{dtype}[pyarrow]")}
    ),
    "polars": lambda value, dtype: pl.DataFrame({"id": pl.Series(np.array([0, value], dtype))}),
    "polars nulls": lambda value, dtype: pl.DataFrame(
        {"id": pl.Series([None, value, 1], dtype=pl.UInt64 if dtype == "uint64" else pl.Int64)}
    ),
    "arrow": lambda value, dtype: pa.table({"id": np.array([0, value, 1], dtype)}),
    "arrow nulls": lambda value, dtype: pa.table({"id": pa.array([None, value, 1], dtype)}),
    "arrow chunks": lambda value, dtype: pa.table(
        {"id": pa.chunked_array([pa.array([0], dtype), pa.array([value, 1], dtype)])}
    ),
}


@pytest.mark.parametrize("form", BIG)
@pytest.mark.parametrize(
    ("value", "dtype"),
    [(2**53 + 1, "int64"), (-(2**53) - 1, "int64"), (2**53 + 1, "uint64"), (2**64 - 1, "uint64")],
)
def test_integers_beyond_2_to_the_53_are_refused(form: str, value: int, dtype: str) -> None:
    with pytest.raises(InvalidDataError) as caught:
        read(BIG[form](value, dtype))
    assert caught.match(f"X has the column 'id' with the integer {value} in row 1; integers beyond")


def test_column_without_a_text_as_name_is_named() -> None:
    with pytest.raises(InvalidDataError, match="X has the column 1 of dtype str"):
        read(pd.DataFrame([[1, "x"]]))

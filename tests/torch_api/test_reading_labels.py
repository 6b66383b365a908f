"""y becomes one numpy array of numbers or texts, whatever it came in."""

import enum
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.exact import assert_identical

from torchgbdt.core.errors import InvalidDataError
from torchgbdt.torch_api.labels import read_labels
from torchgbdt.torch_api.tensors import TENSOR_DTYPES

DICTIONARY = pa.dictionary(pa.int8(), pa.string())


def labels(y: Any) -> np.ndarray:
    return read_labels(y, "y", {})


# --- numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [*"?bhilBHILefd"])
def test_array_of_numbers_comes_as_it_is(dtype: str) -> None:
    y = np.array([0, 1, 1], dtype)
    assert labels(y) is y


@pytest.mark.parametrize("dtype", sorted(TENSOR_DTYPES, key=str), ids=str)
def test_tensor_of_numbers_keeps_its_dtype(dtype: torch.dtype) -> None:
    y = torch.tensor([0, 1, 1]).to(dtype)
    expected = y.float() if dtype == torch.bfloat16 else y
    assert_identical(labels(y), expected.numpy())


def test_long_doubles_become_float64() -> None:
    assert_identical(labels(np.array([1, 2], np.longdouble)), np.array([1.0, 2.0]))


COLUMNS: dict[str, Callable[[np.ndarray], Any]] = {
    "pandas": pd.Series,
    "pandas index": lambda y: pd.Series(y, index=[2, 2, 0]),
    "pandas pd.Index": pd.Index,
    "pandas nullable": lambda y: pd.Series(y).convert_dtypes(dtype_backend="numpy_nullable"),
    "pandas arrow": lambda y: pd.Series(pd.arrays.ArrowExtensionArray(pa.array(y))),
    "pandas objects": lambda y: pd.Series(y.tolist(), dtype=object),
    "pandas category": lambda y: pd.Series(y, dtype="category"),
    "polars": lambda y: pl.Series(y.tolist()),
    "arrow": lambda y: pa.chunked_array([pa.array(y)]),
    "arrow chunks": lambda y: pa.chunked_array([pa.array(y[:1]), pa.array(y[1:])]),
    "arrow array": pa.array,
    "arrow dictionary": lambda y: pa.chunked_array([pa.array(y).dictionary_encode()]),
    "objects": lambda y: y.astype(object),
    "list": lambda y: y.tolist(),
    "pandas frame": lambda y: pd.DataFrame({"y": y}),
    "polars frame": lambda y: pl.DataFrame({"y": y.tolist()}),
    "arrow frame": lambda y: pa.table({"y": y}),
}


@pytest.mark.parametrize("form", COLUMNS)
@pytest.mark.parametrize(
    "y",
    [np.array([True, False, True]), np.array([3, -1, 2]), np.array([0.5, 2.0, -1.0])],
    ids=["bool", "int64", "float64"],
)
def test_column_of_numbers_keeps_its_kind(form: str, y: np.ndarray) -> None:
    assert_identical(labels(COLUMNS[form](y)), y)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "uint64", "float32", "float64"])
def test_column_of_numbers_keeps_its_dtype(dtype: str) -> None:
    y = np.array([3, 0, 2], dtype)
    nullable = dtype.capitalize().replace("Ui", "UI")
    for column in (
        pd.Series(y),
        pd.Series(y, dtype=nullable),
        pd.Series(pd.arrays.ArrowExtensionArray(pa.array(y))),
        pl.Series(y),
        pa.chunked_array([y]),
    ):
        assert_identical(labels(column), y)


def test_missing_floats_are_nan_for_the_core_to_judge() -> None:
    y = np.array([1.5, np.nan], np.float32)
    for column in (
        y,
        pd.Series(y),
        pd.Series([1.5, None], dtype="Float32"),
        pd.Series([1.5, None], dtype="float[pyarrow]"),
        pl.Series([1.5, None], dtype=pl.Float32),
        pa.chunked_array([pa.array([1.5, None], pa.float32())]),
        torch.from_numpy(y),
    ):
        assert_identical(labels(column), y)


def test_missing_floats_among_objects_are_nan() -> None:
    for column in (np.array([1.5, np.nan], object), pd.Series([1.5, np.nan], dtype=object)):
        assert_identical(labels(column), np.array([1.5, np.nan]))


def test_integers_beyond_float64_stay_exact() -> None:
    for y in (np.array([2**63 + 1, 5], object), pl.Series([2**63 + 1, 5]), [2**53 + 1, 5]):
        assert labels(y).tolist() == [int(y[0]), 5]


def test_single_label_becomes_a_vector_of_one() -> None:
    assert labels(3).tolist() == [3]


def test_column_of_an_array_keeps_its_two_axes_for_the_core_to_judge() -> None:
    assert labels(np.ones((3, 1))).shape == (3, 1)
    assert labels([["a"], ["b"]]).shape == (2, 1)


def test_no_labels_are_passed_on() -> None:
    for y in ([], pd.Series([], dtype=object), pl.Series([], dtype=pl.String)):
        assert labels(y).size == 0


# --- texts ---------------------------------------------------------------------------------------

TEXTS = ["b", "", "größe"]
TEXT_COLUMNS: dict[str, Callable[[list[str]], Any]] = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "objects": lambda y: np.array(y, object),
    "variable width": lambda y: np.array(y, np.dtypes.StringDType()),
    "column of objects": lambda y: np.array(y, object)[:, None][:, 0],
    "pandas": pd.Series,
    "pandas objects": lambda y: pd.Series(y, dtype=object),
    "pandas string": lambda y: pd.Series(y, dtype="string"),
    "pandas arrow": lambda y: pd.Series(y, dtype=pd.ArrowDtype(pa.string())),
    "pandas dictionary": lambda y: pd.Series(y, dtype=pd.ArrowDtype(DICTIONARY)),
    "pandas category": lambda y: pd.Series(y, dtype="category"),
    "pandas categorical": pd.Categorical,
    "pandas index": pd.Index,
    "pandas frame": lambda y: pd.DataFrame({"y": y}),
    "polars": pl.Series,
    "polars categorical": lambda y: pl.Series(y, dtype=pl.Categorical),
    "polars enum": lambda y: pl.Series(y, dtype=pl.Enum(sorted(set(y)))),
    "polars objects": lambda y: pl.Series(y, dtype=pl.Object),
    "arrow": lambda y: pa.chunked_array([y[:1], y[1:]], pa.string()),
    "arrow large": lambda y: pa.chunked_array([pa.array(y, pa.large_string())]),
    "arrow dictionary": lambda y: pa.chunked_array([pa.array(y, DICTIONARY)]),
    "arrow array": lambda y: pa.array(y, pa.string()),
}


@pytest.mark.parametrize("form", TEXT_COLUMNS)
def test_texts_become_numpy_texts(form: str) -> None:
    found = labels(TEXT_COLUMNS[form](TEXTS))
    assert (type(found), found.dtype) == (np.ndarray, np.dtype("U5"))
    assert found.tolist() == TEXTS


ANY_TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5)


@given(st.lists(ANY_TEXT, min_size=1, max_size=8), st.sampled_from(sorted(TEXT_COLUMNS)))
def test_any_texts_are_kept(texts: list[str], form: str) -> None:
    assert labels(TEXT_COLUMNS[form](texts)).tolist() == texts


# --- refused -------------------------------------------------------------------------------------

MISSING: dict[str, Callable[[], Any]] = {
    "list": lambda: ["a", "b", None],
    "numbers in a list": lambda: [1, 2.5, None],
    "objects": lambda: np.array([1, 2, None], object),
    "texts and nan": lambda: np.array(["a", "b", np.nan], object),
    "integers and nan": lambda: np.array([1, 2, np.nan], object),
    "variable width": lambda: np.array(["a", "b", None], np.dtypes.StringDType(na_object=None)),
    "pandas": lambda: pd.Series(["a", "b", None]),
    "pandas string": lambda: pd.Series(["a", "b", None], dtype="string"),
    "pandas objects": lambda: pd.Series([1, 2, pd.NA], dtype=object),
    "pandas NaT": lambda: pd.Series([1, 2, pd.NaT], dtype=object),
    "pandas Int64": lambda: pd.Series([1, 2, None], dtype="Int64"),
    "pandas boolean": lambda: pd.Series([True, False, None], dtype="boolean"),
    "pandas arrow": lambda: pd.Series([1, 2, None], dtype="int64[pyarrow]"),
    "pandas category": lambda: pd.Series(["a", "b", None], dtype="category"),
    "pandas integer category": lambda: pd.Series([3, 4, None], dtype="category"),
    "polars": lambda: pl.Series(["a", "b", None]),
    "polars integers": lambda: pl.Series([1, 2, None]),
    "polars bools": lambda: pl.Series([True, True, None]),
    "polars categorical": lambda: pl.Series(["a", "b", None], dtype=pl.Categorical),
    "arrow": lambda: pa.chunked_array([["a"], ["b", None]]),
    "arrow integers": lambda: pa.chunked_array([[1], [2, None]]),
    "arrow dictionary": lambda: pa.chunked_array([pa.array(["a", "b", None], DICTIONARY)]),
    "arrow array": lambda: pa.array(["a", "b", None]),
}


@pytest.mark.parametrize("form", MISSING)
def test_missing_label_is_refused_with_its_row(form: str) -> None:
    with pytest.raises(InvalidDataError, match=r"^y is missing in row 2\. Drop such rows"):
        labels(MISSING[form]())


def test_column_of_nothing_is_missing() -> None:
    for y in (pl.Series([None, None]), pa.chunked_array([pa.nulls(2)]), [None, None]):
        with pytest.raises(InvalidDataError, match="y is missing in row 0"):
            labels(y)


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "text and number": (
        lambda: [1, 1, "a"],
        r"y holds values of type int and of type str: 1 in row 0 and 'a' in row 2; labels are all",
    ),
    "bool and text": (lambda: (True, "a"), "of type bool and of type str: True in row 0"),
    "objects": (lambda: np.array(["a", 2.5], object), "of type str and of type float"),
    "pandas": (lambda: pd.Series(["a", 1]), "of type str and of type int"),
    "numbers": (lambda: pd.Series([1, 2.5], dtype=object), "of type int and of type float"),
    "bytes": (lambda: [b"a", b"b"], "y holds values of type bytes.*Decode it"),
    "bytes in pandas": (lambda: pd.Series([b"a"]), "y holds values of type bytes, such as b'a'"),
    "bytes in polars": (lambda: pl.Series([b"a"]), "y is a column of dtype Binary.*decode it"),
    "decimals": (lambda: [Decimal(1)], r"of type Decimal, such as Decimal\('1'\); .*Convert it"),
    "decimals in arrow": (lambda: pa.chunked_array([[Decimal(1)]]), "y is a column of dtype decim"),
    "dates": (lambda: pd.Series(pd.date_range("2013", periods=2)), "y has dtype datetime64.*conv"),
    "dates in polars": (lambda: pl.Series([1]).cast(pl.Date), "y is a column of dtype Date"),
    "complex": (lambda: [1j], "y holds values of type complex"),
    "huge integers": (lambda: [2**70, 1], "y has integers beyond 64 bits. Convert it to texts"),
    "NUL": (lambda: ["a\0", "a"], "ends in a NUL character"),
    "two columns": (lambda: pd.DataFrame({"a": [1], "b": [2]}), "frame of 2 columns; one is exp"),
    "no columns": (pl.DataFrame, "frame of 0 columns; one is expected"),
    "lazy": (lambda: pl.LazyFrame({"y": [1]}), r"y is a polars.LazyFrame.*\.collect\(\)"),
    "sparse": (lambda: pd.Series([0, 1], dtype="Sparse[int]"), r"\.sparse\.to_dense\(\)"),
    "masked": (lambda: np.ma.array([1.0, 2.0]), "y is a masked array"),
    "set": (lambda: {1, 2}, "y is a builtins.set"),
    "text": (lambda: "abc", "y is a builtins.str"),
    "sparse tensor": (lambda: torch.ones(2).to_sparse(), "y is a tensor of layout"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    make, message = REFUSED[what]
    with pytest.raises(InvalidDataError, match=message):
        labels(make())


class Switch(str, enum.Enum):  # noqa: UP042 - StrEnum has another __str__
    ON = "switched-on"
    OFF = "switched-off"


@pytest.mark.parametrize("form", [list, lambda y: np.array(y, np.object_)], ids=["list", "array"])
def test_members_of_an_enum_of_texts_are_their_values(form: Any) -> None:
    labels = read_labels(form([Switch.ON, Switch.OFF, Switch.ON]), "y", {})
    assert labels.tolist() == ["switched-on", "switched-off", "switched-on"]


def test_a_list_of_integers_and_floats_is_one_of_floats_where_that_is_exact() -> None:
    assert read_labels([1, 2.5, -(2**53)], "y", {}).tolist() == [1.0, 2.5, -(2.0**53)]
    for y in ([2**53 + 1, 0.0], [2**63 + 1, 2**63 + 2, -1]):
        with pytest.raises(InvalidDataError, match="y h"):
            read_labels(y, "y", {})


@pytest.mark.parametrize(
    "form",
    [list, pd.Series, pl.Series, pa.array, lambda y: np.array(y, np.object_)],
    ids=["list", "pandas", "polars", "arrow", "array"],
)
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a\0", "y has a text that ends in a NUL character"),
        ("z" * 1001, "y has a text of 1001 characters; class labels have at most 1000"),
    ],
)
def test_texts_that_numpy_would_spoil_are_refused(form: Any, text: str, message: str) -> None:
    with pytest.raises(InvalidDataError, match=message):
        read_labels(form(["a", text]), "y", {})

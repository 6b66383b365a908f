"""Weights, margins and row numbers become numpy arrays of numbers."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from support.exact import assert_identical

from torchgbdt.core.errors import InvalidDataError
from torchgbdt.torch_api.tensors import TENSOR_DTYPES, read_rows, read_vector


@pytest.mark.parametrize("dtype", sorted(TENSOR_DTYPES, key=str), ids=str)
def test_tensor_of_every_dtype_keeps_its_numbers(dtype: torch.dtype) -> None:
    y = torch.tensor([0, 1, 1, 0, 1]).to(dtype)
    assert read_vector(y, "y", {}).astype(float).tolist() == [0, 1, 1, 0, 1]


def test_bfloat16_is_widened_exactly() -> None:
    y = torch.tensor([0.1, -3.0, 1e-40, float("inf")]).bfloat16()
    assert_identical(read_vector(y, "y", {}), y.float().numpy())


@pytest.mark.parametrize(
    "y",
    [
        [1, 2],
        (1.0, 2.0),
        np.array([1, 2], ">i4"),
        np.array([1.0, 9.0, 2.0])[::2],
        np.array([1, 2], np.longdouble),
        torch.tensor([1.0, 2.0], requires_grad=True),
        torch.tensor([1.0 + 1j, 2.0]).real,
        pd.Series([1, 2], index=[1, 0]),
        pd.Series([1, 2], dtype="Int64"),
        pd.Series([1, 2], dtype="float[pyarrow]"),
        pd.Series([1, 2], dtype=np.longdouble),
        pd.Index([1, 2]),
        pd.DataFrame({"w": [1, 2]}),
        pl.Series([1, 2]),
        pl.DataFrame({"w": [1, 2]}),
        pa.chunked_array([[1], [2]]),
        pa.array([1, 2]),
        pa.table({"w": [1, 2]}),
    ],
    ids=lambda values: f"{type(values).__module__}.{type(values).__name__}",
)
def test_accepted(y: Any) -> None:
    assert read_vector(y, "y", {}).tolist() == [1, 2]


def test_negative_view_keeps_its_sign() -> None:
    y = torch.tensor([1.0 + 2.0j, 3.0 - 4.0j]).conj().imag
    assert read_vector(y, "y", {}).tolist() == [-2, 4]


def test_column_keeps_its_two_axes_for_the_core_to_judge() -> None:
    assert read_vector(torch.ones(3, 1), "y", {}).shape == (3, 1)


@pytest.mark.parametrize("y", [3.5, np.float32(3.5), torch.tensor(3.5), np.array(3.5)])
def test_single_number_becomes_a_vector_of_one(y: Any) -> None:
    assert read_vector(y, "y", {}).tolist() == [3.5]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a", "b"], "y has dtype <U1.*encode text"),
        ([1, None], "y has dtype object"),
        (np.ma.array([1.0, 2.0]), "y is a masked array"),
        (torch.ones(2).to_sparse(), "y is a tensor of layout torch.sparse_coo"),
        (torch.ones(2, dtype=torch.cfloat), "y has dtype torch.complex64"),
        (np.array(["2013-01-01"], "M8[D]"), "y has dtype datetime64"),
        (pd.Series(["a"]), "y is a column of dtype str; real numbers or bools are.*OrdinalEncoder"),
        (pd.Series([1, "a"]), "y has dtype object"),
        (pl.Series(["a"]), "y is a column of dtype String"),
        (pd.Series([1, 2, None], dtype="Int64"), "y is missing in row 2"),
        (pl.Series([True, None]), "y is missing in row 1"),
        (pa.chunked_array([[1], [None]]), "y is missing in row 1"),
        (pl.LazyFrame({"w": [1]}), "y is a polars.LazyFrame, a lazy frame"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "several columns of one name"),
        ({1, 2}, "y is a builtins.set"),
        (None, "y is a builtins.NoneType"),
    ],
)
def test_refused(y: Any, message: str) -> None:
    with pytest.raises(InvalidDataError, match=message):
        read_vector(y, "y", {})


def test_missing_floats_are_nan_for_the_core_to_judge() -> None:
    expected = np.array([0.5, np.nan], np.float32)
    for column in (
        pd.Series([0.5, None], dtype="Float32"),
        pl.Series([0.5, None], dtype=pl.Float32),
        pa.chunked_array([pa.array([0.5, None], pa.float32())]),
    ):
        assert_identical(read_vector(column, "y", {}), expected)


def test_frame_of_several_columns_is_a_matrix() -> None:
    numbers = np.array([[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]])
    for frame in (
        pd.DataFrame(numbers, columns=["a", "b"]),
        pl.DataFrame(numbers, schema=["a", "b"]),
    ):
        assert_identical(read_vector(frame, "base_margin", {}), numbers)


def test_frame_without_columns_is_a_matrix_without_columns() -> None:
    assert read_vector(pl.DataFrame(), "base_margin", {}).shape == (0, 0)


@pytest.mark.parametrize("rows", [[], (), range(0), torch.tensor([])])
def test_no_rows_are_integers(rows: Any) -> None:
    assert read_rows(rows, "rows", 9).dtype == np.int64


def test_range_of_rows_is_accepted() -> None:
    assert read_rows(range(4, 0, -2), "rows", 5).tolist() == [4, 2]


@pytest.mark.parametrize("rows", [pd.Series([3, 1]), pd.Index([3, 1]), pl.Series([3, 1])])
def test_column_of_rows_is_accepted(rows: Any) -> None:
    assert read_rows(rows, "rows", 5).tolist() == [3, 1]


def test_nullable_mask_of_rows_is_accepted() -> None:
    mask = read_rows(pd.Series([True, False], dtype="boolean"), "rows", 2)
    assert_identical(mask, np.array([True, False]))

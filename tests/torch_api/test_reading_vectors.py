"""y, weights, margins and row numbers become numpy arrays of numbers."""

from typing import Any

import numpy as np
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
    ],
    ids=["list", "tuple", "foreign", "strided", "long double", "requires_grad", "real view"],
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
        ({1, 2}, "y is a builtins.set"),
        (None, "y is a builtins.NoneType"),
    ],
)
def test_refused(y: Any, message: str) -> None:
    with pytest.raises(InvalidDataError, match=message):
        read_vector(y, "y", {})


@pytest.mark.parametrize("rows", [[], (), range(0), torch.tensor([])])
def test_no_rows_are_integers(rows: Any) -> None:
    assert read_rows(rows, "rows", 9).dtype == np.int64


def test_range_of_rows_is_accepted() -> None:
    assert read_rows(range(4, 0, -2), "rows", 5).tolist() == [4, 2]

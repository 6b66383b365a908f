"""What may be passed as X: every dtype, layout and kind of tensor arrives as the same numbers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from support.exact import assert_identical
from torch_api.small_data import as_float64, read

from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.torch_api.features import BlockwiseMatrix, read_features
from torchgbdt.torch_api.tensors import TENSOR_DTYPES

NUMPY_DTYPES = [*"?bhilqBHILQefd"]
TENSORS = sorted(TENSOR_DTYPES, key=str)


def table(n_rows: int = 7, n_features: int = 5) -> torch.Tensor:
    return torch.arange(n_rows * n_features).reshape(n_rows, n_features) % 11


@pytest.mark.parametrize("dtype", TENSORS, ids=str)
def test_tensor_of_every_dtype_is_read_exactly(dtype: torch.dtype) -> None:
    X = table().to(dtype)
    assert_identical(as_float64(read(X).matrix), X.to(torch.float64).numpy())


@pytest.mark.parametrize("dtype", NUMPY_DTYPES)
def test_array_of_every_dtype_is_read_exactly(dtype: str) -> None:
    X = table().numpy().astype(dtype)
    assert_identical(as_float64(read(X).matrix), X.astype(np.float64))


@pytest.mark.parametrize("dtype", TENSORS, ids=str)
def test_tensor_is_read_where_it_lies(dtype: torch.dtype) -> None:
    X = table().to(dtype)
    matrix = read(X).matrix
    assert isinstance(matrix, HostMatrix)
    assert matrix.values.__array_interface__["data"][0] == X.data_ptr()


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "C order": lambda X: X,
    "transposed": lambda X: X.T,
    "every second row": lambda X: X[::2],
    "every second column": lambda X: X[:, ::2],
    "with an offset": lambda X: X[3:, 2:],
    "one column": lambda X: X[:, 1:2],
    "one row": lambda X: X[2:3],
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int16], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_view_of_a_tensor_is_read_where_it_lies(layout: str, dtype: torch.dtype) -> None:
    X = LAYOUTS[layout](table().to(dtype))
    matrix = read(X).matrix
    assert isinstance(matrix, HostMatrix)
    assert matrix.values.__array_interface__["data"][0] == X.data_ptr()
    assert_identical(as_float64(matrix), X.to(torch.float64).numpy())


NUMPY_LAYOUTS: dict[str, Callable[[Any], Any]] = {
    **LAYOUTS,
    "F order": np.asfortranarray,
    "rows reversed": lambda X: X[::-1],
    "columns reversed": lambda X: X[:, ::-1],
    "broadcast": lambda X: np.broadcast_to(X[:1], (6, X.shape[1])),
    "np.matrix": lambda X: X.view(np.matrix),
}


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("layout", NUMPY_LAYOUTS)
def test_view_of_an_array_is_read_where_it_lies(layout: str) -> None:
    X = NUMPY_LAYOUTS[layout](table().numpy().astype(np.float32))
    matrix = read(X).matrix
    assert isinstance(matrix, HostMatrix)
    assert type(matrix.values) is np.ndarray
    assert np.shares_memory(matrix.values, X)
    assert_identical(as_float64(matrix), np.asarray(X, np.float64))


def test_read_only_array_is_accepted() -> None:
    X = table().numpy()
    X.flags.writeable = False
    assert read(X).matrix.n_rows == 7


def test_memory_mapped_array_is_read_from_its_file(tmp_path: Path) -> None:
    X = np.memmap(tmp_path / "X", np.float32, "w+", shape=(3, 2))
    X[:] = [[1, 2], [3, 4], [5, 6]]
    matrix = read(X).matrix
    assert isinstance(matrix, HostMatrix)
    assert np.shares_memory(matrix.values, X)


def test_list_of_lists_is_accepted() -> None:
    assert_identical(as_float64(read([[1, 2.5], [3, 4]]).matrix), np.array([[1, 2.5], [3, 4]]))


def test_object_with_the_array_protocol_is_accepted() -> None:
    class Table:
        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return np.ones((3, 2), np.float32)

    assert read(Table()).matrix.n_rows == 3


def test_the_array_protocol_goes_before_other_ways_to_numpy() -> None:
    class LabelledArray:  # as xarray has them
        def to_numpy(self) -> np.ndarray:
            raise AssertionError

        def __array__(self, dtype: Any = None, copy: Any = None) -> np.ndarray:
            return np.ones((3, 2), np.float32)

    assert read(LabelledArray()).matrix.n_rows == 3


@pytest.mark.parametrize("kind", ["requires_grad", "parameter", "not a leaf", "inference"])
def test_tensor_that_autograd_knows_is_read_where_it_lies(kind: str) -> None:
    X = torch.ones(3, 2)
    if kind == "requires_grad":
        X.requires_grad_()
    elif kind == "parameter":
        X = torch.nn.Parameter(X)
    elif kind == "not a leaf":
        X = X.requires_grad_() * 2
    else:
        with torch.inference_mode():
            X = X * 2
    matrix = read(X).matrix
    assert isinstance(matrix, HostMatrix)
    assert matrix.values.__array_interface__["data"][0] == X.data_ptr()


@pytest.mark.parametrize("view", ["real", "imag"])
@pytest.mark.parametrize("conjugated", [False, True])
def test_real_view_of_a_complex_tensor_is_read_without_a_copy(view: str, conjugated: bool) -> None:
    numbers = torch.complex(table().float(), table().float() + 0.5)
    X = getattr(numbers.conj() if conjugated else numbers, view)
    matrix = read(X).matrix
    values = matrix.host.values if isinstance(matrix, BlockwiseMatrix) else matrix.values
    assert np.shares_memory(values, numbers.numpy())
    assert_identical(as_float64(matrix), X.resolve_neg().double().numpy())


@pytest.mark.parametrize("dtype", [">f4", ">f8", ">i2", ">u8", ">f2"])
def test_array_in_foreign_byte_order_is_read_block_by_block(dtype: str) -> None:
    X = table().numpy().astype(dtype)
    matrix = read(X).matrix
    assert isinstance(matrix, BlockwiseMatrix)
    assert np.shares_memory(matrix.host.values, X)
    assert_identical(as_float64(matrix), X.astype(np.float64))


def test_array_that_is_not_aligned_is_read_block_by_block() -> None:
    buffer = bytearray(1 + 8 * 6)
    X = np.frombuffer(buffer, np.float64, offset=1).reshape(3, 2)
    X[:] = [[1, 2], [3, 4], [5, 6]]
    matrix = read(X).matrix
    assert isinstance(matrix, BlockwiseMatrix)
    assert_identical(as_float64(matrix), np.array([[1.0, 2], [3, 4], [5, 6]]))


def test_tensor_that_is_not_aligned_is_read_block_by_block() -> None:
    buffer = bytearray(1 + 2 * 6)
    X = torch.frombuffer(buffer, dtype=torch.bfloat16, offset=1).reshape(3, 2)
    X[:] = torch.tensor([[1, 2], [3, 4], [5, 6]])
    matrix = read(X).matrix
    assert isinstance(matrix, BlockwiseMatrix)
    assert_identical(as_float64(matrix), np.array([[1.0, 2], [3, 4], [5, 6]]))


@given(
    st.lists(st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf"), 1e-40]), min_size=6),
    st.sampled_from([torch.float32, torch.float64, torch.bfloat16]),
)
def test_rows_sampled_from_a_negative_view_equal_the_tensor(
    numbers: list[float], dtype: torch.dtype
) -> None:
    width = torch.float32 if dtype == torch.bfloat16 else dtype
    values = torch.tensor(numbers[: len(numbers) // 3 * 3], dtype=width).reshape(-1, 3)
    X = torch.complex(values, values).conj().imag
    rows = np.arange(X.shape[0])[::-1]
    sampled = read(X).matrix.sample(rows, slice(1, 3))
    np.testing.assert_array_equal(sampled, X.resolve_neg().double().numpy()[rows][:, 1:3])


@st.composite
def strided_views(draw: st.DrawFn) -> torch.Tensor:
    """Any 2-D view of 64 numbers that as_strided can make, overlapping ones included."""
    dtype = draw(st.sampled_from([torch.float64, torch.float32, torch.bfloat16, torch.int8]))
    shape = draw(st.tuples(st.integers(1, 6), st.integers(1, 6)))
    strides = draw(st.tuples(st.integers(0, 7), st.integers(0, 7)))
    room = 63 - sum((size - 1) * stride for size, stride in zip(shape, strides, strict=True))
    hypothesis.assume(room >= 0)
    numbers = (torch.arange(64) - 32).to(dtype)
    return numbers.as_strided(shape, strides, draw(st.integers(0, room)))


@given(strided_views())
def test_any_strided_view_is_read_exactly(X: torch.Tensor) -> None:
    assert_identical(as_float64(read(X).matrix), X.to(torch.float64).numpy())


def test_no_rows_are_accepted_where_they_may_be() -> None:
    assert read_features(torch.ones(0, 3), "X", {}, may_be_empty=True).matrix.n_rows == 0


def test_integers_up_to_2_to_the_53_are_exact() -> None:
    X = torch.tensor([[2**53, -(2**53)]])
    assert_identical(as_float64(read(X).matrix), np.array([[2.0**53, -(2.0**53)]]))


def test_reading_never_writes_to_x() -> None:
    X = torch.randn(50, 3)
    before = X.clone()
    as_float64(read(X).matrix)
    assert torch.equal(X, before)

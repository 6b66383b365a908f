"""Host matrices of every dtype and layout read as the same float64 numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from torchgbdt.core.arrays import AnyArray
from torchgbdt.core.errors import InvalidDataError
from torchgbdt.core.feature_source import HostMatrix, check_exact_integers, row_blocks

DTYPES = [
    *(np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
    *(np.float16, np.float32, np.float64),
]
LIMIT = 2**53


def layouts(values: AnyArray) -> dict[str, AnyArray]:
    """The same matrix in other memory layouts."""
    n_rows, n_features = values.shape
    wide = np.zeros((2 * n_rows, 3 * n_features), values.dtype)
    wide[::2, 1::3] = values
    read_only = values.copy()
    read_only.flags.writeable = False
    return {
        "c": np.ascontiguousarray(values),
        "fortran": np.asfortranarray(values),
        "strided": wide[::2, 1::3],
        "reversed": np.ascontiguousarray(values[::-1, ::-1])[::-1, ::-1],
        "read only": read_only,
    }


@pytest.mark.parametrize("layout", layouts(np.zeros((1, 1))))
@pytest.mark.parametrize("dtype", DTYPES)
def test_columns_and_samples_are_exact_in_any_dtype_and_layout(
    dtype: type[np.generic], layout: str
) -> None:
    values = np.arange(35).reshape(7, 5).astype(dtype)
    matrix = HostMatrix(layouts(values)[layout])
    assert (matrix.n_rows, matrix.n_features) == (7, 5)
    column = matrix.column(3, 2, 6)
    assert column.dtype == np.float64
    np.testing.assert_array_equal(column, values[2:6, 3].astype(np.float64))
    sample = matrix.sample(np.array([5, 0, 5]), slice(1, 4))
    assert sample.dtype == np.float64
    np.testing.assert_array_equal(sample, values[[5, 0, 5], 1:4].astype(np.float64))


@pytest.mark.parametrize("layout", layouts(np.zeros((1, 1))))
def test_bfloat16_bits_are_the_upper_half_of_a_float32(layout: str) -> None:
    # 1 = 0x3f80, -2.5 = 0xc020, the smallest subnormal = 0x0001, -inf = 0xff80
    bits = np.array([[0x3F80, 0xC020], [0x0001, 0xFF80]], np.uint16)
    expected = np.array([[1, -2.5], [2.0**-133, -np.inf]])
    matrix = HostMatrix(layouts(bits)[layout], is_bfloat16=True)
    np.testing.assert_array_equal(matrix.sample(np.array([0, 1]), slice(0, 2)), expected)
    np.testing.assert_array_equal(matrix.column(1, 0, 2), expected[:, 1])


@pytest.mark.parametrize(
    ("bits", "is_bfloat16"),
    [
        (np.array([[0x7FC0], [0x7F81]], np.uint16), True),
        (np.array([[0x7E00], [0x7C01]], np.uint16).view(np.float16), False),
        (np.array([[0x7FC00000], [0x7F800001]], np.uint32).view(np.float32), False),
        (np.array([[0x7FF8 << 48], [0x7FF0000000000001]], np.uint64).view(np.float64), False),
    ],
    ids=["bfloat16", "float16", "float32", "float64"],
)
def test_quiet_and_signalling_nan_are_nan_without_a_warning(
    bits: AnyArray, is_bfloat16: bool
) -> None:
    assert np.isnan(HostMatrix(bits, is_bfloat16).column(0, 0, 2)).all()


def test_reading_gives_copies() -> None:
    values = np.ones((3, 2))
    matrix = HostMatrix(values)
    matrix.column(0, 0, 3)[:] = 7
    matrix.sample(np.arange(3), slice(0, 2))[:] = 7
    np.testing.assert_array_equal(values, 1)


def test_empty_stretches_and_samples_are_empty() -> None:
    matrix = HostMatrix(np.ones((3, 2), np.float32))
    assert matrix.column(0, 2, 2).shape == (0,)
    assert matrix.sample(np.zeros(0, np.int64), slice(0, 2)).shape == (0, 2)


# ----------------------------------------------------------------------------------- row_blocks


@given(st.integers(0, 3_000_000), st.integers(0, 20 << 20))
def test_row_blocks_cover_every_row_once_in_order(n_rows: int, row_bytes: int) -> None:
    step = max(1, (8 << 20) // max(row_bytes, 1))
    n_rows = min(n_rows, 50 * step)  # no more than 50 blocks to look at
    blocks = list(row_blocks(n_rows, row_bytes))
    starts = [block.start for block in blocks]
    stops = [block.stop for block in blocks]
    assert [0, *stops] == [*starts, n_rows]
    assert all(0 < stop - start <= step for start, stop in zip(starts, stops, strict=True))


def test_blocks_hold_8_mib() -> None:
    assert list(row_blocks(5, 4 << 20)) == [slice(0, 2), slice(2, 4), slice(4, 5)]


def test_a_row_larger_than_a_block_is_a_block() -> None:
    assert list(row_blocks(2, 100 << 20)) == [slice(0, 1), slice(1, 2)]


# ------------------------------------------------------------------------------ exact integers


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
@pytest.mark.parametrize("value", [0, LIMIT, -LIMIT])
def test_integers_up_to_2_to_the_53_are_accepted(dtype: type[np.generic], value: int) -> None:
    if value < 0 and dtype is np.uint64:
        value = -value
    check_exact_integers(HostMatrix(np.array([[value]], dtype)), "X")


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        (np.int64, LIMIT + 1),
        (np.int64, -LIMIT - 1),
        (np.int64, -(2**63)),
        (np.int64, 2**63 - 1),
        (np.uint64, LIMIT + 1),
        (np.uint64, 2**64 - 1),
    ],
)
def test_integers_beyond_2_to_the_53_are_refused(dtype: type[np.generic], value: int) -> None:
    values = np.zeros((4, 3), dtype)
    values[2, 1] = values[3, 0] = value
    with pytest.raises(InvalidDataError) as caught:
        check_exact_integers(HostMatrix(values), "X")
    assert str(caught.value) == (
        f"X has the integer {value} in row 2, column 1; integers beyond 2^53 cannot be compared "
        f"exactly. Scale the column, or rank-transform it."
    )


def test_the_row_of_a_large_integer_is_counted_over_blocks() -> None:
    values = np.zeros(((1 << 20) + 10, 1), np.int64)  # 8 MiB hold 2^20 rows
    values[-1] = LIMIT + 1
    with pytest.raises(InvalidDataError, match=rf"in row {(1 << 20) + 9}, column 0;"):
        check_exact_integers(HostMatrix(values), "eval_set[0] X")


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint32, np.int32, np.bool_])
def test_other_dtypes_hold_no_inexact_integer(dtype: type[np.generic]) -> None:
    largest = 1e300 if np.dtype(dtype).kind == "f" and dtype is np.float64 else 1
    check_exact_integers(HostMatrix(np.full((2, 2), largest, dtype)), "X")


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_no_rows_or_no_columns_hold_no_large_integer(shape: tuple[int, int]) -> None:
    check_exact_integers(HostMatrix(np.zeros(shape, np.int64)), "X")

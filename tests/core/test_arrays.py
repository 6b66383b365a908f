"""The constants that other files build on hold what their comments promise."""

import numpy as np
import pytest

from torchgbdt.core import arrays
from torchgbdt.core.fixed_point import GRADIENT_BITS, HESSIAN_BITS


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("BIN_DTYPE", np.uint8),
        ("GRADIENT_DTYPE", np.float32),
        ("FIXED_DTYPE", np.int32),
        ("SUM_DTYPE", np.int64),
        ("THRESHOLD_DTYPE", np.float64),
    ],
)
def test_dtypes_are_those_of_the_contract(name: str, dtype: type[np.generic]) -> None:
    assert getattr(arrays, name) is dtype


def test_every_code_of_max_bins_fits_into_one_byte() -> None:
    assert np.iinfo(arrays.BIN_DTYPE).max + 1 == arrays.MAX_BINS


@pytest.mark.parametrize("bits", [GRADIENT_BITS, HESSIAN_BITS])
def test_rounded_gradients_of_all_rows_sum_within_their_dtypes(bits: int) -> None:
    assert 2**bits <= np.iinfo(arrays.FIXED_DTYPE).max
    assert arrays.MAX_ROWS * 2**bits <= np.iinfo(arrays.SUM_DTYPE).max


def test_smallest_normal_is_the_border_of_the_normal_float32() -> None:
    assert np.finfo(np.float32).smallest_normal == arrays.SMALLEST_NORMAL
    assert isinstance(arrays.SMALLEST_NORMAL, np.float32)


def test_largest_float32_has_all_24_bits_below_2_to_the_128() -> None:
    assert isinstance(arrays.LARGEST_FLOAT32, float)
    assert arrays.LARGEST_FLOAT32 == 2.0**128 - 2.0**104


def test_two_integers_share_a_float64_only_beyond_max_exact_integer() -> None:
    largest = arrays.MAX_EXACT_INTEGER
    assert float(largest - 1) != float(largest)
    assert float(largest) == float(largest + 1)

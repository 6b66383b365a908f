"""Sums without rounding, held against Python's exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from torchgbdt.core.exact_sum import ExactSum, exact_class_sums, exact_weighted_sum

LARGEST = float(np.finfo(np.float64).max)
LARGEST32 = float(np.finfo(np.float32).max)
TINY = 5e-324
BLOCK = 1 << 16  # rows that are summed at a time

finite = st.floats(allow_nan=False, allow_infinity=False)
labels = st.floats(-LARGEST32, LARGEST32).map(lambda y: y if abs(y) >= 2.0**-126 else 0.0)
weights = st.floats(2.0**-126, LARGEST32, width=32)


def exact(values: list[float]) -> Fraction:
    return sum(map(Fraction, values), Fraction(0))


@given(st.lists(finite, max_size=20))
@example([1e308, 1.0, -1e308])
@example([LARGEST] * 3)
@example([-LARGEST, TINY])
@example([TINY, -2 * TINY, 2.0**-1022])
@example([0.1] * 10)
@example([-0.0, 0.0])
def test_total_is_the_sum_of_fractions(values: list[float]) -> None:
    assert ExactSum().add(np.array(values, np.float64)).total() == exact(values)


def test_an_empty_sum_is_zero() -> None:
    assert ExactSum().total() == 0
    assert ExactSum().add(np.zeros(0)).total() == 0


@given(st.lists(finite, max_size=10), st.lists(finite, max_size=10))
def test_adding_the_limbs_of_two_ranks_adds_their_sums(a: list[float], b: list[float]) -> None:
    first, second = ExactSum().add(np.array(a)), ExactSum().add(np.array(b))
    first.limbs += second.limbs
    assert first.total() == exact(a + b)


@given(st.lists(finite, min_size=2, max_size=10))
def test_order_does_not_change_the_limbs(values: list[float]) -> None:
    one, other = ExactSum().add(np.array(values)), ExactSum().add(np.array(sorted(values)))
    np.testing.assert_array_equal(one.limbs, other.limbs)


@given(st.lists(finite, max_size=6), st.lists(finite, max_size=6))
def test_add_goes_on_where_it_stopped(a: list[float], b: list[float]) -> None:
    assert ExactSum().add(np.array(a)).add(np.array(b)).total() == exact(a + b)


@pytest.mark.parametrize("value", [LARGEST, -LARGEST, np.nextafter(1, 0), -np.nextafter(2, 0)])
def test_sums_over_more_than_one_block_stay_exact(value: float) -> None:
    # All 53 bits set, so both halves of the mantissa are as large as they get.
    n_values = 2 * BLOCK + 3
    assert ExactSum().add(np.full(n_values, value)).total() == n_values * Fraction(value)


@pytest.mark.parametrize("value", [LARGEST, -LARGEST, -(2.0**1023), TINY, -1.0])
def test_limbs_have_room_for_2_to_the_32_values(value: float) -> None:
    limbs = ExactSum().add(np.array([value])).limbs
    assert limbs.dtype == np.int64
    assert int(np.abs(limbs).max()) * 2**32 <= 2**60


def test_strided_values_are_summed_as_they_are() -> None:
    values = np.arange(10.0)
    assert ExactSum().add(values[::-3]).total() == 9 + 6 + 3 + 0


# ------------------------------------------------------------------------------- weighted sums


@given(st.lists(st.tuples(labels, weights), max_size=12))
@example([(LARGEST32, LARGEST32), (-LARGEST32, LARGEST32)])
@example([(2.0**-126 * (2 - 2.0**-52), 2.0**-126)])
@example([(1.0 + 2.0**-52, 1.0 + 2.0**-23)])
@example([(-1.0 - 2.0**-26, 2 - 2.0**-23)])
def test_weighted_sum_is_the_sum_of_exact_products(pairs: list[tuple[float, float]]) -> None:
    values = np.array([y for y, _ in pairs], np.float64)
    row_weights = np.array([w for _, w in pairs], np.float32)
    expected = sum((Fraction(y) * Fraction(w) for y, w in pairs), Fraction(0))
    assert exact_weighted_sum(values, row_weights).total() == expected


@given(st.lists(labels, max_size=12))
def test_without_weights_every_value_counts_once(values: list[float]) -> None:
    assert exact_weighted_sum(np.array(values, np.float64), None).total() == exact(values)


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), max_size=12))
def test_float32_values_sum_like_their_float64_copies(values: list[float]) -> None:
    row_weights = np.full(len(values), 0.7, np.float32)
    found = exact_weighted_sum(np.array(values, np.float32), row_weights).total()
    assert found == exact(values) * Fraction(float(np.float32(0.7)))


def test_weights_meet_their_own_rows_beyond_the_first_block() -> None:
    # Rows past the border have weight 2, so the sum is that of 1..n plus that of the tail.
    n_rows = BLOCK + 5
    values = np.arange(1.0, n_rows + 1)
    row_weights = np.where(np.arange(n_rows) < BLOCK, 1, 2).astype(np.float32)
    expected = n_rows * (n_rows + 1) // 2 + sum(range(BLOCK + 1, n_rows + 1))
    assert exact_weighted_sum(values, row_weights).total() == expected


def test_strided_values_and_weights_are_read_as_they_are() -> None:
    values, row_weights = np.arange(6.0), np.arange(12, dtype=np.float32)
    # 5*1 + 4*3 + 3*5 + 2*7 + 1*9 + 0*11 = 55
    assert exact_weighted_sum(values[::-1], row_weights[1::2]).total() == 55


def test_weighted_sum_leaves_its_inputs_alone() -> None:
    values, row_weights = np.array([1.1, -2.2]), np.array([3.3, 4.4], np.float32)
    copies = values.copy(), row_weights.copy()
    exact_weighted_sum(values, row_weights)
    np.testing.assert_array_equal(values, copies[0])
    np.testing.assert_array_equal(row_weights, copies[1])


# -------------------------------------------------------------------------------- sums of classes


@given(st.lists(st.tuples(st.integers(0, 3), weights), max_size=15))
def test_each_class_sums_its_own_weights(rows: list[tuple[int, float]]) -> None:
    codes = np.array([code for code, _ in rows], np.int32)
    row_weights = np.array([weight for _, weight in rows], np.float32)
    expected = [exact([w for code, w in rows if code == one]) for one in range(5)]
    found = [one.total() for one in exact_class_sums(codes, row_weights, 5)]
    assert found == expected
    counts = [one.total() for one in exact_class_sums(codes, None, 5)]
    assert counts == [np.count_nonzero(codes == one) for one in range(5)]


def test_sums_of_classes_of_two_ranks_add_up() -> None:
    codes, row_weights = np.array([2, 0, 2, 2]), np.array([0.1, 1e30, 3, 1e-30], np.float32)
    parts = [
        exact_class_sums(codes[rows], row_weights[rows], 3) for rows in (slice(1), slice(1, 4))
    ]
    for one, first, second in zip(exact_class_sums(codes, row_weights, 3), *parts, strict=True):
        np.testing.assert_array_equal(first.limbs + second.limbs, one.limbs)
        assert not np.shares_memory(first.limbs, second.limbs)

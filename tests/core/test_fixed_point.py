"""Flushing, scales and rounding, held against Python's exact fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from torchgbdt.core.fixed_point import (
    GRADIENT_BITS,
    HESSIAN_BITS,
    MAX_SCALE,
    are_raised,
    flush_subnormals,
    loss_bits,
    minimum_hessian,
    round_gradients,
    round_hessians,
    scale_exponent,
    to_float,
)

SMALLEST = np.float32(2.0**-126)
LARGEST_SUBNORMAL = np.nextafter(SMALLEST, np.float32(0))
LARGEST = float(np.finfo(np.float32).max)

finite32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
normal_positive32 = st.floats(float(SMALLEST), LARGEST, width=32)
scales = st.integers(-98, MAX_SCALE)


def float32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def bits_of(values: np.ndarray) -> list[int]:
    """The bit patterns, so that -0 and +0 differ and NaN equals itself."""
    assert values.dtype == np.float32
    return values.view(np.uint32).tolist()


# ------------------------------------------------------------------------------------- flushing


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    "magnitude", [SMALLEST, np.nextafter(SMALLEST, np.float32(1)), 1.0, LARGEST, np.inf]
)
def test_flush_leaves_normal_numbers_and_infinities_alone(magnitude: float, sign: int) -> None:
    values = float32(sign * magnitude)
    assert bits_of(flush_subnormals(values)) == bits_of(values)


@pytest.mark.parametrize("value", [LARGEST_SUBNORMAL, 2.0**-149, 1e-40, 0.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_flush_makes_smaller_magnitudes_and_both_zeros_plus_zero(value: float, sign: int) -> None:
    assert bits_of(flush_subnormals(float32(sign * value))) == [0]


@pytest.mark.parametrize(
    "bits", [0x7FC00000, 0xFFC00000, 0x7F800001], ids=["quiet", "negative", "signalling"]
)
def test_flush_lets_nan_through_without_a_warning(bits: int) -> None:
    assert np.isnan(flush_subnormals(np.array([bits], np.uint32).view(np.float32))).all()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        # Half of the spacing 2^-149 below the border: the tie rounds to the even border.
        (2.0**-126 - 2.0**-150, 2.0**-126),
        (2.0**-126 - 2.0**-149, 0.0),
        (-(2.0**-126) + 2.0**-150, -(2.0**-126)),
        (1e-300, 0.0),
        (1e39, np.inf),
        (-1e39, -np.inf),
        (0.1, float(np.float32(0.1))),
    ],
)
def test_flush_rounds_float64_to_float32_first(value: float, expected: float) -> None:
    assert bits_of(flush_subnormals(np.array([value]))) == bits_of(float32(expected))


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.uint64, np.bool_])
def test_flush_takes_other_number_types(dtype: type[np.generic]) -> None:
    assert bits_of(flush_subnormals(np.array([0, 1], dtype))) == bits_of(float32(0, 1))


def test_flush_keeps_the_shape_and_its_input() -> None:
    values = np.full((2, 3), LARGEST_SUBNORMAL)[:, ::2]
    assert flush_subnormals(values).shape == (2, 2)
    assert (values == LARGEST_SUBNORMAL).all()


# --------------------------------------------------------------------------------------- scales


@pytest.mark.parametrize(
    ("largest", "bits", "expected"),
    [
        # max = m * 2^e with 1/2 <= m < 1; s = bits - e.
        (1.0, 30, 29),  # 1/2 * 2^1
        (2.0, 30, 28),
        (0.5, 30, 30),
        (float(np.nextafter(np.float32(1), np.float32(0))), 30, 30),
        (float(np.nextafter(np.float32(2), np.float32(0))), 29, 28),
        (3.0, 29, 27),  # 3/4 * 2^2
        (LARGEST, 30, -98),  # e = 128
        (2.0**-90, 30, 119),  # e = -89
        (2.0**-91, 30, 120),  # e = -90: the cap, reached exactly
        (2.0**-92, 30, 120),  # e = -91: beyond it
        (2.0**-92, 29, 120),
        (2.0**-126, 30, 120),
        (0.0, 30, 0),
        (0.0, 29, 0),
    ],
)
def test_scale_exponent_by_hand(largest: float, bits: int, expected: int) -> None:
    scale = scale_exponent(largest, bits)
    assert scale == expected
    assert type(scale) is int


@given(normal_positive32, st.sampled_from([GRADIENT_BITS, HESSIAN_BITS]))
@example(LARGEST, GRADIENT_BITS)
@example(float(SMALLEST), GRADIENT_BITS)
@example(1.0, HESSIAN_BITS)
def test_the_largest_uses_its_bits_and_no_more(largest: float, bits: int) -> None:
    scale = scale_exponent(largest, bits)
    scaled = Fraction(largest) * Fraction(2) ** scale
    assert scaled <= 2**bits
    assert scaled >= 2 ** (bits - 1) or scale == MAX_SCALE


# ------------------------------------------------------------------------- gradients, Hessians


@pytest.mark.parametrize(
    ("values", "scale", "expected"),
    [
        ((0.5, 1.5, 2.5, -0.5, -1.5, -2.5), 0, (0, 2, 2, 0, -2, -2)),  # ties go to even
        ((0.75, 0.25, -0.75, -0.25), 0, (1, 0, -1, 0)),
        ((1, 3, 5, -3), -1, (0, 2, 2, -2)),  # halves: 0.5, 1.5, 2.5, -1.5
        ((0.125, 0.375), 2, (0, 2)),  # 0.5, 1.5
        ((0.0, -0.0), 30, (0, 0)),
    ],
)
def test_round_gradients_by_hand(values: tuple, scale: int, expected: tuple) -> None:
    rounded = round_gradients(float32(*values), scale)
    assert rounded.dtype == np.int32
    assert rounded.tolist() == list(expected)


def nearest_even(value: float, scale: int) -> int:
    return round(Fraction(value) * Fraction(2) ** scale)  # Fractions round half to even


@given(st.lists(finite32, min_size=1, max_size=8))
def test_rounded_gradients_are_correctly_rounded_and_fit(values: list[float]) -> None:
    gradients = flush_subnormals(np.array(values))
    largest = float(np.abs(gradients).max())
    scale = scale_exponent(largest, GRADIENT_BITS)
    rounded = round_gradients(gradients, scale).tolist()
    assert rounded == [nearest_even(g, scale) for g in gradients.tolist()]
    assert max(map(abs, rounded)) <= 2**GRADIENT_BITS
    if largest >= 2.0**-91:
        assert max(map(abs, rounded)) >= 2 ** (GRADIENT_BITS - 1)


@given(st.lists(st.floats(0, LARGEST, width=32), min_size=1, max_size=8))
def test_rounded_hessians_are_correctly_rounded_but_never_lose_a_positive_one(
    values: list[float],
) -> None:
    hessians = flush_subnormals(np.array(values))
    scale = scale_exponent(float(hessians.max()), HESSIAN_BITS)
    rounded = round_hessians(hessians, scale)
    assert rounded.dtype == np.int32
    assert rounded.tolist() == [
        max(1, nearest_even(h, scale)) if h > 0 else 0 for h in hessians.tolist()
    ]
    assert rounded.max() <= 2**HESSIAN_BITS


@pytest.mark.parametrize(
    ("hessian", "expected"), [(0.0, 0), (-0.0, 0), (2.0**-126, 1), (0.25, 1), (0.5, 1), (1.5, 2)]
)
def test_round_hessians_by_hand(hessian: float, expected: int) -> None:
    assert round_hessians(float32(hessian), 0).tolist() == [expected]


def test_scaling_gradients_by_a_power_of_two_changes_no_rounded_gradient() -> None:
    gradients = np.random.default_rng(0).normal(size=100).astype(np.float32)
    largest = float(np.abs(gradients).max())
    expected = round_gradients(gradients, scale_exponent(largest, GRADIENT_BITS))
    for power in (-60, -1, 1, 90):
        scaled = np.ldexp(gradients, power)
        scale = scale_exponent(largest * 2.0**power, GRADIENT_BITS)
        np.testing.assert_array_equal(round_gradients(scaled, scale), expected)


# ------------------------------------------------------------------------- sums back to float64


@given(st.integers(-(2**62), 2**62), scales)
@example(2**53 + 1, 0)  # a tie, to even: 2^53
@example(2**53 + 3, 0)  # a tie, to even: 2^53 + 4
@example(-(2**53) - 1, 5)
@example(2**62 - 1, 120)
@example(-(2**62), -98)
@example(0, 120)
def test_to_float_rounds_once(total: int, scale: int) -> None:
    (found,) = to_float(np.array([total], np.int64), scale).tolist()
    assert found == float(Fraction(total) / Fraction(2) ** scale)


def test_to_float_of_zero_is_plus_zero() -> None:
    assert not np.signbit(to_float(np.zeros(2, np.int64), 7)).any()


# ------------------------------------------------------------------------------ minimum_hessian


@given(st.floats(0, 1e12), scales)
@example(1e-3, 29)
@example(0.1, 0)
def test_minimum_hessian_is_the_smallest_integer_that_reaches_the_weight(
    weight: float, scale: int
) -> None:
    unit = Fraction(1, 2) ** scale
    limit = minimum_hessian(weight, scale)
    if limit == np.iinfo(np.int64).max:
        assert limit * unit < Fraction(weight)
        return
    assert limit >= 1
    assert limit * unit >= Fraction(weight)
    assert limit == 1 or (limit - 1) * unit < Fraction(weight)


@pytest.mark.parametrize(
    ("weight", "scale", "expected"),
    [
        (0.0, 29, 1),  # a child's Hessian is strictly positive
        (1.0, 28, 2**28),
        (float(np.nextafter(1, 2)), 28, 2**28 + 1),
        (float(np.nextafter(1, 0)), 28, 2**28),
        (3.0, -1, 2),  # units of two: 4 is the first multiple that reaches 3
        (1e-300, 29, 1),
        (1e300, 120, 2**63 - 1),  # no sum gets there; still an int64
    ],
)
def test_minimum_hessian_by_hand(weight: float, scale: int, expected: int) -> None:
    assert minimum_hessian(weight, scale) == expected


# ------------------------------------------------------------------------------------ loss_bits


@pytest.mark.parametrize(
    "n_rows", [0, 1, 2, 3, 4, 255, 256, 257, 2**20 - 1, 2**20, 2**32 - 1, 2**32]
)
def test_losses_of_all_rows_sum_within_int64_and_use_it(n_rows: int) -> None:
    largest_sum = max(n_rows, 1) * 2 ** loss_bits(n_rows)
    assert 2**61 <= largest_sum <= 2**62


@pytest.mark.parametrize(
    ("n_rows", "expected"), [(0, 61), (1, 61), (2, 60), (3, 60), (4, 59), (2**32, 29)]
)
def test_loss_bits_by_hand(n_rows: int, expected: int) -> None:
    # They are part of a metric's value: losses are rounded with them.
    assert loss_bits(n_rows) == expected


def test_raised_hessians_are_those_that_would_round_to_zero() -> None:
    # At scale 0: 0 stays 0; 0.25 and 0.5 (half to even) would become 0; 0.75 rounds to 1 by itself.
    hessians = np.array([0, 0.25, 0.5, 0.75, 3], np.float32)
    assert are_raised(hessians, 0).tolist() == [False, True, True, False, False]
    assert are_raised(hessians, 1).tolist() == [False, True, False, False, False]  # 0.25 * 2 = 0.5
    assert round_hessians(hessians, 0).tolist() == [0, 1, 1, 1, 3]

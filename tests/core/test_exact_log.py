"""The exact logarithm: rounded to float64 as the true value is, whatever the fraction."""

import math
from fractions import Fraction

import pytest
from core.high_precision import log
from hypothesis import example, given
from hypothesis import strategies as st
from support.exact import assert_identical

from torchgbdt.core.exact_log import exact_log

counts = st.integers(1, 2**32)
sums = st.fractions(min_value=Fraction(1, 2**300), max_denominator=2**300).filter(bool)


def assert_rounded_once(x: Fraction) -> None:
    assert_identical(exact_log(x), float(log(x)))


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        (Fraction(1), 0.0),
        (Fraction(2), 0.6931471805599453),  # ln 2 = 0.693147180559945309417...
        (Fraction(1, 2), -0.6931471805599453),
        (Fraction(3), 1.0986122886681098),  # 1.098612288668109691...
        (Fraction(10), 2.302585092994046),  # 2.302585092994045684...
        (Fraction(1, 10), -2.302585092994046),
    ],
)
def test_logarithms_by_hand(x: Fraction, expected: float) -> None:
    assert_identical(exact_log(x), expected)


@given(counts, counts)
@example(2**32, 1)
@example(1, 2**32)
@example(2**32, 2**32 - 1)
@example(3, 4)  # where the mantissa is doubled, and where it is not
@example(3 * 2**20 - 1, 4 * 2**20)
@example(3, 2)
@example(3 * 2**20 - 1, 2 * 2**20)
def test_quotients_of_counts(a: int, b: int) -> None:
    assert_rounded_once(Fraction(a, b))


@given(sums, sums)
def test_quotients_of_any_fractions(a: Fraction, b: Fraction) -> None:
    assert_rounded_once(a / b)


@given(st.integers(1, 2**20), st.integers(1, 600), st.booleans())
@example(1, 53, False)
@example(1, 54, True)
@example(1, 600, True)
def test_numbers_next_to_one(step: int, bits: int, below: bool) -> None:
    # ln(1 + d) = d - d^2/2 + ...: all its bits lie far behind the point.
    x = 1 + Fraction(-step if below else step, 2 ** (bits + 21))
    assert_rounded_once(x)


@pytest.mark.parametrize("exponent", [*range(-70, 71), -1022, -300, 300, 1023])
def test_powers_of_two_and_their_neighbours(exponent: int) -> None:
    power = Fraction(2) ** exponent
    for x in (power, power * (1 + Fraction(1, 2**52)), power * (1 - Fraction(1, 2**53))):
        assert_rounded_once(x)


@given(sums.map(lambda x: 1 + x) | st.fractions(min_value=Fraction(1, 10**9)).filter(bool))
def test_the_logarithm_of_the_reciprocal_is_the_negative(x: Fraction) -> None:
    assert exact_log(1 / x) == -exact_log(x)


@given(st.floats(2.0**-1022, 1e308))
def test_the_logarithm_of_a_float_is_that_of_the_c_library_but_for_its_last_bit(x: float) -> None:
    found = exact_log(Fraction(x))
    assert found in (
        math.log(x),
        *(math.nextafter(math.log(x), to) for to in (-math.inf, math.inf)),
    )


@pytest.mark.parametrize("x", [Fraction(0), Fraction(-1, 3)])
def test_numbers_without_a_logarithm_are_refused(x: Fraction) -> None:
    with pytest.raises(ValueError, match="x must be > 0"):
        exact_log(x)

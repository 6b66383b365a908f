"""Class probabilities and likeliest classes: what they sum to, how they are ordered, and where."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.exact import assert_identical

from torchgbdt.core import portable_math
from torchgbdt.core.probabilities import (
    LARGEST_EXPONENT,
    logistic_terms,
    predicted_codes,
    probabilities,
    softmax_term,
    softmax_terms,
)

NAN, INF = float("nan"), float("inf")
LARGEST = float(np.finfo(np.float32).max)
SMALLEST = 2.0**-126
ULP = 2.0**-24  # of float32 just below 1
FAINT = float(portable_math.exp(np.array([-86], np.float32))[0])
"""exp(-86), the smallest term there is."""

close = st.integers(-4, 4).map(lambda steps: steps * ULP / 2)
ordinary = st.floats(-200, 200, width=32)
values = st.one_of(close, ordinary, st.floats(width=32, allow_nan=False, allow_infinity=False))


def float32(values: Any) -> np.ndarray:
    return np.array(values, np.float32)


def softmax(rows: Any, dtype: type = np.float64) -> np.ndarray:
    return probabilities("softmax", float32(rows), dtype)


def logistic(x: Any, dtype: type = np.float64) -> np.ndarray:
    return probabilities("logistic", float32(x)[:, None], dtype)


@st.composite
def raw_rows(draw: st.DrawFn) -> np.ndarray:
    """Raw predictions of some classes; half of the rows lie close together."""
    shape = draw(st.tuples(st.integers(1, 5), st.integers(2, 6)))
    rows = draw(hnp.arrays(np.float32, shape, elements=draw(st.sampled_from([close, values]))))
    return rows


# -------------------------------------------------------------------------------------- numbers


def test_probabilities_by_hand() -> None:
    assert_identical(logistic([0.0, -0.0]), np.full((2, 2), 0.5))
    assert_identical(softmax([[3, 3, 3, 3]]), np.full((1, 4), 0.25))
    assert_identical(softmax([[1, 1, 1]]), np.full((1, 3), 1 / 3))
    assert_identical(softmax([[1, 1, 1]], np.float32), np.full((1, 3), np.float32(1 / 3)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_float32_exponentials_are_divided_in_the_dtype_asked_for(dtype: type) -> None:
    x = float32([1, -2, 40, -0.25])
    t = portable_math.exp(-np.abs(x)).astype(dtype)
    small, large = t / (1 + t), 1 / (1 + t)
    expected = np.where((x >= 0)[:, None], np.stack((small, large), 1), np.stack((large, small), 1))
    assert_identical(logistic(x, dtype), expected)
    rows = float32([[1, -2, 0.5], [-1, -1, 7]])
    t = portable_math.exp(rows - rows.max(axis=1, keepdims=True)).astype(dtype)
    expected = t / ((t[:, 0] + t[:, 1]) + t[:, 2])[:, None]
    assert expected.dtype == dtype
    assert_identical(softmax(rows, dtype), expected)


@given(raw_rows())
@example(float32([[0, ULP], [LARGEST, -LARGEST]]))
def test_probabilities_of_a_row_sum_to_one(rows: np.ndarray) -> None:
    # Fewer than 2 K operations, each of which rounds by 2^-53 at most.
    n_classes = rows.shape[1]
    found = [softmax(rows), logistic(rows[:, 0])]
    for row in np.concatenate([np.pad(part, [(0, 0), (0, 7 - part.shape[1])]) for part in found]):
        assert (row >= 0).all()
        assert abs(sum(map(Fraction, row.tolist())) - 1) <= Fraction(2 * n_classes, 2**53)


@given(raw_rows())
def test_probabilities_are_ordered_like_raw_predictions(rows: np.ndarray) -> None:
    for dtype in (np.float32, np.float64):
        found = softmax(rows, dtype)
        for row, p in zip(rows, found, strict=True):
            order = np.argsort(row, kind="stable")
            assert (np.diff(p[order]) >= 0).all()
        assert (found > 0).all() or dtype is np.float32


@given(raw_rows())
def test_the_second_of_two_classes_is_logistic_in_the_difference(rows: np.ndarray) -> None:
    x = rows[:, 0]
    both = np.stack((np.zeros_like(x), x), axis=1)
    for dtype in (np.float32, np.float64):
        assert_identical(softmax(both, dtype), logistic(x, dtype))
        assert_identical(logistic(-x, dtype), logistic(x, dtype)[:, ::-1].copy())


def test_an_offset_of_all_classes_changes_nothing() -> None:
    rows = np.random.default_rng(0).integers(-50, 50, (30, 4))
    for offset in (1, -1000, 2**20):
        assert_identical(softmax(rows + offset), softmax(rows))


# -------------------------------------------------------------------------------- likeliest class


@given(raw_rows())
@example(float32([[0, ULP / 2], [0, ULP], [0, 2 * ULP], [0, 1e-30]]))  # exp(-2^-25) is 1
@example(float32([[1 - ULP, 1, 1], [1, 1 - ULP, 1], [LARGEST, LARGEST, 0]]))
@example(float32([[-100, -300, -300], [0, 0, 90]]))
def test_no_class_is_more_probable_than_the_predicted_one(rows: np.ndarray) -> None:
    codes, shares = predicted_codes(rows), softmax(rows)
    assert codes.dtype == np.int64
    assert_identical(shares[np.arange(len(rows)), codes], shares.max(axis=1))
    for column in rows.T:
        codes, shares = predicted_codes(column[:, None]), logistic(column)
        assert codes.dtype == np.int64
        assert_identical(shares[np.arange(len(rows)), codes], shares.max(axis=1))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ([0, 0, 0], 0),
        ([0, 1, 1], 1),
        ([0, 0, 1], 2),
        ([-0.0, 0.0], 0),
        ([0, ULP / 4, ULP / 2], 2),  # all three exponentials are 1, and raw predictions decide
        ([-INF, -5, -INF], 1),
        ([-LARGEST, LARGEST], 1),
    ],
)
def test_likeliest_classes_by_hand(row: list[float], expected: int, dtype: type) -> None:
    assert predicted_codes(np.array([row], dtype)).tolist() == [expected]


@pytest.mark.parametrize(
    ("x", "expected"),
    [(0.0, 0), (-0.0, 0), (ULP / 2, 1), (4 * ULP, 1), (-4 * ULP, 0), (INF, 1), (-INF, 0), (NAN, 0)],
)
def test_the_likelier_of_two_classes_by_hand(x: float, expected: int) -> None:
    assert predicted_codes(float32([[x]])).tolist() == [expected]


# ------------------------------------------------------------------------------------- extremes


@pytest.mark.parametrize("x", [86, 86.5, 200, 1e30, LARGEST])
def test_probabilities_saturate_short_of_zero(x: float) -> None:
    assert_identical(logistic([x, -x]), np.array([[FAINT, 1], [1, FAINT]]))
    assert_identical(logistic([x], np.float32), float32([[FAINT, 1]]))
    assert_identical(softmax([[0, x], [-x, 0]]), np.array([[FAINT, 1]] * 2))
    assert logistic([85.99])[0, 0] > FAINT > SMALLEST


def test_a_float32_probability_below_the_smallest_normal_is_plus_zero() -> None:
    # exp(-86) = 4.5e-38 = 3.8 * 2^-126 among four classes: 0.95 * 2^-126.
    rows = [[0, 0, 0, 0, -90], [0, -90, -90, -90, -90]]
    expected = float32([[0.25] * 4 + [0], [1] + [FAINT] * 4])
    assert_identical(softmax(rows, np.float32), expected)
    assert (softmax(rows) > 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_what_is_no_number_stays_in_its_row(dtype: type) -> None:
    x = [1.0, NAN, -2.0]
    assert np.isnan(logistic(x, dtype)).tolist() == [[False] * 2, [True] * 2, [False] * 2]
    for position in range(3):
        rows = np.zeros((3, 3))
        rows[1, position] = NAN
        assert np.isnan(softmax(rows, dtype)).tolist() == [[False] * 3, [True] * 3, [False] * 3]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_rows_have_no_probabilities(dtype: type) -> None:
    assert_identical(softmax(np.zeros((0, 4)), dtype), np.zeros((0, 4), dtype))
    assert_identical(logistic([], dtype), np.zeros((0, 2), dtype))
    assert predicted_codes(float32(np.zeros((0, 4)))).shape == (0,)


def test_raw_predictions_are_left_as_they_were() -> None:
    rows = float32([[1, 2, -0.0], [0, 5, 100]])
    before = rows.copy()
    softmax(rows)
    predicted_codes(rows)
    logistic(rows[:, 0])
    assert_identical(rows, before)


# ---------------------------------------------------------------------------------------- terms


def test_logistic_terms_are_those_of_the_distance_from_zero() -> None:
    found = logistic_terms(float32([2, -2, 0, 1e9]))
    t = portable_math.exp(float32([-2, -2, 0, -LARGEST_EXPONENT]))
    assert_identical(found.t, t)
    assert_identical(found.small, t / (1 + t))
    assert_identical(found.large, 1 / (1 + t))


def test_softmax_terms_leave_out_the_first_largest() -> None:
    x = float32([[1, 3, 3], [3, 1, 3], [0, 0, 0], [-1, -1, -90]])
    found = softmax_terms(x)
    t = softmax_term(x, found.largest[:, None])
    e = float(portable_math.exp(float32([-2]))[0])
    assert_identical(found.largest, float32([3, 3, 0, -1]))
    assert_identical(t, float32([[e, 1, 1], [1, e, 1], [1, 1, 1], [1, 1, FAINT]]))
    assert_identical(found.rest, float32([e + 1, e + 1, 2, 1]))


def test_terms_are_summed_in_the_order_of_the_classes() -> None:
    # exp(-17) = 0.69 * 2^-24: 1 + t is 1, and so is (1 + t) + t, but t + t + 1 is not.
    t = float(portable_math.exp(float32([-17]))[0])
    found = softmax_terms(float32([[0, 0, -17, -17], [-17, -17, 0, 0], [-17, 0, -17, 0]]))
    assert 1 + np.float32(t) == 1 < 2 * np.float32(t) + 1
    assert_identical(found.rest, float32([1, 2 * t + 1, 2 * t + 1]))
    # The same in float32 for the sum of all terms.
    p = softmax([[0, -17, -17], [-17, -17, 0]], np.float32)
    assert_identical(p, float32([[1, t, t], [t, t, 1]]) / float32([[1], [2 * t + 1]]))

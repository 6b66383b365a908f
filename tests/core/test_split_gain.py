"""Score, leaf weight and gain: the order of operations, zeros, and splits that gain nothing."""

import numpy as np
import pytest
from core.split_cases import Case, Row
from hypothesis import example, given
from hypothesis import strategies as st
from support.exact import assert_identical
from support.naive_splits import gain

from torchgbdt.core.splits import SplitRules, leaf_weight, score, split_gain

sums = st.integers(-(2**62), 2**62)
hessian_sums = st.integers(0, 2**61)
scale_values = st.integers(-98, 120)
# Regularisation far below any Hessian would overflow where a Hessian is 0 beside a gradient.
lambdas = st.just(0.0) | st.floats(1e-30, 1e6)


def rules(scales: list[tuple[int, int]], reg_lambda: float = 0.0, gamma: float = 0.0) -> SplitRules:
    ones = np.ones(len(scales), np.int64)
    return SplitRules(reg_lambda, gamma, 1, ones, np.array(scales, np.int64))


# ------------------------------------------------------------------------- score and leaf weight


@pytest.mark.parametrize(
    ("gradient", "hessian", "reg_lambda", "expected"),
    [
        (3.0, 2.0, 1.0, 3.0),  # 9 / 3
        (-3.0, 2.0, 1.0, 3.0),
        (3.0, 0.0, 0.0, 0.0),  # no denominator
        (3.0, 0.0, 2.0, 4.5),
        (0.0, 5.0, 0.0, 0.0),
        (-0.0, 5.0, 0.0, 0.0),
        (1.0, 1.0, 1e308, 1e-308),
    ],
)
def test_score_by_hand(gradient: float, hessian: float, reg_lambda: float, expected: float) -> None:
    found = score(np.array([gradient]), np.array([hessian]), reg_lambda)
    assert_identical(found, np.array([expected]))


@pytest.mark.parametrize(
    ("gradient", "hessian", "reg_lambda", "expected"),
    [
        (3.0, 2.0, 1.0, -1.0),
        (-3.0, 2.0, 1.0, 1.0),
        (1.0, 3.0, 0.0, -1 / 3),
        (0.0, 5.0, 1.0, 0.0),  # -0 / 6 would be -0
        (-0.0, 5.0, 1.0, 0.0),
        (3.0, 0.0, 0.0, 0.0),
        (0.0, 0.0, 0.0, 0.0),
        (5e-324, 1.0, 1.0, 0.0),  # -2.5e-324 rounds to -0
    ],
)
def test_leaf_weight_by_hand(
    gradient: float, hessian: float, reg_lambda: float, expected: float
) -> None:
    found = leaf_weight(np.array([gradient]), np.array([hessian]), reg_lambda)
    assert_identical(found, np.array([expected]))


@given(st.floats(-1e100, 1e100), st.just(0.0) | st.floats(1e-40, 1e100), lambdas)
def test_score_squares_before_it_divides(g: float, h: float, reg_lambda: float) -> None:
    expected = (g * g) / (h + reg_lambda) if h + reg_lambda else 0.0
    found = score(np.array([g]), np.array([h]), reg_lambda)
    assert_identical(found, np.array([expected]))


def test_elements_of_any_shape_are_independent() -> None:
    gradients = np.array([[1.0, 2.0], [0.0, -4.0]])
    hessians = np.array([[0.0, 1.0], [0.0, 2.0]])
    assert_identical(score(gradients, hessians, 0.0), np.array([[0, 4.0], [0, 8]]))
    assert_identical(leaf_weight(gradients, hessians, 0.0), np.array([[0, -2.0], [0, 2]]))


# ------------------------------------------------------------------------------------------ gain


def test_gain_by_hand() -> None:
    # Left 2/1, right -1/2, parent 1/3, lambda 1: (4/2 + 1/3 - 1/4) / 2 - 0.5 = 13/24.
    left, parent = np.array([[2, 1]]), np.array([[1, 3]])
    found = split_gain(left, parent, rules([(0, 0)], 1.0, 0.5))
    assert_identical(float(found), 0.5 * ((4 / 2 + 1 / 3) - 1 / 4) - 0.5)


@st.composite
def two_sides(draw: st.DrawFn) -> tuple[list[list[int]], list[list[int]], SplitRules]:
    n_outputs = draw(st.sampled_from([1, 2, 3]))
    sides = [
        [[draw(sums) // 2, draw(hessian_sums) // 2] for _ in range(n_outputs)] for _ in range(2)
    ]
    scales = [(draw(scale_values), draw(scale_values)) for _ in range(n_outputs)]
    limits = rules(scales, draw(lambdas), draw(st.floats(0, 1e6)))
    return sides[0], sides[1], limits


@given(two_sides())
@example(([[1, 1], [2**60, 1]], [[-1, 2], [-(2**60), 2]], rules([(0, 0), (0, 0)])))
def test_gain_is_evaluated_in_the_prescribed_order(
    case: tuple[list[list[int]], list[list[int]], SplitRules],
) -> None:
    left, right, limits = case
    parent = [
        [left_sum + right_sum for left_sum, right_sum in zip(*pair, strict=True)]
        for pair in zip(left, right, strict=True)
    ]
    found = split_gain(np.array(left, np.int64), np.array(parent, np.int64), limits)
    assert_identical(float(found), gain(left, right, parent, limits))


def test_outputs_are_added_in_ascending_order() -> None:
    # Brackets 2^54 - 2^53 = 2^53, then twice 4/2 - 4/4 = 1: (2^53 + 1) + 1 rounds to 2^53 twice,
    # any order that adds 1 + 1 first gives 2^53 + 2.
    left = np.array([[2**27, 1], [2, 2], [2, 2]])
    parent = np.array([[2**27, 2], [2, 4], [2, 4]])
    assert float(split_gain(left, parent, rules([(0, 0)] * 3))) == 2.0**52


def test_left_and_right_are_interchangeable() -> None:
    rng = np.random.default_rng(0)
    left = rng.integers(1, 1000, (50, 2, 2))
    parent = left + rng.integers(1, 1000, (50, 2, 2))
    limits = rules([(3, 1), (5, 2)], 0.3)
    assert_identical(split_gain(left, parent, limits), split_gain(parent - left, parent, limits))


# ----------------------------------------------------------- splits that gain nothing but noise


def proportional(a: int, b: int, gradient: int, hessian: int, reg_lambda: float) -> Case:
    """Two bins whose sums are a and b times (gradient, hessian)."""
    rows: list[Row] = [
        ((0,), (a * gradient,), (a * hessian,)),
        ((1,), (b * gradient,), (b * hessian,)),
    ]
    return Case((2,), [rows], reg_lambda=reg_lambda)


def test_proportional_sums_gain_nothing_where_floating_point_sees_noise() -> None:
    pairs = [(a, b) for a in range(1, 12) for b in range(1, 12)]
    left = np.array([[[7 * a, 10 * a]] for a, _ in pairs])
    parent = left + np.array([[[7 * b, 10 * b]] for _, b in pairs])
    noise = split_gain(left, parent, rules([(0, 0)]))
    assert (noise > 0).any()  # or this test would show nothing
    for a, b in pairs:
        assert not proportional(a, b, 7, 10, 0.0).search()[0]["found"][0]


@pytest.mark.parametrize("reg_lambda", [0.0, 1.0])
def test_proportional_sums_near_2_to_the_60_gain_nothing(reg_lambda: float) -> None:
    case = proportional(2**30 - 1, 2**30 + 1, 2**29 + 3, 2**28 + 1, reg_lambda)
    assert not case.search()[0]["found"][0]


def test_products_that_only_wrap_to_the_same_int64_are_no_reason() -> None:
    # GL*HR = 2^40 * 2^30 and GR*HL = 2^35 * 2^32 are both 0 modulo 2^64, and not equal.
    rows: list[Row] = [((0,), (2**40,), (2**32,)), ((1,), (2**35,), (2**30,))]
    assert Case((2,), [rows]).search()[0]["found"][0]


def test_wrapped_products_of_one_output_beside_equal_ones_of_another_are_no_reason() -> None:
    rows: list[Row] = [((0,), (2**40, 1), (2**32, 1)), ((1,), (2**35, 1), (2**30, 1))]
    case = Case((2,), [rows], min_hessian=(1, 1), scales=((0, 0), (0, 0)))
    assert case.search()[0]["found"][0]


def test_one_output_that_is_not_proportional_makes_a_candidate() -> None:
    rows: list[Row] = [((0,), (3, 1), (3, 1)), ((1,), (5, -1), (5, 1))]
    case = Case((2,), [rows], min_hessian=(1, 1), scales=((0, 0), (0, 0)))
    assert case.search()[0]["found"][0]


def test_a_proportional_candidate_does_not_hide_a_later_one() -> None:
    # After bin 0 the sums are 1/1 and 2/2; after bin 1 they are 4/2 and -1/1.
    rows: list[Row] = [((0,), (1,), (1,)), ((1,), (3,), (1,)), ((2,), (-1,), (1,))]
    record = Case((3,), [rows]).search()[0][0]
    assert record["split_bin"] == 1

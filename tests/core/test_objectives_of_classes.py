"""Logistic and softmax: gradients by hand, as derivatives of the loss, and at the extremes."""

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.exact import assert_identical
from support.tolerances import PORTABLE_MATH_ULPS

from torchgbdt.core import portable_math
from torchgbdt.core.errors import InvalidDataError
from torchgbdt.core.objectives import Logistic, Softmax

INF, NAN = float("inf"), float("nan")
LARGEST = float(np.finfo(np.float32).max)
SMALLEST = 2.0**-126
FAINT = float(portable_math.exp(np.array([-86], np.float32))[0])
"""exp(-86), below which no term falls."""

ULP = Fraction(1, 2**23)
"""At most this much of a float32 is one unit in its last place, and half of it a rounding."""


def float32(*values: Any) -> np.ndarray:
    return np.array(values, np.float32)


def logistic(x: Any, y: Any, w: Any = None) -> tuple[np.ndarray, np.ndarray]:
    weights = None if w is None else float32(*w)
    g, h = Logistic().gradients(float32(*x)[:, None], float32(*y), weights)
    assert g.shape == h.shape == (len(x), 1)
    return g[:, 0], h[:, 0]


def softmax(rows: Any, y: Any, w: Any = None) -> tuple[np.ndarray, np.ndarray]:
    x = float32(*rows)
    weights = None if w is None else float32(*w)
    return Softmax(x.shape[1]).gradients(x, float32(*y), weights)


def assert_within(found: float, exact: mpmath.mpf, roundings: int) -> None:
    """Off by what ``exp`` and so many roundings may add up to; they round what only grows."""
    limit = PORTABLE_MATH_ULPS + Fraction(roundings, 2)
    assert abs(found - exact) <= mpmath.mpf(float(limit * ULP)) * abs(exact), (found, exact)


# ------------------------------------------------------------------------------------- by hand


def test_logistic_gradients_by_hand() -> None:
    # s(0) = 1/2: g = s - y, h = s * (1 - s)
    assert_identical(logistic([0, 0], [0, 1]), (float32(0.5, -0.5), float32(0.25, 0.25)))
    weighted = logistic([0, -0.0], [1, 0], [3, 0.5])
    assert_identical(weighted, (float32(-1.5, 0.25), float32(0.75, 0.125)))


def test_softmax_gradients_by_hand() -> None:
    # p = 1/4: g = p - [y = k], h = 2 p (1 - p) = 3/8
    g, h = softmax([[7, 7, 7, 7]], [2])
    assert_identical(g, float32([0.25, 0.25, -0.75, 0.25]))
    assert_identical(h, float32([0.375] * 4))
    g, h = softmax([[1, 1], [0, -0.0]], [0, 1], [4, 0.5])
    assert_identical(g, float32([-2, 2], [0.25, -0.25]))
    assert_identical(h, float32([2, 2], [0.25, 0.25]))


def test_each_softmax_result_is_rounded_to_float32() -> None:
    third, two_thirds = np.float32(1 / 3), np.float32(2 / 3)
    g, h = softmax([[5, 5, 5]], [1])
    assert_identical(g, float32([third, -two_thirds, third]))
    assert_identical(h, float32([2 * third * two_thirds] * 3))
    g, _ = softmax([[5, 5, 5]], [1], [1 / 3])
    assert_identical(g, float32([third * third, -(third * two_thirds), third * third]))


def test_every_step_on_the_way_is_one_of_float32() -> None:
    x = np.linspace(-20, 20, 101, dtype=np.float32)
    t = portable_math.exp(-np.abs(x))
    total = 1 + t
    small, large = t / total, 1 / total
    for y in (0, 1):
        g, h = logistic(x, np.full(101, y))
        towards = (x >= 0) == (y == 0)
        assert_identical(g, np.where(towards, large, small) * np.float32(1 - 2 * y))
        assert_identical(h, small / total)
        g, h = softmax(np.stack((np.zeros_like(x), x), axis=1), np.full(101, y))
        # 1 - p is the other class's term, as it is where this one is the first of the largest.
        second, rest = np.where(x > 0, 1, t), np.where(x > 0, t, total - t)
        rest = np.where(x == 0, 1, rest)
        assert_identical(g[:, 1].copy(), -(rest / total) if y else second / total)
        assert_identical(h[:, 1].copy(), (2 * (second / total)) * (rest / total))


# ---------------------------------------------------------------------------------- derivatives

POINTS = [*np.linspace(-86, 86, 23).tolist(), *(s * 10.0**e for e in range(-8, 2) for s in (-1, 1))]


@pytest.mark.parametrize("y", [0, 1])
@pytest.mark.parametrize("x", POINTS)
def test_logistic_gradients_are_derivatives_of_the_loss(x: float, y: int) -> None:
    x = float(np.float32(x))
    (g,), (h,) = logistic([x], [y])

    def loss(z: mpmath.mpf) -> mpmath.mpf:
        return mpmath.log1p(mpmath.exp(z)) - y * z

    with mpmath.workdps(120):
        # 1 + t and a quotient; the Hessian divides once more
        assert_within(float(g), mpmath.diff(loss, x, 1), 2)
        assert_within(float(h), mpmath.diff(loss, x, 2), 4)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_softmax_gradients_are_derivatives_of_the_loss(seed: int, n_classes: int) -> None:
    rng = np.random.default_rng([seed, n_classes])
    spread = 10.0 ** rng.uniform(-3, 1)
    row, y = rng.normal(0, spread, n_classes).astype(np.float32), int(rng.integers(n_classes))
    g, h = softmax([row], [y])
    for k in range(n_classes):

        def loss(z: mpmath.mpf, k: int = k) -> mpmath.mpf:
            x = [z if one == k else mpmath.mpf(float(row[one])) for one in range(n_classes)]
            return mpmath.log(sum(map(mpmath.exp, x))) - x[y]

        with mpmath.workdps(120):
            at = mpmath.mpf(float(row[k]))
            # x - largest is off by half a unit of up to 2^6, and so is its exponential; K - 1 sums,
            # the difference from the total, the quotient
            distance = int(np.ceil(2 * np.abs(row - row.max()).max()))
            assert_within(float(g[0, k]), mpmath.diff(loss, at, 1), n_classes + 2 + distance)
            factor = 2 * mpmath.diff(loss, at, 2)
            assert_within(float(h[0, k]), factor, 2 * n_classes + 5 + 2 * distance)


# ------------------------------------------------------------------------------ the factor of two

shares = st.lists(st.integers(0, 1000), min_size=2, max_size=6).filter(any)


def is_positive_semidefinite(matrix: list[list[Fraction]]) -> bool:
    """By elimination: every pivot is positive, or 0 with nothing beside it."""
    if not matrix:
        return True
    pivot, first = matrix[0][0], matrix[0][1:]
    if pivot < 0 or (pivot == 0 and any(first)):
        return False
    rest = [row[1:] for row in matrix[1:]]
    if pivot > 0:
        rest = [
            [value - a * b / pivot for value, b in zip(row, first, strict=True)]
            for row, a in zip(rest, first, strict=True)
        ]
    return is_positive_semidefinite(rest)


def slack(p: list[Fraction], factor: Fraction) -> list[list[Fraction]]:
    """``factor * diag(p (1 - p)) - (diag(p) - p p^T)``."""
    return [
        [a * b + (factor * a * (1 - a) - a if i == j else 0) for j, b in enumerate(p)]
        for i, a in enumerate(p)
    ]


@given(shares)
def test_twice_the_diagonal_bounds_the_hessian_of_softmax(counts: list[int]) -> None:
    p = [Fraction(count, sum(counts)) for count in counts]
    assert is_positive_semidefinite(slack(p, Fraction(2)))


@given(st.integers(1, 999), st.integers(1, 10**6))
def test_no_smaller_multiple_of_the_diagonal_does(count: int, less: int) -> None:
    # Two classes: (1, -1) is a direction where the bound with 2 is met.
    p = [Fraction(count, 1000), 1 - Fraction(count, 1000)]
    assert not is_positive_semidefinite(slack(p, 2 - Fraction(1, less)))


@given(hnp.arrays(np.float32, 8, elements=st.floats(-300, 300, width=32)))
def test_two_classes_of_softmax_step_like_logistic(x: np.ndarray) -> None:
    # A step of both trees moves x = x_1 - x_0 by (g_0 - g_1) / h_softmax = -2 g / h_softmax, and
    # that of logistic by -g / h: the same where h_softmax = 2 h. Where the class is the less likely
    # one, softmax takes (1 + t) - t for 1, and a product for a quotient: a few roundings.
    y = np.arange(8) % 2
    g, h = logistic(x, y)
    both_g, both_h = softmax(np.stack((np.zeros_like(x), x), axis=1), y)
    for found, expected in (
        *((both_g[:, 0], -g), (both_g[:, 1], g)),
        *((both_h[:, 0], 2 * h), (both_h[:, 1], 2 * h)),
    ):
        for one, other in zip(found.tolist(), expected.tolist(), strict=True):
            assert abs(Fraction(one) - Fraction(other)) <= 5 * (ULP / 2) * abs(Fraction(other))


# ------------------------------------------------------------------------------------- extremes


@pytest.mark.parametrize("x", [86, 87, 200, LARGEST, INF])
def test_logistic_saturates_with_a_hessian_above_zero(x: float) -> None:
    g, h = logistic([x, x, -x, -x], [0, 1, 0, 1])
    assert_identical(g, float32(1, -FAINT, FAINT, -1))
    assert_identical(h, float32(*[FAINT] * 4))
    assert FAINT > SMALLEST


@pytest.mark.parametrize("x", [86, 87, 200, LARGEST])
def test_softmax_saturates_with_a_hessian_above_zero(x: float) -> None:
    g, h = softmax([[0, x]] * 2 + [[-x, 0]] * 2, [0, 1, 0, 1])
    assert_identical(g, float32([-1, 1], [FAINT, -FAINT], [-1, 1], [FAINT, -FAINT]))
    assert_identical(h, float32(*[[2 * FAINT] * 2] * 4))


def test_softmax_probabilities_below_the_smallest_normal_are_zero() -> None:
    # exp(-86) = 3.8 * 2^-126 among four: 0.95 * 2^-126.
    g, h = softmax([[0, 0, 0, 0, -90]], [0])
    assert_identical(g, float32([-0.75, 0.25, 0.25, 0.25, 0]))
    assert_identical(h, float32([0.375, 0.375, 0.375, 0.375, 0]))


@given(hnp.arrays(np.float32, (6, 3), elements=st.floats(width=32, allow_nan=False)))
def test_no_gradient_is_minus_zero_and_no_hessian_negative(rows: np.ndarray) -> None:
    rows = np.clip(rows, -LARGEST, LARGEST)
    y = np.arange(6) % 3
    for weights in (None, [SMALLEST] * 6):
        for g, h in (softmax(rows, y, weights), logistic(rows[:, 0], y % 2, weights)):
            assert not np.signbit(g[g == 0]).any()
            assert not np.signbit(h).any()
            assert ((np.abs(g) >= SMALLEST) | (g == 0)).all()
            assert ((h >= SMALLEST) | (h == 0)).all()


def test_what_is_no_number_stays_in_its_row_and_is_no_warning() -> None:
    for part in logistic([1, NAN, 2], [0, 1, 1]):
        assert np.isnan(part).tolist() == [False, True, False]
    for row in ([NAN, 0, 0], [0, 0, NAN], [INF, INF, 0], [-INF] * 3):
        for part in softmax([[1, 2, 3], row], [0, 1]):
            assert np.isnan(part).tolist() == [[False] * 3, [True] * 3]


def test_weights_beyond_float32_products_are_no_warning() -> None:
    g, h = logistic([0, 100], [0, 0], [LARGEST, SMALLEST])
    assert_identical(g, float32(LARGEST / 2, SMALLEST))
    assert_identical(h, float32(LARGEST / 4, 0))


def test_arguments_are_left_as_they_were() -> None:
    x, y, w = float32([1, 2], [-0.0, 3]), float32(0, 1), float32(2, 3)
    copies = x.copy(), y.copy(), w.copy()
    for one in (Softmax(2), Logistic()):
        for part in one.gradients(x, y, w):
            part[:] = 7
    assert_identical((x, y, w), copies)


# ------------------------------------------------------------------------------ classes and labels


def test_logistic_needs_two_classes_and_softmax_takes_any_number() -> None:
    assert Logistic.for_classes(2).n_outputs == 1
    for n_classes in (3, 4096):
        with pytest.raises(InvalidDataError) as caught:
            Logistic.for_classes(n_classes)
        assert str(caught.value) == (
            f"y has {n_classes} classes; objective='logistic' takes two. Use objective='softmax'."
        )
        one = Softmax.for_classes(n_classes)
        assert (one.n_outputs, one.trees_per_round) == (n_classes, n_classes)


def test_kernels_see_codes_as_float32_whatever_baseline_and_margins() -> None:
    codes = np.array([2, 0, 4095], np.int32)
    for one in (Logistic(), Softmax(4096)):
        found = one.kernel_labels(codes, np.ones(3), float32([1], [2], [3]))
        assert_identical(found, float32(2, 0, 4095))

"""Gradients of logistic and softmax at chosen raw predictions."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from support.backends import BackendUnderTest
from support.class_runs import class_rows, gradients_of, prepare_classes
from support.forests import leaf_tree
from support.lockstep import in_lockstep
from support.runs import MANY_ROWS
from support.strategies import raw_predictions

from torchgbdt.core.backend import ComputeBackend

INF, NAN = np.inf, np.nan
E86 = float(np.float32(4.4737793e-38))  # exp(-86), where exponents are clamped


def gradients_at(backend: ComputeBackend, raw, codes, weights=None) -> tuple[list, list]:
    """g and h of each row; numbers for logistic, lists for softmax."""
    rows = class_rows(raw, codes, weights)
    n_outputs = rows.margins.shape[1]
    parts = gradients_of(prepare_classes(backend, rows), n_outputs)
    g, h = (part[:, 0] if n_outputs == 1 else part for part in parts)
    assert not np.signbit(g[g == 0]).any() and not np.signbit(h).any()
    return g.tolist(), h.tolist()


def float32s(*values: float) -> list[float]:
    return np.array(values, np.float32).tolist()


# ------------------------------------------------------------------------------------ logistic


def test_logistic_at_even_odds(backend: ComputeBackend) -> None:
    g, h = gradients_at(backend, [0.0, 0.0, -0.0], [0, 1, 1])
    assert g == [0.5, -0.5, -0.5] and h == [0.25] * 3


def test_logistic_values(backend: ComputeBackend) -> None:
    # sigmoid(1) = 0.73105858, sigmoid(-1) = 0.26894142, their product 0.19661193; sigmoid(-3.5) =
    # 0.02931223. The last bit is that of the portable exp.
    g, h = gradients_at(backend, [1.0, 1.0, -1.0, -1.0, -3.5, -3.5], [0, 1, 0, 1, 0, 1])
    near, far = float32s(0.7310586, -0.26894143), float32s(0.02931223, -0.97068775)
    assert g == [*near, -near[1], -near[0], *far]
    assert h == float32s(*[0.19661196] * 4, *[0.028453024] * 2)


def test_logistic_hessians_do_not_vanish_where_sigmoids_round_to_one(
    backend: ComputeBackend,
) -> None:
    # sigmoid(17) rounds to 1 in float32, so 1 - sigmoid would be 0
    g, h = gradients_at(backend, [17.0, 17.0, -17.0], [0, 1, 1])
    small = float(np.float32(4.1399378e-08))
    assert g == [1.0, -small, -1.0] and h == [small] * 3


@pytest.mark.parametrize("x", [86.0, 86.5, 1e6, 3e38, INF])
def test_logistic_saturates_at_86(backend: ComputeBackend, x: float) -> None:
    g, h = gradients_at(backend, [x, x, -x, -x], [0, 1, 0, 1])
    assert g == [1.0, -E86, E86, -1.0] and h == [E86] * 4


def test_logistic_with_weights(backend: ComputeBackend) -> None:
    # 1/4 * exp(-86) is below 2^-126: +0, though its sign was negative
    g, h = gradients_at(backend, [0.0, 0.0, 86.0, 86.0], [0, 1, 1, 1], [3.0, 0.5, 0.25, 2.0**100])
    assert g == [1.5, -0.25, 0.0, -E86 * 2.0**100]
    assert h == [0.75, 0.125, 0.0, E86 * 2.0**100]


# ------------------------------------------------------------------------------------- softmax


@pytest.mark.parametrize("x", [0.0, 5.0, -300.0, 3e38])
def test_softmax_of_equal_predictions(backend: ComputeBackend, x: float) -> None:
    g, h = gradients_at(backend, [[x] * 4] * 2, [0, 2])
    assert g == [[-0.75, 0.25, 0.25, 0.25], [0.25, 0.25, -0.75, 0.25]]
    assert h == [[0.375] * 4] * 2


def test_softmax_values(backend: ComputeBackend) -> None:
    # exp(-2) = 0.13533528: p = 0.78698604 0.10650698 0.10650698, and h = 2 p (1 - p)
    g, h = gradients_at(backend, [[3.0, 1.0, 1.0]] * 3, [0, 1, 2])
    big, small = float32s(0.78698605, 0.10650698)
    assert g[0] == [*float32s(-0.21301396), small, small]
    assert g[1] == [big, *float32s(-0.893493), small]
    assert g[2] == [big, small, *float32s(-0.893493)]
    assert h == [float32s(0.33527803, 0.19032648, 0.19032648)] * 3


def test_softmax_saturates_at_a_distance_of_86(backend: ComputeBackend) -> None:
    # t = 1, e^-86, e^-86: p of the largest rounds to 1, but 1 - p is the sum of the others
    g, h = gradients_at(backend, [[100.0, 0.0, -INF], [100.0, -3e38, 0.0]], [0, 1])
    assert g == [[-2 * E86, E86, E86], [1.0, -1.0, E86]]
    assert h == [[4 * E86, 2 * E86, 2 * E86]] * 2


def test_softmax_of_a_tie_for_the_largest(backend: ComputeBackend) -> None:
    # t = 1 and 1 and e^-86: p = 1/2 1/2 e^-86/2; the others of each of the tied classes sum to 1
    g, h = gradients_at(backend, [[7.0, 7.0, -90.0]] * 2, [0, 2])
    assert g == [[-0.5, 0.5, E86 / 2], [0.5, 0.5, -1.0]]
    assert h == [[0.5, 0.5, E86]] * 2


def test_softmax_shares_below_the_smallest_normal_are_plus_zero(backend: ComputeBackend) -> None:
    # five tied classes leave the sixth a share of e^-86 / 5 < 2^-126
    g, h = gradients_at(backend, [[0.0] * 5 + [-100.0]] * 2, [0, 5])
    fifth, rest = float32s(0.2, 0.8)
    assert g == [[-rest, fifth, fifth, fifth, fifth, 0.0], [fifth] * 5 + [-1.0]]
    product = float(np.float32(0.4) * np.float32(0.8))
    assert h == [[product] * 5 + [0.0]] * 2


def test_softmax_terms_are_summed_in_the_order_of_classes(backend: ComputeBackend) -> None:
    # The first 1 is left out. t = e^-17.1 = 3.7e-8 is less than half an ulp of 1: beside the second
    # 1 it gets lost twice, (1 + t) + t = 1; before it the two add up, (t + t) + 1 = 1 + 2^-23.
    # The sum of all terms rounds to 2 either way.
    low = -17.1
    g, h = gradients_at(backend, [[0.0, 0.0, low, low], [low, low, 0.0, 0.0]], [0, 2])
    assert (g[0][0], g[1][2]) == (-0.5, -(0.5 + 2.0**-24))
    assert h[0][:2] == [0.5] * 2 and h[1][2:] == [0.5 + 2.0**-24] * 2


def test_softmax_with_weights(backend: ComputeBackend) -> None:
    g, h = gradients_at(backend, [[0.0, 0.0], [90.0, 0.0]], [1, 0], [6.0, 2.0**-3])
    assert g == [[3.0, -3.0], [0.0, 0.0]]  # e^-86 / 8 is below 2^-126
    assert h == [[3.0, 3.0], [0.0, 0.0]]


# --------------------------------------------------------------------------------- predictions


def test_raw_predictions_are_baseline_margin_and_sum(backend: ComputeBackend) -> None:
    # Class 0: the baseline 2^24 + 3/4 is hi + lo with hi = 2^24, lo = 3/4; the margin 2^24 and the
    # sum 1 - 2^24 add up to 1. lo + 1 = 7/4, and 2^24 + 7/4 rounds to 2^24 + 2; (hi + lo) + 1 would
    # be 2^24, and so would hi + ((lo + margin) + sum). Class 1: 2^24 + (0 + 2), the same. Class 2:
    # 2^24, less by 2. So p = 1/(2 + e^-2) twice.
    rows = class_rows([[2.0**24, 0.0, 0.0]], [0])
    prepare_classes(backend, rows, baseline=[2.0**24 + 0.75, 2.0**24, 2.0**24])
    for value, output in ((1 - 2.0**24, 0), (2.0, 1), (0.0, 2)):
        backend.update_predictions(leaf_tree(np.array([value])), output)
    g, _ = gradients_of(backend, 3)
    assert g.tolist() == [float32s(-0.53168947, 0.4683105, 0.06337893)]


def test_all_trees_of_a_round_see_the_predictions_at_its_start(
    under_test: BackendUnderTest,
) -> None:
    backend = prepare_classes(in_lockstep(under_test), class_rows([[0.0, 0.0]], [0]))
    g, _ = gradients_of(backend, 2)
    assert g.tolist() == [[-0.5, 0.5]]
    for output, value in ((0, 90.0), (1, 0.0)):
        backend.update_predictions(leaf_tree(np.array([value])), output)
    g, _ = gradients_of(backend, 2)
    assert g.tolist() == [[-E86, E86]]


@pytest.mark.parametrize("raw", [[NAN, 0.0], [0.0, NAN], [INF, 0.0], [0.0, INF], [-INF, -INF]])
def test_softmax_of_predictions_that_are_no_numbers_is_not_finite(
    under_test: BackendUnderTest, raw: list[float]
) -> None:
    for code in (0, 1):
        rows = class_rows([[0.0, 0.0], raw], [0, code])
        backend = prepare_classes(in_lockstep(under_test), rows)
        # a class that is infinitely less likely has a gradient; the others do not
        flags = [backend.compute_gradients(output).finite for output in range(2)]
        assert not all(flags)


def test_logistic_of_a_nan_is_not_finite(under_test: BackendUnderTest) -> None:
    backend = prepare_classes(in_lockstep(under_test), class_rows([0.0, NAN], [0, 1]))
    assert not backend.compute_gradients(0).finite


def test_a_gradient_beyond_float32_is_not_finite(under_test: BackendUnderTest) -> None:
    rows = class_rows([0.0, 90.0], [0, 0], [1.0, 3.4e38])
    assert prepare_classes(in_lockstep(under_test), rows).compute_gradients(0).finite
    rows = class_rows([[0.0, 90.0]], [0], [3.4e38])
    assert prepare_classes(in_lockstep(under_test), rows).compute_gradients(0).finite


def test_extremes_are_those_of_the_output(backend: ComputeBackend) -> None:
    # p = 1/2 1/4 1/4 is no float32 softmax of these logarithms, so: shares 1/3 each, weights differ
    prepare_classes(backend, class_rows([[0.0] * 4] * 2, [0, 2], [1.0, 2.0]))
    extremes = [backend.compute_gradients(output) for output in range(4)]
    assert [one.largest.tolist() for one in extremes] == [
        [[0.75, 0.75]], [[0.5, 0.75]], [[1.5, 0.75]], [[0.5, 0.75]]
    ]  # fmt: skip
    assert {one.smallest_hessian for one in extremes} == {0.375}


def test_no_rows_have_no_extremes(under_test: BackendUnderTest) -> None:
    for n_outputs in (1, 3):
        rows = class_rows(np.zeros((0, n_outputs)), [])
        backend = prepare_classes(in_lockstep(under_test), rows)
        for output in range(n_outputs):
            extremes = backend.compute_gradients(output)
            assert extremes.largest.tolist() == [[0.0, 0.0]]
            assert (extremes.smallest_hessian, extremes.finite) == (0.0, True)


# ------------------------------------------------------------------------------ many and random


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_outputs", [1, 2, 3, 30])
def test_gradients_of_any_number_of_rows(
    under_test: BackendUnderTest, n_outputs: int, weighted: bool
) -> None:
    rng = np.random.default_rng(n_outputs)
    for n_rows in (1, 2, 3, 7, 8, 9, 31, 33, 100):
        raw = rng.normal(size=(n_rows, n_outputs)) * 10.0 ** rng.uniform(-3, 3, (n_rows, 1))
        weights = 10.0 ** rng.uniform(-6, 6, n_rows) if weighted else None
        codes = rng.integers(0, max(n_outputs, 2), n_rows)
        backend = prepare_classes(in_lockstep(under_test), class_rows(raw, codes, weights))
        gradients_of(backend, n_outputs)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_gradients_of_many_rows(under_test: BackendUnderTest, n_outputs: int) -> None:
    rng = np.random.default_rng(n_outputs)
    raw = (5 * rng.normal(size=(50, n_outputs)))[rng.integers(0, 50, MANY_ROWS)]
    codes = rng.integers(0, max(n_outputs, 2), MANY_ROWS)
    rows = class_rows(raw, codes, rng.random(MANY_ROWS))
    gradients_of(prepare_classes(in_lockstep(under_test), rows), n_outputs)


@hypothesis.given(data=st.data(), n_outputs=st.sampled_from([1, 2, 3, 6]))
def test_any_predictions_and_weights(
    under_test: BackendUnderTest, data: st.DataObject, n_outputs: int
) -> None:
    raw, codes, weights = data.draw(raw_predictions(n_outputs))
    backend = prepare_classes(in_lockstep(under_test), class_rows(raw, codes, weights))
    for output in range(n_outputs):
        backend.compute_gradients(output)

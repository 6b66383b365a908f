"""Gradients: extremes for the scales, rounding to fixed point, and root totals."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from support.backends import BackendUnderTest
from support.forests import leaf_tree
from support.lockstep import LockstepBackend, in_lockstep
from support.runs import MANY_ROWS, integer_thresholds, prepare, run_rows, run_settings
from support.strategies import gradients

from torchgbdt.core.backend import ComputeBackend
from torchgbdt.core.extremes import GradientExtremes
from torchgbdt.core.fixed_point import GRADIENT_BITS, HESSIAN_BITS, scale_exponent

NAN, INF = np.nan, np.inf
NORMAL = 2.0**-126
SUBNORMAL = 2.0**-127


def computed(
    backend: ComputeBackend, labels: list[float], weights: list[float] | None = None
) -> GradientExtremes:
    """Gradients at prediction 0, of a run with these centred labels."""
    y = np.array(labels, np.float32)
    w = None if weights is None else np.array(weights, np.float32)
    rows = run_rows(np.zeros((y.size, 1), np.uint8), y, w)
    backend.prepare(rows, [], run_settings(integer_thresholds([1]), constant=w is None))
    backend.sample_rows(0)
    return backend.compute_gradients(0)


def loaded(backend: ComputeBackend, g: np.ndarray, h: np.ndarray) -> GradientExtremes:
    prepare(backend, np.zeros((len(g), 1)), [1], g.shape[1])
    return backend.load_gradients(g, h)


def column(values: list[float]) -> np.ndarray:
    return np.array(values, np.float32)[:, None]


def scales_of(extremes: GradientExtremes) -> np.ndarray:
    bits = (GRADIENT_BITS, HESSIAN_BITS)
    return np.array(
        [
            [scale_exponent(value, b) for value, b in zip(row, bits, strict=True)]
            for row in extremes.largest
        ],
        np.int64,
    )


def test_squared_error_without_weights(backend: ComputeBackend) -> None:
    extremes = computed(backend, [1.0, -2.5, 0.0])
    g, h = backend.read_gradients()
    assert g.tolist() == [[-1.0], [2.5], [0.0]] and h.tolist() == [[1.0]] * 3
    assert extremes.largest.tolist() == [[2.5, 1.0]]
    assert (extremes.smallest_hessian, extremes.finite) == (1.0, True)


def test_squared_error_with_weights(backend: ComputeBackend) -> None:
    extremes = computed(backend, [1.0, -2.0], [0.5, 4.0])
    g, h = backend.read_gradients()
    assert g.tolist() == [[-0.5], [8.0]] and h.tolist() == [[0.5], [4.0]]
    assert extremes.largest.tolist() == [[8.0, 4.0]] and extremes.smallest_hessian == 0.5


def test_a_gradient_that_becomes_subnormal_is_plus_zero(backend: ComputeBackend) -> None:
    computed(backend, [2.0**-100, -(2.0**-100)], [2.0**-27, 2.0**-26])
    g, _ = backend.read_gradients()
    assert g.tolist() == [[0.0], [NORMAL]] and not np.signbit(g[0, 0])


def test_a_residual_that_becomes_subnormal_is_zero_before_its_weight(
    backend: ComputeBackend,
) -> None:
    # 2^-126 - 1.5 * 2^-126 = -2^-127; times 2^10 it would count
    computed(backend, [1.5 * NORMAL], [1024.0])
    backend.update_predictions(leaf_tree(np.array([NORMAL])), 0)
    backend.compute_gradients(0)
    assert backend.read_gradients()[0].view(np.uint32).tolist() == [[0]]


def test_a_gradient_beyond_float32_is_not_finite(under_test: BackendUnderTest) -> None:
    assert not computed(in_lockstep(under_test), [1.0, 1e38], [1.0, 1e10]).finite


def test_no_rows_have_no_extremes(under_test: BackendUnderTest) -> None:
    backend = in_lockstep(under_test)
    extremes = computed(backend, [])
    assert extremes.largest.tolist() == [[0.0, 0.0]]
    assert (extremes.smallest_hessian, extremes.finite) == (0.0, True)
    assert backend.round_gradients(np.zeros((1, 2), np.int64)).tolist() == [[0, 0]]


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
@pytest.mark.parametrize("where", ["gradient", "hessian"])
def test_one_bad_number_clears_the_finite_flag(
    backend: ComputeBackend, bad: float, where: str
) -> None:
    g, h = np.ones((999, 2), np.float32), np.ones((999, 2), np.float32)
    assert loaded(backend, g, h).finite
    (g if where == "gradient" else h)[700, 1] = bad
    assert not backend.load_gradients(g, h).finite


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_extremes_of_any_number_of_rows(under_test: BackendUnderTest, n_outputs: int) -> None:
    rng = np.random.default_rng(5)
    for n_rows in range(1, 70):
        g = rng.normal(size=(n_rows, n_outputs)).astype(np.float32)
        h = rng.random((n_rows, n_outputs)).astype(np.float32)
        for where in {0, n_rows // 2, n_rows - 1}:
            g[where], h[where] = -1000 - where, 10 + where
        loaded(in_lockstep(under_test), g, h)


def test_subnormal_gradients_and_hessians_are_loaded_as_zero(backend: ComputeBackend) -> None:
    extremes = loaded(backend, column([SUBNORMAL, -SUBNORMAL, -0.0]), column([SUBNORMAL, 0, -0.0]))
    g, h = backend.read_gradients()
    assert not g.any() and not h.any() and not np.signbit(g).any() and not np.signbit(h).any()
    assert extremes.largest.tolist() == [[0.0, 0.0]]
    backend.round_gradients(np.array([[120, 120]]))
    assert not backend.read_fixed_point()[1].any()  # a Hessian of zero stays zero


def test_the_smallest_hessian_is_that_of_any_output(backend: ComputeBackend) -> None:
    h = np.array([[1.0, 2.0], [3.0, -0.5], [1.0, 1.0]], np.float32)
    assert loaded(backend, np.zeros((3, 2), np.float32), h).smallest_hessian == -0.5


def test_extremes_are_per_output(backend: ComputeBackend) -> None:
    g = np.array([[1, -7, 0], [-3, 2, 0]], np.float32)
    h = np.array([[1, 0, 5], [2, 0, 4]], np.float32)
    assert loaded(backend, g, h).largest.tolist() == [[3.0, 2.0], [7.0, 0.0], [0.0, 5.0]]


@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_of_many_rows(under_test: BackendUnderTest, weighted: bool) -> None:
    rng = np.random.default_rng(3)
    labels = rng.normal(size=MANY_ROWS).tolist()
    backend = in_lockstep(under_test)
    extremes = computed(backend, labels, rng.random(MANY_ROWS).tolist() if weighted else None)
    backend.round_gradients(scales_of(extremes))


def test_loaded_gradients_of_many_rows(under_test: BackendUnderTest) -> None:
    g = np.random.default_rng(4).normal(size=(MANY_ROWS, 2)).astype(np.float32)
    backend = in_lockstep(under_test)
    backend.round_gradients(scales_of(loaded(backend, g, np.abs(g))))


@pytest.mark.parametrize("order", ["F order", "strided"])
def test_gradients_of_any_layout_are_loaded(under_test: BackendUnderTest, order: str) -> None:
    rng = np.random.default_rng(1)
    wide = rng.random((60, 6)).astype(np.float32)
    g, h = (wide[:, :3], wide[:, 3:]) if order == "strided" else map(np.asfortranarray, (
        wide[:, :3], wide[:, 3:]
    ))  # fmt: skip
    loaded(in_lockstep(under_test), g, h)


def test_gradients_are_copied_when_loaded(backend: ComputeBackend) -> None:
    g, h = column([1.0, 2.0]), column([1.0, 1.0])
    loaded(backend, g, h)
    g[:] = 9
    assert backend.read_gradients()[0].tolist() == [[1.0], [2.0]]


def test_rounding_is_to_nearest_and_ties_go_to_even(backend: ComputeBackend) -> None:
    g = column([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.75, -0.75, 2.0**30])
    h = column([0.25, 0.5, 1.5, 2.5, 0.0, NORMAL, 1.0, 3.49, 2.0**29])
    loaded(backend, g, h)
    totals = backend.round_gradients(np.array([[0, 0]]))
    q_g, q_h = (q[:, 0].tolist() for q in backend.read_fixed_point())
    assert q_g == [0, 2, 2, 0, -2, -2, 1, -1, 2**30]
    assert q_h == [1, 1, 2, 2, 0, 1, 1, 3, 2**29]  # a positive Hessian is at least 1
    assert totals.tolist() == [[sum(q_g), sum(q_h)]]


@pytest.mark.parametrize(
    "largest", [NORMAL, 2.0**-90, 1.0, 3.4e38], ids=["smallest", "tiny", "one", "huge"]
)
def test_scales_from_one_end_of_float32_to_the_other(
    under_test: BackendUnderTest, largest: float
) -> None:
    g = np.random.default_rng(2).uniform(-largest, largest, (400, 1)).astype(np.float32)
    g[0], h = largest, np.abs(g)
    backend = in_lockstep(under_test)
    backend.round_gradients(scales_of(loaded(backend, g, h)))
    q_g, q_h = backend.read_fixed_point()
    assert np.abs(q_g).max() <= 2**30 and q_h.max() <= 2**29


def test_totals_exceed_int32(backend: ComputeBackend) -> None:
    g, h = np.full((64, 1), -1, np.float32), np.full((64, 1), 1, np.float32)
    loaded(backend, g, h)
    assert backend.round_gradients(np.array([[30, 29]])).tolist() == [[-(2**36), 2**35]]


@hypothesis.given(data=st.data(), n_outputs=st.sampled_from([1, 3]))
def test_any_gradients_round_like_the_reference(
    under_test: BackendUnderTest, data: st.DataObject, n_outputs: int
) -> None:
    g, h = data.draw(gradients(data.draw(st.integers(1, 30)), n_outputs))
    backend: LockstepBackend = in_lockstep(under_test)
    extremes = loaded(backend, g, h)
    backend.round_gradients(scales_of(extremes))
    assert backend.compared["fixed point"] == 1

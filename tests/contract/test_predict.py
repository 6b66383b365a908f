"""``predict`` and ``predict_leaves`` on raw data: any dtype and layout, outside a run."""

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from support.backends import BackendUnderTest
from support.exact import assert_identical
from support.forests import chain_tree, forest_of, leaf_tree, random_forest, tree_of
from support.lockstep import in_lockstep
from support.matrices import DTYPES, layouts, matrix_of, numbers
from support.runs import MANY_ROWS
from support.strategies import matrices

from torchgbdt.core.backend import ComputeBackend
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.tree import Forest

ROWS = 500


def pools(values: np.ndarray) -> list[list[float]]:
    """Thresholds that are values of the column, so that rows lie on the border."""
    return [np.unique(column[~np.isnan(column)]).tolist() for column in values.T]


def predict_both(
    backend: ComputeBackend, forest: Forest, matrix: HostMatrix, n_outputs: int = 1
) -> tuple[np.ndarray, np.ndarray]:
    sums = np.zeros((matrix.n_rows, n_outputs), np.float32)
    leaves = np.full((matrix.n_rows, forest.n_trees), -7, np.int32)
    backend.predict(forest, matrix, sums)
    backend.predict_leaves(forest, matrix, leaves)
    return sums, leaves


@pytest.mark.parametrize("dtype", DTYPES)
def test_numbers_of_any_dtype(under_test: BackendUnderTest, dtype: str) -> None:
    rng = np.random.default_rng(1)
    values = numbers(dtype, rng, (ROWS, 4))
    forest = random_forest(rng, pools(values))
    predict_both(in_lockstep(under_test), forest, matrix_of(values, dtype))


def test_many_rows(under_test: BackendUnderTest) -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(MANY_ROWS // 8, 2))
    predict_both(in_lockstep(under_test), random_forest(rng, pools(values)), HostMatrix(values))


@pytest.mark.parametrize("layout", layouts(np.zeros((2, 2))))
def test_any_layout_predicts_like_c_order(backend: ComputeBackend, layout: str) -> None:
    rng = np.random.default_rng(2)
    values = numbers("float32", rng, (ROWS, 3))
    forest = random_forest(rng, pools(values))
    views = layouts(values.astype(np.float32))
    found = predict_both(backend, forest, HostMatrix(views[layout]))
    assert_identical(found, predict_both(backend, forest, HostMatrix(values)))


def test_three_outputs_per_leaf(under_test: BackendUnderTest) -> None:
    rng = np.random.default_rng(3)
    values = rng.normal(size=(ROWS, 3))
    forest = random_forest(rng, pools(values), n_outputs=3)
    predict_both(in_lockstep(under_test), forest, HostMatrix(values), 3)


def test_one_tree_per_column_and_round(under_test: BackendUnderTest) -> None:
    rng = np.random.default_rng(4)
    values = rng.normal(size=(ROWS, 3))
    forest = random_forest(rng, pools(values), n_trees=6)
    predict_both(in_lockstep(under_test), forest, HostMatrix(values), 3)


def test_trees_add_to_the_given_sums_in_tree_order(backend: ComputeBackend) -> None:
    # 2^24 + 1 + 1 in float32 is 2^24 from left to right, and 2^24 + 2 in any other order
    forest = forest_of([leaf_tree(np.array([1.0]))] * 2, 1)
    sums = np.full((3, 1), 2.0**24, np.float32)
    backend.predict(forest, HostMatrix(np.zeros((3, 1))), sums)
    assert sums.tolist() == [[2.0**24]] * 3


def test_each_sum_is_flushed(backend: ComputeBackend) -> None:
    a, b = 1.5 * 2.0**-126, -(2.0**-126)  # their sum is 2^-127: it becomes +0 before the third tree
    leaves = [leaf_tree(np.array([v])) for v in (a, b, 2.0**-126)]
    sums = np.zeros((1, 1), np.float32)
    backend.predict(forest_of(leaves, 1), HostMatrix(np.zeros((1, 1))), sums)
    assert sums.tolist() == [[2.0**-126]]


def test_no_trees_add_nothing(backend: ComputeBackend) -> None:
    sums, leaves = predict_both(backend, forest_of([], 2), HostMatrix(np.zeros((4, 2))))
    assert not sums.any() and leaves.shape == (4, 0)


def test_no_rows(backend: ComputeBackend) -> None:
    forest = forest_of([chain_tree(3)], 1)
    sums, leaves = predict_both(backend, forest, HostMatrix(np.zeros((0, 1))))
    assert sums.shape == (0, 1) and leaves.shape == (0, 1)


def test_missing_rows_follow_the_flag_and_infinity_is_a_value(backend: ComputeBackend) -> None:
    values = np.array([[0], [10], [20]], np.float32)
    X = HostMatrix(np.array([[np.nan], [np.inf], [-np.inf]]))
    for missing_left, expected in ((True, [[1], [2], [1]]), (False, [[2], [2], [1]])):
        tree = tree_of(3, [0], [0], [0], [1e308], [missing_left], values)
        assert predict_both(backend, forest_of([tree], 1), X)[1].tolist() == expected


def test_a_threshold_of_infinity_splits_values_from_missing_rows(backend: ComputeBackend) -> None:
    tree = tree_of(3, [0], [0], [0], [np.inf], [False], np.zeros((3, 1), np.float32))
    X = HostMatrix(np.array([[np.nan], [np.inf], [0.0]]))
    assert predict_both(backend, forest_of([tree], 1), X)[1].tolist() == [[2], [1], [1]]


def test_float32_rows_between_a_threshold_and_its_float32_neighbours(
    backend: ComputeBackend,
) -> None:
    t = 1.0 + 2.0**-40  # no float32: the largest float32 <= t is 1
    tree = tree_of(3, [0], [0], [0], [t], [False], np.zeros((3, 1), np.float32))
    X = np.array([[1.0], [np.nextafter(np.float32(1), np.float32(2))]], np.float32)
    for dtype in (np.float32, np.float64):
        leaves = predict_both(backend, forest_of([tree], 1), HostMatrix(X.astype(dtype)))[1]
        assert leaves.tolist() == [[1], [2]]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_subnormal_thresholds_and_signed_zeros(backend: ComputeBackend, dtype: str) -> None:
    tiny = float(np.finfo(dtype).smallest_subnormal)
    X = np.array([[-tiny], [-0.0], [0.0], [tiny], [2 * tiny]]).astype(dtype)
    for threshold, n_left in ((-tiny, 1), (0.0, 3), (-0.0, 3), (tiny, 4)):
        tree = tree_of(3, [0], [0], [0], [threshold], [False], np.zeros((3, 1), np.float32))
        leaves = predict_both(backend, forest_of([tree], 1), HostMatrix(X))[1]
        assert np.count_nonzero(leaves == 1) == n_left


def test_a_chain_of_two_hundred_splits(backend: ComputeBackend) -> None:
    X = np.arange(201.0)[:, None]
    sums, leaves = predict_both(backend, forest_of([chain_tree(200)], 1), HostMatrix(X))
    # split i is node 2i (the root is node 0); its left child, a leaf, is node 2i + 1
    expected = [*range(1, 400, 2), 400]
    assert leaves[:, 0].tolist() == expected and sums[:, 0].tolist() == expected


@hypothesis.given(values=matrices(), seed=st.integers(0, 2**32))
def test_any_values_in_any_forest(
    under_test: BackendUnderTest, values: np.ndarray, seed: int
) -> None:
    thresholds = [[*pool, 0.0] for pool in pools(values)]
    forest = random_forest(np.random.default_rng(seed), thresholds, 4)
    predict_both(in_lockstep(under_test), forest, HostMatrix(values))

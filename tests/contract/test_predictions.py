"""``update_predictions`` and ``read_predictions``: sums of leaf values, by bins, in a run."""

import numpy as np
import pytest
from support.backends import BackendUnderTest
from support.forests import chain_tree, leaf_tree, random_tree, tree_of
from support.lockstep import in_lockstep
from support.runs import MANY_ROWS, integer_thresholds, run_rows, run_settings

from torchgbdt.core.backend import ComputeBackend

N_VALUE_BINS = [1, 6, 40]


def random_bins(n_rows: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.integers(0, n + 1, n_rows) for n in N_VALUE_BINS])


def prepared(backend: ComputeBackend, *bins: np.ndarray, n_outputs: int = 1, n_value_bins=None):
    thresholds = integer_thresholds(N_VALUE_BINS if n_value_bins is None else n_value_bins)
    train, *valids = (run_rows(one) for one in bins)
    backend.prepare(train, valids, run_settings(thresholds, n_outputs))
    return [thresholds.of_feature(f).tolist() for f in range(thresholds.n_features)]


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("n_rows", [1, 40, MANY_ROWS])
def test_every_data_set_gets_every_tree(
    under_test: BackendUnderTest, n_rows: int, n_outputs: int
) -> None:
    backend, rng = in_lockstep(under_test), np.random.default_rng(1)
    data = (random_bins(n_rows, 2), random_bins(9, 3), random_bins(0, 4))
    thresholds = prepared(backend, *data, n_outputs=n_outputs)
    for n_splits in (1, 6, 25):
        backend.update_predictions(random_tree(rng, thresholds, n_outputs, n_splits), 0)
    assert [backend.read_predictions(i).any() for i in range(3)] == [True, True, False]


def test_trees_of_one_value_add_to_their_output(under_test: BackendUnderTest) -> None:
    backend = in_lockstep(under_test)
    prepared(backend, random_bins(5, 1), n_outputs=3)
    for output in (2, 0, 2):
        backend.update_predictions(leaf_tree(np.array([1.0 + output])), output)
    assert backend.read_predictions(0).tolist() == [[1.0, 0.0, 6.0]] * 5


def test_predictions_start_at_plus_zero(backend: ComputeBackend) -> None:
    prepared(backend, random_bins(5, 1), random_bins(2, 2))
    for dataset, n_rows in ((0, 5), (1, 2)):
        predictions = backend.read_predictions(dataset)
        assert predictions.shape == (n_rows, 1) and predictions.dtype == np.float32
        assert not predictions.view(np.uint32).any()


def test_a_sum_that_becomes_subnormal_is_plus_zero(backend: ComputeBackend) -> None:
    prepared(backend, random_bins(3, 1))
    backend.update_predictions(leaf_tree(np.array([-1.5 * 2.0**-126])), 0)
    backend.update_predictions(leaf_tree(np.array([2.0**-126])), 0)
    assert not backend.read_predictions(0).view(np.uint32).any()


def test_a_sum_may_overflow_without_an_error(under_test: BackendUnderTest) -> None:
    backend = in_lockstep(under_test)
    prepared(backend, random_bins(3, 1))
    for _ in range(2):
        backend.update_predictions(leaf_tree(np.array([3e38])), 0)
    assert np.isposinf(backend.read_predictions(0)).all()


@pytest.mark.parametrize("missing_left", [True, False])
def test_missing_rows_follow_the_flag(backend: ComputeBackend, missing_left: bool) -> None:
    # bins 0, 1, 2 of three value bins, and 3, the missing one; split after bin 1
    prepared(backend, np.array([[0], [1], [2], [3]]), n_value_bins=[3])
    values = np.array([[0], [10], [20]], np.float32)
    backend.update_predictions(tree_of(3, [0], [0], [1], [1.5], [missing_left], values), 0)
    missing = 10.0 if missing_left else 20.0
    assert backend.read_predictions(0)[:, 0].tolist() == [10.0, 10.0, 20.0, missing]


def test_a_deep_chain(under_test: BackendUnderTest) -> None:
    backend = in_lockstep(under_test)
    prepared(backend, np.arange(255)[:, None], n_value_bins=[255])
    backend.update_predictions(chain_tree(200), 0)
    assert len(np.unique(backend.read_predictions(0))) == 201


def test_what_is_read_is_a_copy(backend: ComputeBackend) -> None:
    prepared(backend, random_bins(3, 1))
    backend.read_predictions(0)[:] = 5
    assert not backend.read_predictions(0).any()

"""Where continued training starts: sums of a model's leaf values, from X or from bins."""

from typing import Any

import numpy as np
import pytest
from core.fitting import fit
from core.hand_made import leaf, model, tree
from core.small_runs import binned
from hypothesis import example, given
from hypothesis import strategies as st
from support.exact import assert_identical
from support.forests import forest_of, leaf_tree, random_forest, random_tree
from support.strategies import matrices

from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.core.continuation import BinRepresentatives, check_continues, start_sums
from torchgbdt.core.dataset import Dataset
from torchgbdt.core.errors import InvalidDataError, InvalidParameterError
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.model import Model
from torchgbdt.core.run_data import RawData
from torchgbdt.core.settings import TrainerSettings
from torchgbdt.core.tree import Forest

NAN, INF = float("nan"), float("inf")


def data_set(X: Any, max_bins: int = 256, weights: Any = None) -> Dataset:
    X = np.asarray(X, np.float64)
    return binned(RawData(HostMatrix(X), np.zeros(X.shape[0]), weights), max_bins)


def thresholds_of(data: Dataset) -> list[list[float]]:
    return [data.thresholds.of_feature(f).tolist() for f in range(data.n_features)]


def model_of(forest: Forest, n_features: int, n_outputs: int = 1) -> Model:
    per_round = n_outputs // forest.n_outputs
    zeros = np.zeros(n_outputs)
    return model(forest=forest, n_features=n_features, baseline=zeros, trees_per_round=per_round)


def sums_of(one: Model, data: Any) -> np.ndarray:
    return start_sums(one, data, OracleBackend(), "X")


# ------------------------------------------------------------------------------ representatives


def test_a_bin_is_represented_by_its_largest_value() -> None:
    # Thresholds 0.5 and 5: bins up to 0.5, up to 5, and beyond; all of the second column misses.
    data = data_set([[0, NAN], [1, NAN], [9, NAN], [NAN, NAN]])
    source = BinRepresentatives(data)
    assert (source.n_rows, source.n_features) == (4, 2)
    assert_identical(source.column(0, 0, 4), np.array([0.5, 5, INF, NAN]))
    assert_identical(source.column(0, 1, 3), np.array([5, INF]))
    assert_identical(source.column(1, 0, 4), np.full(4, NAN))
    rows = np.array([3, 0, 0])
    expected = np.array([[NAN, NAN], [0.5, NAN], [0.5, NAN]])
    assert_identical(source.sample(rows, slice(0, 2)), expected)
    assert_identical(source.sample(rows, slice(0, 1)), expected[:, :1].copy())
    assert_identical(source.sample(rows[:0], slice(0, 2)), expected[:0])


@given(matrices(), st.sampled_from([3, 4, 256]), st.integers(0, 2**32 - 1))
@example(np.array([[-INF], [INF], [NAN], [0.0], [-0.0], [1e300]]), 256, 0)
@example(np.array([[5e-324, NAN], [-5e-324, 1.0]]), 256, 1)
def test_trees_send_a_bin_where_they_send_its_values(
    X: np.ndarray, max_bins: int, seed: int
) -> None:
    data = data_set(X, max_bins)
    forest = random_forest(np.random.default_rng(seed), thresholds_of(data))
    one = model_of(forest, data.n_features)
    assert_identical(sums_of(one, data), sums_of(one, HostMatrix(X)))
    leaves = [np.zeros((X.shape[0], forest.n_trees), np.int32) for _ in range(2)]
    OracleBackend().predict_leaves(forest, HostMatrix(X), leaves[0])
    OracleBackend().predict_leaves(forest, BinRepresentatives(data), leaves[1])
    assert_identical(leaves[1], leaves[0])


# ------------------------------------------------------------------------------------------ sums


def test_sums_are_those_of_the_trees_without_the_baseline() -> None:
    one = model()  # a tree twice, and a leaf of 0.5; baseline 0.1
    X = np.array([[0, 0.5], [7, 0.75], [NAN, 9], [NAN, NAN]])
    assert_identical(
        sums_of(one, HostMatrix(X)), np.array([[-2.5], [1], [4.5], [-2.5]], np.float32)
    )


def test_sums_of_several_outputs_have_a_column_each() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 2))
    data = data_set(X)
    trees = [random_tree(rng, thresholds_of(data)) for _ in range(6)]
    found = sums_of(model_of(forest_of(trees, 2), 2, 3), data)
    assert found.shape == (20, 3)
    for output in range(3):
        own = forest_of(trees[output::3], 2)
        assert_identical(found[:, [output]], sums_of(model_of(own, 2), HostMatrix(X)))
    together = forest_of([leaf_tree(np.array([1, 2, 3]))], 2, 3)
    assert sums_of(model_of(together, 2, 3), data).tolist() == [[1, 2, 3]] * 20


def test_sums_of_a_data_set_are_of_the_rows_that_count() -> None:
    data = data_set(np.arange(4)[:, None], weights=np.array([1, 0, 0, 1]))
    one = model_of(forest_of([leaf(2.0)], 1), 1)
    assert_identical(sums_of(one, data), np.full((2, 1), np.float32(2)))
    assert_identical(sums_of(one, HostMatrix(np.zeros((4, 1)))), np.full((4, 1), np.float32(2)))


def test_a_model_without_trees_starts_at_zero() -> None:
    one = model_of(forest_of([], 1), 1)
    assert_identical(sums_of(one, data_set([[1], [2]])), np.zeros((2, 1), np.float32))


def test_a_rank_without_rows_has_no_sums() -> None:
    data = data_set([[0, 0], [1, 1]])
    none = Dataset(**{**vars(data), "bins": data.bins[:0], "labels": data.labels[:0]})
    one = model_of(forest_of([leaf(1.0)], 2), 2)
    for source in (none, HostMatrix(np.zeros((0, 2)))):
        assert_identical(sums_of(one, source), np.zeros((0, 1), np.float32))


# ------------------------------------------------------------------------------------ thresholds


def refusal(work: Any, *arguments: Any) -> str:
    with pytest.raises((InvalidDataError, InvalidParameterError)) as caught:
        work(*arguments)
    return str(caught.value)


def test_a_data_set_that_is_not_cut_where_the_model_splits_is_refused_by_name() -> None:
    one = model()  # splits feature 1 at 0.5, and values of feature 0 from missing ones
    sums_of(one, data_set([[0, 0], [1, 1]]))
    message = refusal(start_sums, one, data_set([[0, 0], [1, 2]]), OracleBackend(), "eval_set[3]")
    assert message == (
        "eval_set[3]: init_model splits feature 1 at 0.5, where this Dataset's bins are not cut. "
        "Go on with the Dataset it was trained on, or pass X and y themselves."
    )
    assert "splits feature 1 at 0.5" in refusal(sums_of, one, data_set([[0, 3], [0, 3]]))


def test_another_data_set_with_those_cuts_and_more_is_accepted() -> None:
    X = np.array([[0.0, -1], [1, 0], [2, 1], [NAN, 2], [5, NAN]])
    assert fit(X).of_feature(1).tolist() == [-0.5, 0.5, 1.5]
    assert_identical(sums_of(model(), data_set(X)), sums_of(model(), HostMatrix(X)))


def test_cuts_of_another_feature_do_not_count() -> None:
    assert "splits feature 1 at 0.5" in refusal(sums_of, model(), data_set([[0, 7], [1, 7]]))


def test_zeros_of_either_sign_are_one_cut() -> None:
    nodes = tree(threshold=np.array([-0.0, 0, INF, 0, 0]))
    data = data_set([[0, -1], [1, 1]])
    assert data.thresholds.of_feature(1).tolist() == [0.0]
    sums_of(model(forest=Forest.from_trees([nodes], 1)), data)


# ------------------------------------------------------------------------------- what must match


def test_a_run_goes_on_with_the_same_objective_and_features() -> None:
    named = model(feature_names=("a", "b"))
    for one, names in ((model(), None), (model(), ("a", "b")), (named, None), (named, ("a", "b"))):
        check_continues(one, TrainerSettings(), 2, names)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            (TrainerSettings(objective="logistic"), 2, None),
            "init_model was trained with objective='squared_error'; found objective='logistic'. "
            "Use the same one.",
        ),
        (
            (TrainerSettings(baseline=0.5), 2, None),
            "baseline=0.5 cannot be set with init_model, whose baseline is kept. Leave it out.",
        ),
        (
            (TrainerSettings(), 3, None),
            "init_model has 2 features; X has 3 columns. Pass the same columns in the same order.",
        ),
        (
            (TrainerSettings(), 2, ("b", "a")),
            "init_model has the features ['a', 'b']; X has ['b', 'a']. Pass the same columns in "
            "the same order.",
        ),
    ],
)
def test_a_run_does_not_go_on_with_others(arguments: tuple[Any, ...], message: str) -> None:
    assert refusal(check_continues, model(feature_names=("a", "b")), *arguments) == message

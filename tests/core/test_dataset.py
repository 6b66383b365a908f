"""Binned data sets: zero weights dropped at the door, subsets that share their thresholds."""

import numpy as np
import pytest
from core.fitting import fit
from hypothesis import given
from hypothesis import strategies as st
from support.exact import assert_identical
from support.ranks import run_ranks

from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.core import dataset as dataset_module
from torchgbdt.core.communicator import SINGLE_RANK, Communicator
from torchgbdt.core.dataset import Dataset, quantize
from torchgbdt.core.errors import InvalidDataError
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.settings import BinningSettings

SETTINGS = BinningSettings(max_bins=8, random_state=3)


def make(
    X: np.ndarray,
    y: np.ndarray | None = None,
    weights: np.ndarray | None = None,
    communicator: Communicator = SINGLE_RANK,
    **more: object,
) -> Dataset:
    return quantize(
        HostMatrix(X),
        y,
        weights,
        SETTINGS,
        OracleBackend().bin_features,
        communicator=communicator,
        **more,
    )


def small(weights: list[float] | None = None) -> Dataset:
    """Six rows of one feature; row i has bin i and label 10 * i."""
    row_weights = None if weights is None else np.array(weights, np.float32)
    x = np.arange(6.0)
    return make(x[:, None], 10 * x, row_weights, feature_names=("x",))


# ------------------------------------------------------------------------------------- quantize


def test_every_row_counts_without_weights() -> None:
    data = small()
    assert data.bins.tolist() == [[0], [1], [2], [3], [4], [5]]
    assert data.bins.dtype == np.uint8
    assert data.labels.tolist() == [0, 10, 20, 30, 40, 50]
    assert data.weights is None
    assert data.kept_rows is None
    assert (data.n_rows, data.n_input_rows, data.n_features) == (6, 6, 1)
    assert data.settings is SETTINGS
    assert data.feature_names == ("x",)


def test_positive_weights_drop_no_row() -> None:
    data = small([1, 2, 3, 4, 5, 6])
    assert data.kept_rows is None
    assert data.weights.tolist() == [1, 2, 3, 4, 5, 6]


def test_rows_of_weight_zero_are_dropped_and_the_others_numbered() -> None:
    data = small([0, 2, 0, 0, 5, 6])
    assert data.kept_rows.tolist() == [1, 4, 5]
    assert data.labels.tolist() == [10, 40, 50]
    assert data.weights.tolist() == [2, 5, 6]
    assert (data.n_rows, data.n_input_rows) == (3, 6)
    assert data.thresholds.values.tolist() == [2.5, 4.5]  # between 1, 4 and 5
    assert data.bins.tolist() == [[0], [1], [2]]


@pytest.mark.parametrize(
    "y",
    [np.array(["b", "a", "ccc"]), np.array([7, -1, 7], np.int16), np.array([True, False, True])],
)
def test_labels_of_any_kind_stay_with_their_rows(y: np.ndarray) -> None:
    data = make(np.arange(3.0)[:, None], y, np.array([1, 0, 2], np.float32))
    assert (data.labels.dtype, data.labels.tolist()) == (y.dtype, y[[0, 2]].tolist())
    subset = data.subset(np.array([2, 2, 0]))
    assert (subset.labels.dtype, subset.labels.tolist()) == (y.dtype, y[[2, 2, 0]].tolist())


def test_data_without_labels_can_be_quantized() -> None:
    assert make(np.ones((2, 1))).labels is None
    assert make(np.ones((2, 1)), None, np.array([0, 1], np.float32)).n_rows == 1


def test_of_kept_rows_picks_what_belongs_to_rows_that_count() -> None:
    per_row = np.arange(6)
    assert small([0, 2, 0, 0, 5, 6]).of_kept_rows(per_row).tolist() == [1, 4, 5]
    assert small().of_kept_rows(per_row).tolist() == [0, 1, 2, 3, 4, 5]


def test_zero_weight_rows_leave_no_trace() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.normal(size=300)
    weights = rng.integers(0, 3, 300).astype(np.float32)
    kept = weights > 0
    found, expected = make(X, y, weights), make(X[kept], y[kept], weights[kept])
    for name in ("bins", "thresholds", "labels", "weights"):
        assert_identical(getattr(found, name), getattr(expected, name))


def test_given_thresholds_are_used_and_not_fitted() -> None:
    thresholds = fit(np.array([0.0, 10.0]))
    data = make(np.array([[4.0], [6.0], [np.nan]]), thresholds=thresholds)
    assert data.thresholds is thresholds
    assert data.bins.tolist() == [[0], [1], [2]]


def test_no_row_with_a_positive_weight_is_an_error() -> None:
    with pytest.raises(InvalidDataError, match="no row has a positive weight"):
        make(np.ones((2, 1)), None, np.zeros(2, np.float32))
    with pytest.raises(InvalidDataError, match="no row has a positive weight"):
        make(np.ones((0, 1)))


def test_more_rows_than_totals_can_hold_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset_module, "MAX_ROWS", 5)
    make(np.ones((5, 1)))
    with pytest.raises(InvalidDataError, match=r"^6 rows; at most 2\^32 can be trained on"):
        make(np.ones((6, 1)))


def test_more_rows_than_allowed_on_all_ranks_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset_module, "MAX_ROWS", 5)
    with pytest.raises(InvalidDataError, match=r"^6 rows;"):
        run_ranks(2, lambda c: make(np.ones((3, 1)), communicator=c))


def test_a_rank_without_rows_shares_the_thresholds() -> None:
    X = np.arange(40.0)[:, None]

    def work(communicator: Communicator) -> Dataset:
        rows = slice(0, 0) if communicator.rank == 0 else slice(0, 40)
        return make(X[rows], X[rows, 0], communicator=communicator)

    empty, full = run_ranks(2, work)
    assert (empty.n_rows, full.n_rows) == (0, 40)
    assert_identical(empty.thresholds, make(X).thresholds)
    assert_identical(full.thresholds, make(X).thresholds)


def test_kept_rows_are_numbered_rank_after_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[int, int] = {}

    def fit_thresholds(source, kept, first_row_id, weights, settings, communicator, reader):
        seen[communicator.rank] = first_row_id
        return fit(np.zeros(1))

    monkeypatch.setattr(dataset_module, "fit_thresholds", fit_thresholds)
    weights = [np.array([1, 0, 1], np.float32), np.array([0, 0, 1], np.float32), None]
    run_ranks(3, lambda c: make(np.ones((3, 1)), None, weights[c.rank], c))
    assert seen == {0: 0, 1: 2, 2: 3}


# --------------------------------------------------------------------------------------- subset


def rows_of(data: Dataset) -> list[float]:
    """Which rows of ``small`` these are; bins and labels agree on it."""
    np.testing.assert_array_equal(10 * data.bins[:, 0], data.labels)
    return (data.labels / 10).tolist()


@pytest.mark.parametrize(
    "rows",
    [
        [3],
        [5, 0, 3],
        [2, 2, 2, 0, 2],
        np.array([4, 1], np.uint8),
        np.array([4, 1], np.int16),
        np.array([1, 4], np.uint64)[::-1],
    ],
)
def test_subset_takes_rows_in_the_given_order_with_repeats(rows: object) -> None:
    data = small()
    subset = data.subset(np.asarray(rows))
    assert rows_of(subset) == list(rows)
    assert subset.kept_rows is None
    assert subset.n_input_rows == subset.n_rows == len(rows)


def test_subset_takes_a_mask() -> None:
    mask = np.array([True, False, True, False, False, True])
    assert rows_of(small().subset(mask)) == [0, 2, 5]


def test_subset_shares_thresholds_settings_and_names() -> None:
    data = small()
    subset = data.subset(np.array([1, 2]))
    assert subset.thresholds is data.thresholds
    assert subset.settings is data.settings
    assert subset.feature_names == data.feature_names


def test_subset_indexes_input_rows_and_renumbers_its_kept_rows() -> None:
    data = make(np.arange(6.0)[:, None], np.arange(6.0), np.array([0, 2, 0, 3, 5, 6], np.float32))
    subset = data.subset(np.array([5, 0, 3, 2, 3]))  # rows 0 and 2 were dropped
    assert subset.labels.tolist() == [5, 3, 3]
    assert subset.weights.tolist() == [6, 3, 3]
    assert subset.kept_rows.tolist() == [0, 2, 4]
    assert (subset.n_rows, subset.n_input_rows) == (3, 5)
    assert subset.of_kept_rows(np.array([50, 0, 30, 20, 31])).tolist() == [50, 30, 31]


def test_subset_of_a_subset_indexes_the_rows_of_the_subset() -> None:
    data = make(np.arange(6.0)[:, None], np.arange(6.0), np.array([0, 2, 0, 3, 5, 6], np.float32))
    subset = data.subset(np.array([5, 0, 3, 2, 3])).subset(np.array([4, 3, 0, 4]))
    assert subset.labels.tolist() == [3, 5, 3]
    assert subset.kept_rows.tolist() == [0, 2, 3]
    assert subset.n_input_rows == 4


@given(
    st.lists(st.integers(0, 1), min_size=8, max_size=8),
    st.lists(st.integers(0, 7), min_size=1, max_size=10),
    st.lists(st.integers(0, 9), min_size=1, max_size=10),
)
def test_nested_subsets_agree_with_plain_indexing(
    weights: list[int], first: list[int], second: list[int]
) -> None:
    second = [i % len(first) for i in second]
    chosen = [first[i] for i in second if weights[first[i]]]
    if not any(weights[i] for i in first) or not chosen:
        return
    x = np.arange(8.0)
    data = make(x[:, None], x, np.array(weights, np.float32))
    subset = data.subset(np.array(first)).subset(np.array(second))
    assert subset.labels.tolist() == chosen
    assert subset.of_kept_rows(np.array([first[i] for i in second])).tolist() == chosen


def test_subset_of_data_without_labels_has_none() -> None:
    subset = make(np.arange(3.0)[:, None]).subset(np.array([2]))
    assert subset.labels is None
    assert subset.weights is None


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.array([0, 6]), "rows must lie in 0..5; found 0..6."),
        (np.array([-1, 2]), "rows must lie in 0..5; found -1..2."),
        (np.array([2**64 - 1], np.uint64), f"rows must lie in 0..5; found {2**64 - 1}.."),
        (np.array([True]), "rows is a mask of 1 entries; the data set has 6 rows."),
        (np.ones(7, bool), "rows is a mask of 7 entries; the data set has 6 rows."),
        (np.array([0.0, 1.0]), "integers or bools; found dtype float64, shape (2,)."),
        (np.array([[0], [1]]), "integers or bools; found dtype int64, shape (2, 1)."),
        (np.array(3), "integers or bools; found dtype int64, shape ()."),
        (np.array(["a"]), "integers or bools; found dtype <U1, shape (1,)."),
        (np.zeros(0, np.int64), "rows selects no row with a positive weight; select some."),
        (np.zeros(6, bool), "rows selects no row with a positive weight; select some."),
    ],
)
def test_subset_refuses_rows_that_make_no_sense(rows: np.ndarray, message: str) -> None:
    with pytest.raises(InvalidDataError) as caught:
        small().subset(rows)
    assert message in str(caught.value)


def test_a_subset_of_dropped_rows_only_is_refused() -> None:
    with pytest.raises(InvalidDataError, match="rows selects no row with a positive weight"):
        small([0, 0, 1, 1, 1, 1]).subset(np.array([0, 1, 0]))


def test_subsets_leave_the_data_set_as_it_was() -> None:
    data = small([1, 0, 3, 4, 5, 6])
    subset = data.subset(np.array([0, 2]))
    subset.bins[:] = 9
    subset.labels[:] = 9
    subset.weights[:] = 9
    assert data.labels.tolist() == [0, 20, 30, 40, 50]
    assert data.weights.tolist() == [1, 3, 4, 5, 6]
    assert data.bins.tolist() == [[0], [1], [2], [3], [4]]

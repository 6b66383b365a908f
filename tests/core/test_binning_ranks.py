"""The sample that quantiles are taken from, and thresholds of rows that lie on several ranks."""

from itertools import pairwise

import numpy as np
import pytest
from core.fitting import fit
from hypothesis import example, given
from hypothesis import strategies as st
from support.exact import assert_identical
from support.ranks import run_ranks

from torchgbdt.core import binning, columns
from torchgbdt.core.binning import BinThresholds, sample_rows
from torchgbdt.core.communicator import Communicator
from torchgbdt.core.random import Purpose, random_keys

N_ROWS = 300
SAMPLE = 40


@pytest.fixture(scope="module", autouse=True)
def small_sample() -> object:
    """40 rows are sampled of the 300, and keys are drawn for 64 rows at a time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(binning, "SAMPLE_ROWS", SAMPLE)
        patch.setattr(binning, "_KEY_BLOCK", 64)
        patch.setattr(columns, "_FIRST_SCAN_ROWS", 16)
        patch.setattr(columns, "_SCAN_ROWS", 50)
        yield


def expected_sample(n_rows: int, random_state: int = 0) -> list[int]:
    rows = np.arange(n_rows, dtype=np.uint64)
    keys = random_keys(random_state, Purpose.BINNING_SAMPLE, 0, rows).tolist()
    order = sorted(range(n_rows), key=lambda row: (keys[row], row))
    return sorted(order[:SAMPLE])


def sample(borders: list[int], random_state: int = 0) -> list[int]:
    """The sampled rows of all ranks, numbered globally; each rank's as it returned them."""

    def work(communicator: Communicator) -> list[int]:
        first, end = list(pairwise(borders))[communicator.rank]
        rows = sample_rows(end - first, first, random_state, communicator)
        assert rows.dtype == np.int64
        return (rows + first).tolist()

    return [row for rows in run_ranks(len(borders) - 1, work) for row in rows]


borders = st.lists(st.integers(0, N_ROWS), max_size=2).map(lambda b: [0, *sorted(b), N_ROWS])


@given(borders)
@example([0, N_ROWS])
@example([0, 0, N_ROWS, N_ROWS])
@example([0, 1, N_ROWS])
def test_ranks_together_sample_the_rows_with_the_smallest_keys(cuts: list[int]) -> None:
    assert sample(cuts) == expected_sample(N_ROWS)


@pytest.mark.parametrize("n_rows", [0, 1, SAMPLE - 1, SAMPLE])
def test_up_to_the_sample_size_every_row_is_taken(n_rows: int) -> None:
    assert sample([0, n_rows]) == list(range(n_rows))
    assert sample([0, n_rows // 3, n_rows]) == list(range(n_rows))


def test_one_row_more_than_the_sample_size_is_sampled_exactly() -> None:
    found = sample([0, SAMPLE + 1])
    assert len(found) == SAMPLE
    assert found == expected_sample(SAMPLE + 1)


def test_random_state_keys_the_sample() -> None:
    assert sample([0, N_ROWS], 1) == expected_sample(N_ROWS, 1)
    assert sample([0, N_ROWS], 1) != sample([0, N_ROWS], 0)
    assert sample([0, N_ROWS], 2**40) != sample([0, N_ROWS], 0)


def test_a_sample_is_found_however_large_its_keys_are(monkeypatch: pytest.MonkeyPatch) -> None:
    def key_of(state: int, purpose: Purpose, tree: int, rows: np.ndarray) -> np.ndarray:
        return np.uint64(2**64 - 1) - rows % np.uint64(7)

    monkeypatch.setattr(binning, "random_keys", key_of)
    expected = sorted(range(N_ROWS), key=lambda row: (-(row % 7), row))[:SAMPLE]
    assert sample([0, 100, N_ROWS]) == sorted(expected)


@pytest.mark.parametrize("cuts", [[0, N_ROWS], [0, 100, N_ROWS], [0, 7, 11, N_ROWS]])
def test_equal_keys_go_by_row_id(cuts: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    # Keys are 0 for rows 5, 15, 25, ... (30 of them), else 1: the first ten others fill up.
    def key_of(state: int, purpose: Purpose, tree: int, rows: np.ndarray) -> np.ndarray:
        return (rows % np.uint64(10) != 5).astype(np.uint64)

    monkeypatch.setattr(binning, "random_keys", key_of)
    smallest = [*range(5, N_ROWS, 10), *[row for row in range(12) if row % 10 != 5][:10]]
    assert sample(cuts) == sorted(smallest)


# ------------------------------------------------------------------------------ fitting on ranks


def mixed_columns(rng: np.random.Generator) -> np.ndarray:
    """Many values, few, a rare one in the last row, missing ones, all missing, -0, infinities."""
    X = rng.normal(size=(N_ROWS, 9))
    X[:, 1] = rng.integers(0, 3, N_ROWS)
    X[:, 2] = 0.0
    X[-1, 2] = 9.0
    X[rng.random(N_ROWS) < 0.9, 3] = np.nan
    X[:, 4] = np.nan
    X[:, 5] = rng.choice([-0.0, 0.0], N_ROWS)
    X[::7, 6] = np.inf
    X[::5, 6] = -np.inf
    X[:100, 7] = np.nan  # missing on what may be a whole rank
    X[:, 8] = np.floor(X[:, 8] * 3)
    return X


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cuts", [[0, 150, N_ROWS], [0, 0, 299, N_ROWS], [0, 100, 101, N_ROWS]])
def test_thresholds_do_not_depend_on_ranks(cuts: list[int], weighted: bool) -> None:
    rng = np.random.default_rng(3)
    X = mixed_columns(rng)
    weights = rng.random(N_ROWS).astype(np.float32) + np.float32(0.1) if weighted else None

    def work(communicator: Communicator) -> BinThresholds:
        first, end = list(pairwise(cuts))[communicator.rank]
        own = None if weights is None else weights[first:end]
        return fit(X[first:end], 10, own, first_row_id=first, communicator=communicator)

    expected = fit(X, 10, weights)
    for thresholds in run_ranks(len(cuts) - 1, work):
        assert_identical(thresholds, expected)


def test_values_that_are_few_on_each_rank_may_be_many_together() -> None:
    column = np.arange(12.0)  # six on each rank, nine value bins

    def work(communicator: Communicator) -> BinThresholds:
        first = 6 * communicator.rank
        own = column[first : first + 6]
        return fit(own, 10, first_row_id=first, communicator=communicator)

    for thresholds in run_ranks(2, work):
        assert thresholds.n_value_bins.tolist() == [9]
        assert_identical(thresholds, fit(column, 10))


def test_ranks_without_weights_weigh_one_beside_ranks_with_weights() -> None:
    X = np.random.default_rng(4).normal(size=(N_ROWS, 2))
    weights = np.ones(N_ROWS, np.float32)
    weights[:120] = 5.0

    def work(communicator: Communicator) -> BinThresholds:
        first, end = [(0, 120), (120, N_ROWS)][communicator.rank]
        own = weights[:120] if communicator.rank == 0 else None
        return fit(X[first:end], 10, own, first_row_id=first, communicator=communicator)

    for thresholds in run_ranks(2, work):
        assert_identical(thresholds, fit(X, 10, weights))


@pytest.mark.parametrize("weighted", [False, True])
def test_kept_rows_fit_like_a_matrix_of_those_rows(weighted: bool) -> None:
    rng = np.random.default_rng(5)
    X = mixed_columns(rng)
    kept = np.flatnonzero(rng.random(N_ROWS) < 0.6)
    weights = rng.random(kept.size).astype(np.float32) + np.float32(0.1) if weighted else None
    assert_identical(fit(X, 10, weights, kept), fit(X[kept], 10, weights))


def test_only_kept_rows_decide_whether_a_column_has_few_values() -> None:
    column = np.arange(100.0)
    column[::2] = 3.0
    kept = np.arange(0, 100, 2)
    assert fit(column, 3, kept_rows=kept).n_value_bins.tolist() == [1]


def test_only_kept_rows_beyond_the_first_scan_are_read() -> None:
    # 256 rows are kept; the last one holds the second value.
    column = np.zeros(N_ROWS)
    column[-1] = 4.0
    kept = np.arange(N_ROWS - 256, N_ROWS)
    assert fit(column, kept_rows=kept).of_feature(0).tolist() == [2.0]


def test_quantiles_are_those_of_the_sampled_rows() -> None:
    # The sampled rows alone, in a column of their own, give the same cuts.
    column = np.random.default_rng(6).normal(size=N_ROWS)
    rows = expected_sample(N_ROWS)
    assert_identical(fit(column, 10), fit(column[rows], 10))


def test_a_column_whose_sample_is_all_missing_has_one_value_bin() -> None:
    # Ten values exist, none of them in a sampled row: value or missing is all that can be told.
    column = np.full(N_ROWS, np.nan)
    others = np.setdiff1d(np.arange(N_ROWS), expected_sample(N_ROWS))[:10]
    column[others] = np.arange(10.0)
    thresholds = fit(column, 10)
    assert thresholds.values.size == 0
    assert thresholds.n_value_bins.tolist() == [1]


def test_another_random_state_samples_other_rows_for_quantiles() -> None:
    column = np.random.default_rng(6).normal(size=(N_ROWS, 1))
    assert fit(column, 10).values.tolist() != fit(column, 10, random_state=1).values.tolist()


def test_weights_are_those_of_the_sampled_rows() -> None:
    rng = np.random.default_rng(7)
    column, rows = rng.normal(size=N_ROWS), expected_sample(N_ROWS)
    weights = np.exp(rng.normal(size=N_ROWS)).astype(np.float32)
    assert_identical(fit(column, 10, weights), fit(column[rows], 10, weights[rows]))


def test_fitting_leaves_its_inputs_alone() -> None:
    X = mixed_columns(np.random.default_rng(8))
    weights = np.full(N_ROWS, 2, np.float32)
    before = X.copy()
    fit(X, 10, weights)
    assert_identical(X, before)
    assert (weights == 2).all()

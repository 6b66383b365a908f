"""``route_rows``: a stable partition of each node's rows, and exact counts."""

from itertools import pairwise

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from support.backends import BackendUnderTest
from support.levels import HandMadeRun
from support.lockstep import in_lockstep
from support.runs import MANY_ROWS
from support.strategies import bin_codes

from torchgbdt.core.arrays import RecordArray
from torchgbdt.core.backend import ComputeBackend
from torchgbdt.core.splits import SPLIT_DTYPE


def run_on(backend: ComputeBackend, bins: np.ndarray, n_value_bins: list[int]) -> HandMadeRun:
    zeros = np.zeros((len(bins), 1))
    return HandMadeRun(backend, bins, n_value_bins, zeros, zeros)


def split_records(*splits: tuple[int, int, bool]) -> RecordArray:
    """(feature, split bin, missing goes left) of each node."""
    records = np.zeros(len(splits), SPLIT_DTYPE)
    records["found"] = True
    for index, (feature, split_bin, missing_left) in enumerate(splits):
        records["feature"][index] = feature
        records["split_bin"][index] = split_bin
        records["missing_left"][index] = missing_left
    return records


def test_bins_up_to_the_split_bin_go_left_in_stable_order(backend: ComputeBackend) -> None:
    # row     0  1  2  3  4  5
    # bin     2  0  1  0  2  1     split after bin 0: rows 1 and 3 go left
    run = run_on(backend, np.array([[2], [0], [1], [0], [2], [1]]), [3])
    left = backend.route_rows(run.nodes([(0, 6)]), split_records((0, 0, False)))
    assert left.tolist() == [2]
    assert backend.read_row_order().tolist() == [1, 3, 0, 2, 4, 5]


@pytest.mark.parametrize(("missing_left", "order"), [(True, [0, 1, 3, 2]), (False, [1, 0, 2, 3])])
def test_missing_rows_take_the_learned_side(
    backend: ComputeBackend, missing_left: bool, order: list[int]
) -> None:
    # bins missing (2), 0, 1, missing: row 1 goes left, row 2 right, rows 0 and 3 follow the flag
    run = run_on(backend, np.array([[2], [0], [1], [2]]), [2])
    backend.route_rows(run.nodes([(0, 4)]), split_records((0, 0, missing_left)))
    assert backend.read_row_order().tolist() == order


def test_the_last_value_bin_splits_values_from_missing_rows(backend: ComputeBackend) -> None:
    run = run_on(backend, np.array([[1], [2], [0], [2]]), [2])
    left = backend.route_rows(run.nodes([(0, 4)]), split_records((0, 1, False)))
    assert left.tolist() == [2] and backend.read_row_order().tolist() == [0, 2, 1, 3]


def test_rows_outside_the_nodes_stay_where_they_are(backend: ComputeBackend) -> None:
    run = run_on(backend, np.array([[1], [1], [0], [1], [0], [0]]), [2])
    backend.route_rows(run.nodes([(1, 3), (4, 6)]), split_records((0, 0, False), (0, 0, False)))
    assert backend.read_row_order().tolist() == [0, 2, 1, 3, 4, 5]


def test_a_node_may_have_no_rows_here(backend: ComputeBackend) -> None:
    run = run_on(backend, np.array([[1], [0]]), [2])
    nodes = run.nodes([(0, 0), (0, 2), (2, 2)])
    left = backend.route_rows(nodes, split_records(*[(0, 0, False)] * 3))
    assert left.tolist() == [0, 1, 0] and backend.read_row_order().tolist() == [1, 0]


@pytest.mark.parametrize(("split_bin", "n_left"), [(0, 0), (2, 5)])
def test_all_rows_may_go_to_one_side(backend: ComputeBackend, split_bin: int, n_left: int) -> None:
    # Here, on this rank: others have the rows of the other side.
    run = run_on(backend, np.full((5, 1), 1), [4])
    left = backend.route_rows(run.nodes([(0, 5)]), split_records((0, split_bin, False)))
    assert left.tolist() == [n_left] and backend.read_row_order().tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("n_rows", [1, 100, MANY_ROWS])
def test_level_after_level(under_test: BackendUnderTest, n_rows: int) -> None:
    rng = np.random.default_rng(n_rows)
    backend = in_lockstep(under_test)
    n_value_bins = [1, 9, 255]
    bins = np.column_stack([rng.integers(0, n + 1, n_rows) for n in n_value_bins])
    run = run_on(backend, bins, n_value_bins)
    borders = [0, n_rows]
    for _ in range(5):
        nodes = run.nodes(list(pairwise(borders)))
        features = rng.integers(0, 3, nodes.size)
        splits = [(f, rng.integers(0, n_value_bins[f]), rng.random() < 0.5) for f in features]
        left = backend.route_rows(nodes, split_records(*splits))
        borders = sorted([*borders, *(nodes["begin"] + left).tolist()])
    assert np.array_equal(np.sort(backend.read_row_order()), np.arange(n_rows))


def test_sampling_for_the_next_tree_restores_the_order(backend: ComputeBackend) -> None:
    run = run_on(backend, np.array([[1], [0], [1], [0]]), [2])
    backend.route_rows(run.nodes([(0, 4)]), split_records((0, 0, False)))
    assert backend.sample_rows(1) == 4
    assert backend.read_row_order().tolist() == [0, 1, 2, 3]


@hypothesis.given(data=st.data())
def test_any_bins_and_splits(under_test: BackendUnderTest, data: st.DataObject) -> None:
    bins, n_value_bins = data.draw(bin_codes())
    n_rows = bins.shape[0]
    border = data.draw(st.integers(0, n_rows))
    usable = [feature for feature, n in enumerate(n_value_bins) if n]
    splits = []
    for _ in range(2):
        feature = data.draw(st.sampled_from(usable))
        split_bin = data.draw(st.integers(0, n_value_bins[feature] - 1))
        splits.append((feature, split_bin, data.draw(st.booleans())))
    run = run_on(in_lockstep(under_test), bins, n_value_bins)
    nodes = run.nodes([(0, border), (border, n_rows)])
    run.backend.route_rows(nodes, split_records(*splits))

"""Histograms: built from rows, summed over ranks, subtracted; integers throughout."""

from collections.abc import Sequence

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest
from support.backends import BackendUnderTest
from support.invariants import check_histograms
from support.levels import HandMadeRun
from support.lockstep import in_lockstep
from support.ranks import run_ranks
from support.runs import MANY_ROWS, integer_thresholds, run_rows, run_settings
from support.strategies import bin_codes, gradients

from torchgbdt.core.backend import NO_SLOT, NODE_DTYPE, ComputeBackend, LevelBatch
from torchgbdt.core.communicator import Communicator
from torchgbdt.core.splits import Histograms


def random_run(
    backend: ComputeBackend,
    n_rows: int,
    n_outputs: int = 1,
    n_value_bins: Sequence[int] = (1, 5, 0, 40),
    constant: bool = False,
) -> HandMadeRun:
    rng = np.random.default_rng(n_rows + n_outputs)
    bins = np.column_stack([rng.integers(0, n + 1, n_rows) for n in n_value_bins])
    g = rng.normal(size=(n_rows, n_outputs))
    h = np.ones_like(g) if constant else np.abs(g)
    return HandMadeRun(backend, bins, n_value_bins, g, h, scale=24, constant=constant)


def sibling_batch(run: HandMadeRun, border: int, n_rows: int) -> LevelBatch:
    """Children of the root, which is in slot 0: the left one built in slot 1, the right derived."""
    nodes = np.zeros(2, NODE_DTYPE)
    nodes[0] = (0, border, border, 1, 1, -1, True)
    nodes[1] = (border, n_rows - border, n_rows - border, 2, 0, 1, False)
    return run.batch(nodes)


def test_a_histogram_by_hand(backend: ComputeBackend) -> None:
    # rows:      0   1   2   3        one feature with two value bins, then the missing one
    # bin        0   1   0   missing
    # g          1  -2   4   8        scale 2^0: the numbers themselves
    # h          1   2   3   4
    run = HandMadeRun(
        backend, [[0], [1], [0], [2]], [2], [[1], [-2], [4], [8]], [[1], [2], [3], [4]]
    )
    found = backend.read_histograms(run.build([(0, 4)]))
    assert found.counts.tolist() == [[2, 1, 1]]
    assert found.gradients.tolist() == [[[5, -2, 8]]] and found.hessians.tolist() == [[[4, 2, 4]]]


@pytest.mark.parametrize("constant", [False, True], ids=["general", "constant"])
@pytest.mark.parametrize("n_outputs", [1, 2, 3])
@pytest.mark.parametrize("n_rows", [1, 50, MANY_ROWS])
def test_many_nodes_of_any_size_in_one_batch(
    under_test: BackendUnderTest, n_rows: int, n_outputs: int, constant: bool
) -> None:
    run = random_run(in_lockstep(under_test), n_rows, n_outputs, constant=constant)
    third, half = n_rows // 3, n_rows // 2
    batch = run.build([(0, third), (third, third), (third, half), (half, n_rows)])
    check_histograms(run.backend.read_histograms(batch), batch, run.thresholds)


def test_nodes_that_are_not_built_stay_as_they_are(backend: ComputeBackend) -> None:
    run = random_run(backend, 60)
    batch = run.build([(0, 30), (30, 60)])
    before = backend.read_histograms(batch)
    nodes = batch.nodes.copy()
    nodes["build"], nodes["sibling_slot"] = [True, False], [NO_SLOT, 0]
    nodes["begin"][0], nodes["n_rows"][0] = 5, 9
    backend.build_histograms(LevelBatch(nodes, batch.sums))
    after = backend.read_histograms(batch)
    assert not np.array_equal(after.counts[0], before.counts[0])
    assert np.array_equal(after.counts[1], before.counts[1])


def test_a_slot_is_overwritten_not_added_to(backend: ComputeBackend) -> None:
    run = random_run(backend, 80)
    run.build([(0, 80)])
    batch = run.build([(10, 30)])
    check_histograms(backend.read_histograms(batch), batch, run.thresholds)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("border", [0, 1, 400, 999])
def test_parent_minus_left_is_right(
    under_test: BackendUnderTest, border: int, n_outputs: int
) -> None:
    backend = in_lockstep(under_test)
    run = random_run(backend, 999, n_outputs)
    parent = backend.read_histograms(run.build([(0, 999)]))
    batch = sibling_batch(run, border, 999)
    backend.build_histograms(batch)
    backend.subtract_histograms(batch)
    children = backend.read_histograms(batch)
    for name in ("counts", "gradients", "hessians"):
        left, right = getattr(children, name)
        assert np.array_equal(left + right, getattr(parent, name)[0])
    assert_equals_built(children, backend, run.build([(0, border), (border, 999)]))


def test_more_cells_than_a_block_of_any_kernel(under_test: BackendUnderTest) -> None:
    backend = in_lockstep(under_test)
    run = random_run(backend, 600, 2, n_value_bins=[255] * 20)
    run.build([(0, 600)])
    batch = sibling_batch(run, 200, 600)
    backend.build_histograms(batch)
    backend.subtract_histograms(batch)


def assert_equals_built(found: Histograms, backend: ComputeBackend, built: LevelBatch) -> None:
    expected = backend.read_histograms(built)
    for name in ("counts", "gradients", "hessians"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))


def test_constant_hessians_are_filled_in_like_general_ones(backend: ComputeBackend) -> None:
    bins = np.random.default_rng(1).integers(0, 4, (90, 2)).astype(np.uint8)
    labels = np.linspace(-1, 1, 90).astype(np.float32)
    found = []
    for weights in (None, np.ones(90, np.float32)):
        settings = run_settings(integer_thresholds([3, 3]), constant=weights is None)
        backend.prepare(run_rows(bins, labels, weights), [], settings)
        backend.sample_rows(0)
        backend.compute_gradients(0)
        totals = backend.round_gradients(np.array([[28, 28]]))
        batch = LevelBatch(np.array([(0, 90, 90, 0, 0, -1, True)], NODE_DTYPE), totals[None])
        backend.build_histograms(batch)
        found.append((totals, backend.read_histograms(batch), backend.read_fixed_point()))
        backend.release()
    (sums, histograms, fixed), (general_sums, general, general_fixed) = found
    assert np.array_equal(sums, general_sums) and np.array_equal(fixed[1], general_fixed[1])
    assert np.array_equal(histograms.hessians, general.hessians)


@pytest.mark.parametrize("sizes", [(40, 40), (79, 1), (0, 80), (30, 0, 50)], ids=str)
def test_exchange_gives_every_rank_the_histogram_of_all_rows(
    under_test: BackendUnderTest, sizes: tuple[int, ...]
) -> None:
    rng = np.random.default_rng(5)
    bins, g = rng.integers(0, 5, (80, 2)), rng.normal(size=(80, 1))
    borders = np.concatenate(([0], np.cumsum(sizes)))

    def work(communicator: Communicator) -> Histograms:
        mine = slice(borders[communicator.rank], borders[communicator.rank + 1])
        n_rows = mine.stop - mine.start
        backend = in_lockstep(under_test)
        run = HandMadeRun(backend, bins[mine], [4, 4], g[mine], np.abs(g[mine]), scale=20)
        batch = run.build([(0, n_rows), (n_rows // 2, n_rows)])
        backend.exchange_histograms(batch, communicator)
        return backend.read_histograms(batch)

    found = run_ranks(len(sizes), work)
    run = HandMadeRun(under_test.make_reference(), bins, [4, 4], g, np.abs(g), scale=20)
    expected = run.backend.read_histograms(run.build([(0, 80)]))
    for histograms in found:
        assert np.array_equal(histograms.counts[0], expected.counts[0])
        assert np.array_equal(histograms.gradients[0], expected.gradients[0])
        assert np.array_equal(histograms.hessians[0], expected.hessians[0])


@pytest.mark.parametrize("sign", [-1, 1])
def test_many_rows_of_the_largest_gradient_in_one_bin(backend: ComputeBackend, sign: int) -> None:
    n_rows = 3 * 2**16  # more than 16 bits of rows, of |q| = 2^30 each
    g, h = np.full((n_rows, 1), sign * 2.0**30), np.full((n_rows, 1), 2.0**29)
    run = HandMadeRun(backend, np.zeros((n_rows, 1)), [1], g, h)
    found = backend.read_histograms(run.build([(0, n_rows)]))
    assert found.counts.tolist() == [[n_rows, 0]]
    assert found.gradients.tolist() == [[[sign * n_rows * 2**30, 0]]]
    assert found.hessians.tolist() == [[[n_rows * 2**29, 0]]]


def test_totals_close_to_the_limit_are_exact(under_test: BackendUnderTest) -> None:
    # 2^10 rows of |q_g| = 2^30 and q_h = 2^29, on 2^22 ranks: 2^62 and 2^61.
    n_rows, copies = 2**10, 2**22
    backend = in_lockstep(under_test)
    g, h = np.full((n_rows, 1), -(2.0**30)), np.full((n_rows, 1), 2.0**29)
    run = HandMadeRun(backend, np.zeros((n_rows, 1)), [1], g, h)
    found = backend.read_histograms(run.build_in_copies([(0, n_rows)], copies))
    assert found.counts[0, 0] == 2**32
    assert found.gradients[0, 0, 0] == -(2**62) and found.hessians[0, 0, 0] == 2**61


@hypothesis.given(data=st.data(), n_outputs=st.sampled_from([1, 3]))
def test_any_bins_and_gradients(
    under_test: BackendUnderTest, data: st.DataObject, n_outputs: int
) -> None:
    bins, n_value_bins = data.draw(bin_codes())
    n_rows = bins.shape[0]
    g, h = data.draw(gradients(n_rows, n_outputs))
    backend = in_lockstep(under_test)
    run = HandMadeRun(backend, bins, n_value_bins, g, h, scale=-31)
    run.build([(0, n_rows)])
    batch = sibling_batch(run, data.draw(st.integers(0, n_rows)), n_rows)
    backend.build_histograms(batch)
    backend.subtract_histograms(batch)

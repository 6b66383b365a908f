"""route_count and route_scatter against a stable partition by numpy."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from metal.mutations import BARRIER, without
from metal.slab_kernels import cut, library
from metal.slabs import Slab, make_slab

from torchgbdt.backends.metal_library import MetalLibrary, assemble
from torchgbdt.core.errors import BackendError

UNWRITTEN = -7
NONCE = 0x51ED2705
FAULT_LEFT_COUNT = 1

BINS = [255, 1, 30, 4, 200]


@dataclass
class Routed:
    """What the kernels have written, or should have."""

    row_order: np.ndarray
    fixed_point: np.ndarray
    left_counts: np.ndarray
    nonce: int = NONCE
    faults: int = 0

    def __eq__(self, other: object) -> bool:
        assert isinstance(other, Routed)
        return (
            np.array_equal(self.row_order, other.row_order)
            and np.array_equal(self.fixed_point, other.fixed_point)
            and np.array_equal(self.left_counts, other.left_counts)
            and (self.nonce, self.faults) == (other.nonce, other.faults)
        )


def random_splits(slab: Slab, seed: int) -> np.ndarray:
    """feature, split_bin, missing_left of each node; int64, (n_nodes, 3)."""
    rng = np.random.default_rng(seed)
    features = rng.integers(0, slab.n_features, slab.sizes.size)
    bins = rng.integers(0, slab.n_value_bins[features])
    return np.stack((features, bins, rng.integers(0, 2, features.size)), axis=1)


def goes_left(slab: Slab, row: int, split: Sequence[int]) -> bool:
    feature, split_bin, missing_left = split
    code = slab.codes[row, feature]
    if code == slab.n_value_bins[feature]:
        return bool(missing_left)
    return bool(code <= split_bin)


def partition(slab: Slab, splits: np.ndarray) -> Routed:
    """The definition: left places, then right places, both in their order."""
    row_order = np.full_like(slab.row_order, UNWRITTEN)
    fixed_point = np.full_like(slab.fixed_point, UNWRITTEN)
    left_counts = []
    for node, split in enumerate(splits.tolist()):
        places = slab.places(node)
        sides = np.array([goes_left(slab, slab.row_order[p], split) for p in places], bool)
        moved = np.concatenate((places[sides], places[~sides]))
        row_order[places] = slab.row_order[moved]
        fixed_point[:, places] = slab.fixed_point[:, moved]
        left_counts.append(int(sides.sum()))
    return Routed(row_order, fixed_point, np.array(left_counts, np.int32))


def route(
    kernels: MetalLibrary,
    slab: Slab,
    splits: np.ndarray,
    rows_per_chunk: int,
    expected: Sequence[int] | None = None,
    planted_counts: int | None = None,
    scattering: MetalLibrary | None = None,
) -> Routed:
    """Both kernels.

    planted_counts : chunk counts as a failed route_count may leave them.
    scattering : where route_scatter comes from; None: as route_count.
    """
    chunks = cut(slab, rows_per_chunk)
    row_order = torch.from_numpy(slab.row_order)
    fixed_point = torch.from_numpy(slab.fixed_point)
    sides = torch.full((slab.n_rows,), 99, dtype=torch.uint8)
    chunk_counts = torch.full((chunks.n_chunks,), UNWRITTEN, dtype=torch.int32)
    grid = {"threads": 256 * chunks.n_chunks, "group_size": 256}
    kernels.kernel("route_rows", "route_count")(
        slab.columns(),
        row_order,
        slab.features(),
        sides,
        chunk_counts,
        chunks.nodes,
        splits.ravel().tolist(),
        chunks.n_nodes,
        rows_per_chunk,
        slab.n_rows,
        **grid,
    )
    if planted_counts is not None:
        chunk_counts.fill_(planted_counts)
    routed_order = torch.full_like(row_order, UNWRITTEN)
    routed_fixed_point = torch.full_like(fixed_point, UNWRITTEN)
    left_counts = torch.full((chunks.n_nodes,), UNWRITTEN, dtype=torch.int32)
    nonce = torch.full((1,), UNWRITTEN, dtype=torch.int32)
    faults = torch.zeros(1, dtype=torch.int32)
    (scattering or kernels).kernel("route_rows", "route_scatter")(
        row_order,
        fixed_point,
        sides,
        chunk_counts,
        routed_order,
        routed_fixed_point,
        left_counts,
        nonce,
        faults,
        chunks.nodes,
        [-1] * chunks.n_nodes if expected is None else list(expected),
        chunks.n_nodes,
        rows_per_chunk,
        slab.n_rows,
        len(slab.fixed_point),
        NONCE,
        **grid,
    )
    return Routed(
        routed_order.numpy(),
        routed_fixed_point.numpy(),
        left_counts.numpy(),
        int(nonce[0]),
        int(faults[0]),
    )


@pytest.mark.parametrize("rows_per_chunk", [100, 256, 1000, 100_000])
@pytest.mark.parametrize("n_outputs", [1, 3])
def test_rows_are_partitioned_stably(n_outputs: int, rows_per_chunk: int) -> None:
    sizes = [1, 0, 255, 256, 257, 5000, 2]
    slab = make_slab(1, sizes, BINS, n_outputs=n_outputs, constant_hessian=False)
    splits = random_splits(slab, 2)
    assert route(library(seed=1), slab, splits, rows_per_chunk) == partition(slab, splits)


def test_a_slab_of_many_small_nodes() -> None:
    sizes = [0, *np.random.default_rng(3).integers(0, 40, 254), 0]
    slab = make_slab(3, sizes, BINS)
    splits = random_splits(slab, 4)
    assert route(library(seed=3), slab, splits, 16) == partition(slab, splits)


@pytest.mark.parametrize("missing_left", [0, 1])
@pytest.mark.parametrize("split_bin", [0, 29, 255])
def test_bins_and_missing_codes(split_bin: int, missing_left: int) -> None:
    """Whatever the split bin, the missing code goes where the split sends it."""
    slab = make_slab(5, [600], [30])
    splits = np.array([[0, split_bin, missing_left]])
    routed = route(library(seed=5), slab, splits, 128)
    assert routed == partition(slab, splits)
    n_missing = int((slab.codes[slab.row_order[slab.places(0)], 0] == 30).sum())
    if split_bin >= 29:
        assert routed.left_counts[0] == 600 - (0 if missing_left else n_missing)


def test_any_order_of_threads_and_groups_gives_the_same() -> None:
    slab = make_slab(6, [900, 0, 300], BINS)
    splits = random_splits(slab, 7)
    wanted = partition(slab, splits)
    for seed in range(6):
        assert route(library(seed=seed), slab, splits, 300) == wanted


def test_a_left_count_that_was_not_expected_is_a_fault() -> None:
    slab = make_slab(8, [300, 0, 20], BINS)
    splits = random_splits(slab, 9)
    wanted = partition(slab, splits)
    counts = wanted.left_counts.tolist()
    assert route(library(seed=8), slab, splits, 64, counts) == wanted
    for node in range(3):
        wrong = list(counts)
        wrong[node] += 1
        routed = route(library(seed=8), slab, splits, 64, wrong)
        assert routed.faults == FAULT_LEFT_COUNT
        wrong[node] = -1
        assert route(library(seed=8), slab, splits, 64, wrong) == wanted


@pytest.mark.parametrize("planted", [0, 5, 10_000, -1])
def test_counts_of_a_failed_dispatch_move_no_row_out_of_its_node(planted: int) -> None:
    slab = make_slab(10, [300, 0, 20], BINS)
    splits = random_splits(slab, 11)
    counts = partition(slab, splits).left_counts.tolist()
    routed = route(library(seed=10), slab, splits, 64, counts, planted)
    assert routed.faults == FAULT_LEFT_COUNT
    between = np.ones(slab.n_rows, bool)
    for node in range(3):
        places = slab.places(node)
        between[places] = False
        moved = routed.row_order[places]
        assert set(moved[moved != UNWRITTEN]) <= set(slab.row_order[places])
    assert (routed.row_order[between] == UNWRITTEN).all()
    assert (routed.fixed_point[:, between] == UNWRITTEN).all()


def test_every_barrier_matters() -> None:
    slab = make_slab(12, [900, 0, 300], BINS)
    splits = random_splits(slab, 13)
    wanted = partition(slab, splits)
    assert assemble("route_rows", {}).count(BARRIER) == 1  # one place serves all sums of a group
    broken = [library(seed, without(BARRIER)) for seed in range(4)]
    assert any(route(one, slab, splits, 300, scattering=library(0)) != wanted for one in broken)
    assert any(route(library(0), slab, splits, 300, scattering=one) != wanted for one in broken)


def test_blocks_of_rows_need_totals_by_turns() -> None:
    """With one stretch of totals, a simdgroup that is ahead would write what others still read."""
    slab = make_slab(16, [1000], BINS)
    splits = random_splits(slab, 17)
    racing = library(seed=16, edit=without("is_even = !is_even;"), checked=True)
    with pytest.raises(BackendError, match="race"):
        route(racing, slab, splits, 1000)


def test_no_races_and_nothing_out_of_bounds() -> None:
    slab = make_slab(14, [300, 0, 1, 50], BINS, constant_hessian=False)
    splits = random_splits(slab, 15)
    checked = library(seed=14, checked=True)
    assert route(checked, slab, splits, 100) == partition(slab, splits)

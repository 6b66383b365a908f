"""build_histograms against sums by numpy: exact for any rows, codes and numbers."""

import numpy as np
import pytest
from metal.mutations import BARRIER, without
from metal.slab_kernels import build_histograms, cut, library, sums_of_partials
from metal.slabs import Slab, make_slab

from torchgbdt.backends.metal_library import MetalLibrary, assemble
from torchgbdt.backends.row_chunks import HistogramVariant

CARRY = HistogramVariant(constant_hessian=True)
NO_RETURNS = HistogramVariant(constant_hessian=True, returning_atomics=False)
GENERAL = HistogramVariant(constant_hessian=False)
VARIANTS = [
    pytest.param(CARRY, id="carry"),
    pytest.param(NO_RETURNS, id="no-returns"),
    pytest.param(GENERAL, id="general"),
]


def slab_for(
    variant: HistogramVariant, seed: int, sizes: list[int], bins: list[int], **kind
) -> Slab:
    return make_slab(seed, sizes, bins, constant_hessian=variant.constant_hessian, **kind)


def is_exact(
    kernels: MetalLibrary,
    slab: Slab,
    variant: HistogramVariant,
    rows_per_chunk: int,
    **constants: int,
) -> bool:
    """Whether every chunk's partial histogram is the sum of its rows."""
    chunks = cut(slab, rows_per_chunk)
    found = sums_of_partials(
        build_histograms(kernels, slab, variant, chunks, **constants), slab, variant, chunks
    )
    wanted = np.stack([slab.histogram(places) for places in slab.chunk_places(chunks)])
    return np.array_equal(found, wanted)


@pytest.mark.parametrize("n_features", [1, 3, 4, 5, 8, 9, 29])
@pytest.mark.parametrize("variant", VARIANTS)
def test_each_chunk_is_the_sum_of_its_rows(variant: HistogramVariant, n_features: int) -> None:
    rng = np.random.default_rng(n_features)
    bins = [255, 1, *rng.integers(1, 256, 27)][:n_features]
    slab = slab_for(variant, n_features, [1, 0, 255, 256, 257, 5000], bins)
    assert is_exact(library(seed=n_features), slab, variant, rows_per_chunk=256)


@pytest.mark.parametrize("rows_per_chunk", [1, 7, 100_000])
@pytest.mark.parametrize("variant", VARIANTS)
def test_a_slab_of_many_small_nodes(variant: HistogramVariant, rows_per_chunk: int) -> None:
    sizes = [0, 0, *np.random.default_rng(4).integers(0, 12, 252), 1, 0]
    slab = slab_for(variant, 4, sizes, [3, 1, 17])
    assert is_exact(library(seed=4), slab, variant, rows_per_chunk)


@pytest.mark.parametrize("variant", VARIANTS)
def test_each_output_has_sums_of_its_own(variant: HistogramVariant) -> None:
    slab = slab_for(variant, 5, [400, 3], [9, 255, 1, 30, 4], n_outputs=3)
    assert is_exact(library(seed=5), slab, variant, rows_per_chunk=350)


@pytest.mark.parametrize("extreme", [-1, 0, 1])
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_largest_numbers_in_one_bin(variant: HistogramVariant, extreme: int) -> None:
    slab = slab_for(variant, 6, [5000], [1, 255, 40], extreme=extreme, one_bin=True)
    assert is_exact(library(seed=6), slab, variant, rows_per_chunk=5000)


@pytest.mark.parametrize("extreme", [-1, 1])
@pytest.mark.parametrize("variant", VARIANTS)
def test_as_many_rows_as_packed_sums_hold(variant: HistogramVariant, extreme: int) -> None:
    rows = variant.max_packed_rows
    slab = slab_for(variant, 7, [rows], [2], extreme=extreme, one_bin=True)
    assert is_exact(library(seed=7), slab, variant, rows_per_chunk=rows)


@pytest.mark.parametrize("variant", VARIANTS)
def test_packed_sums_overflow_one_row_past_the_bound(variant: HistogramVariant) -> None:
    rows = variant.max_packed_rows + 1
    slab = slab_for(variant, 8, [rows], [2], extreme=1, one_bin=True)
    raised = {"MAX_PACKED_ROWS": rows}
    assert is_exact(library(seed=8), slab, variant, rows_per_chunk=rows)
    assert not is_exact(library(seed=8), slab, variant, rows_per_chunk=rows, **raised)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_chunk_of_several_drains(variant: HistogramVariant) -> None:
    slab = slab_for(variant, 9, [1111, 0, 200, 201], [200, 3, 1, 7, 255])
    lowered = {"MAX_PACKED_ROWS": 100}
    assert is_exact(library(seed=9), slab, variant, rows_per_chunk=1000, **lowered)


@pytest.mark.parametrize("variant", VARIANTS)
def test_any_order_of_threads_and_groups_gives_the_same(variant: HistogramVariant) -> None:
    slab = slab_for(variant, 10, [700, 90], [5, 1, 255, 3, 60])
    for seed in range(6):
        assert is_exact(library(seed=seed), slab, variant, rows_per_chunk=300)


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_barrier_matters(variant: HistogramVariant) -> None:
    slab = slab_for(variant, 11, [700, 90], [5, 1, 255, 3, 60])
    n_barriers = assemble("build_histograms", variant.constants()).count(BARRIER)
    assert n_barriers == 2
    for i in range(n_barriers):
        assert any(
            not is_exact(library(seed, without(BARRIER, i)), slab, variant, rows_per_chunk=300)
            for seed in range(4)
        )


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_races_and_nothing_out_of_bounds(variant: HistogramVariant) -> None:
    slab = slab_for(variant, 12, [300, 0, 1], [5, 1, 255, 3, 60], n_outputs=2)
    lowered = {"MAX_PACKED_ROWS": 150}
    checked = library(seed=12, checked=True)
    assert is_exact(checked, slab, variant, rows_per_chunk=200, **lowered)

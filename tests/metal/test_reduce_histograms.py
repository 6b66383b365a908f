"""reduce_histograms against sums by numpy, alone and after build_histograms."""

import numpy as np
import pytest
import torch
from metal.slab_kernels import (
    build_histograms,
    cut,
    library,
    partials_of_sums,
    reduce_histograms,
)
from metal.slabs import Slab, make_slab

from torchgbdt.backends.row_chunks import HistogramVariant

VARIANTS = [
    pytest.param(HistogramVariant(constant_hessian=True), id="constant"),
    pytest.param(HistogramVariant(constant_hessian=False), id="general"),
]
N_SLOTS = 9


def random_histograms(slab: Slab, seed: int) -> torch.Tensor:
    """Slots full of other histograms."""
    shape = (N_SLOTS, 1 + len(slab.fixed_point), slab.total_bins)
    return torch.from_numpy(np.random.default_rng(seed).integers(-(2**61), 2**61, shape))


@pytest.mark.parametrize("outputs", [1, 3])
@pytest.mark.parametrize("n_features", [1, 5, 8, 9])
@pytest.mark.parametrize("variant", VARIANTS)
def test_chunks_are_summed_and_subtracted(
    variant: HistogramVariant, n_features: int, outputs: int
) -> None:
    rng = np.random.default_rng(n_features)
    bins = [255, 1, *rng.integers(1, 256, 7)][:n_features]
    constant = variant.constant_hessian
    slab = make_slab(1, [3, 0, 700, 5], bins, n_outputs=outputs, constant_hessian=constant)
    chunks = cut(slab, 200)  # of no meaning here but for their number
    shape = (chunks.n_chunks, 1 + len(slab.fixed_point), n_features, 256)
    sums = rng.integers(-(2**59), 2**59, shape)
    sums[:, 0] = rng.integers(0, 2**31, shape[:1] + shape[2:])
    histograms = random_histograms(slab, 2)
    wanted = histograms.numpy().copy()
    slots, siblings = [4, 0, 8, 2], [-1, 7, 3, -1]
    for node, (slot, sibling) in enumerate(zip(slots, siblings, strict=True)):
        own = slice(chunks.first[node], chunks.first[node] + chunks.counts[node])
        wanted[slot] = slab.slot(sums[own].sum(axis=0))
        if sibling >= 0:
            wanted[sibling] -= wanted[slot]

    partials = partials_of_sums(sums, variant)
    reduce_histograms(
        library(seed=n_features), slab, variant, chunks, partials, histograms, slots, siblings
    )
    assert np.array_equal(histograms.numpy(), wanted)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_level_from_rows_to_histograms(variant: HistogramVariant) -> None:
    slab = make_slab(3, [0, 513, 1, 40], [7, 1, 255, 90], constant_hessian=variant.constant_hessian)
    chunks = cut(slab, 128)
    histograms = random_histograms(slab, 4)
    wanted = histograms.numpy().copy()
    slots, siblings = [1, 3, 5, 7], [2, 4, -1, 8]
    for node, (slot, sibling) in enumerate(zip(slots, siblings, strict=True)):
        wanted[slot] = slab.slot(slab.histogram(slab.places(node)))
        if sibling >= 0:
            wanted[sibling] -= wanted[slot]

    kernels = library(seed=3)
    partials = build_histograms(kernels, slab, variant, chunks)
    reduce_histograms(kernels, slab, variant, chunks, partials, histograms, slots, siblings)
    assert np.array_equal(histograms.numpy(), wanted)


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_races_and_nothing_out_of_bounds(variant: HistogramVariant) -> None:
    slab = make_slab(5, [30, 0], [7, 1, 255], constant_hessian=variant.constant_hessian)
    chunks = cut(slab, 16)
    histograms = random_histograms(slab, 6)
    partials = build_histograms(library(seed=5), slab, variant, chunks)
    checked = library(seed=5, checked=True)
    reduce_histograms(checked, slab, variant, chunks, partials, histograms, [0, 8], [4, -1])
    assert np.array_equal(histograms[0].numpy(), slab.slot(slab.histogram(slab.places(0))))

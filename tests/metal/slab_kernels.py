"""Calls of the histogram and routing kernels on a slab, as the backend makes them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from metal.emulator.device import EmulatedDevice, EmulatorOptions
from metal.slabs import Slab

from torchgbdt.backends.metal_library import MetalLibrary
from torchgbdt.backends.row_chunks import HistogramVariant, RowChunks, cut_rows

UNWRITTEN = -7


def cut(slab: Slab, rows_per_chunk: int) -> RowChunks:
    return cut_rows(slab.begins, slab.sizes, rows_per_chunk)


def n_outputs(slab: Slab, variant: HistogramVariant) -> int:
    return len(slab.fixed_point) // (1 if variant.constant_hessian else 2)


def build_histograms(
    library: MetalLibrary,
    slab: Slab,
    variant: HistogramVariant,
    chunks: RowChunks,
    **constants: int,
) -> torch.Tensor:
    """Partial histograms, int32; constants that are given replace the variant's."""
    outputs = n_outputs(slab, variant)
    n_words = chunks.n_chunks * variant.chunk_words(slab.n_features, outputs)
    partials = torch.full((n_words,), UNWRITTEN, dtype=torch.int32)
    library.kernel("build_histograms", None, variant.constants() | constants)(
        slab.words(),
        torch.from_numpy(slab.row_order),
        torch.from_numpy(slab.fixed_point),
        partials,
        chunks.nodes,
        chunks.n_nodes,
        chunks.rows_per_chunk,
        slab.n_rows,
        slab.n_features,
        threads=(256 * variant.n_tiles(slab.n_features), chunks.n_chunks, outputs),
        group_size=(256, 1, 1),
    )
    return partials


def sums_of_partials(
    partials: torch.Tensor, slab: Slab, variant: HistogramVariant, chunks: RowChunks
) -> np.ndarray:
    """What partial histograms say: int64, (n_chunks, 1 + n_words, n_features, 256).

    The counts of all outputs are the same; nothing was written for features of padding.
    """
    shape = (n_outputs(slab, variant), chunks.n_chunks, variant.n_tiles(slab.n_features))
    cells = partials.numpy().reshape(*shape, variant.partial_words, 256, variant.tile_features)
    cells = cells.transpose(1, 0, 3, 2, 5, 4)  # chunk, output, word, tile, feature, bin
    cells = cells.reshape(*cells.shape[:3], -1, 256)
    assert (cells[..., slab.n_features :, :] == UNWRITTEN).all()
    cells = cells[..., : slab.n_features, :].astype(np.int64)
    assert (cells[:, :, 0] == cells[:, :1, 0]).all()
    sums = (cells[:, :, 2::2] << 32) | (cells[:, :, 1::2] & 0xFFFFFFFF)
    return np.concatenate((cells[:, 0, :1], sums.reshape(len(sums), -1, *sums.shape[3:])), axis=1)


def partials_of_sums(sums: np.ndarray, variant: HistogramVariant) -> torch.Tensor:
    """The inverse, with garbage for features of padding."""
    n_chunks, n_planes, n_features, _ = sums.shape
    n_tiles = variant.n_tiles(n_features)
    words_per_output = 1 if variant.constant_hessian else 2
    n_sums = (n_planes - 1) // words_per_output
    padded = np.full((n_chunks, n_planes, n_tiles * variant.tile_features, 256), UNWRITTEN)
    padded[:, :, :n_features] = sums
    outputs = []
    for output in range(n_sums):
        planes = [padded[:, 0]]
        for word in range(words_per_output):
            plane = padded[:, 1 + output * words_per_output + word]
            planes += [plane, plane >> 32]
        outputs.append(np.stack(planes, axis=1))
    cells = np.stack(outputs)  # output, chunk, word, feature, bin
    cells = cells.reshape(*cells.shape[:3], n_tiles, variant.tile_features, 256)
    cells = cells.transpose(0, 1, 3, 2, 5, 4).astype(np.uint32, casting="unsafe")
    return torch.from_numpy(cells.ravel().view(np.int32))


def reduce_histograms(
    library: MetalLibrary,
    slab: Slab,
    variant: HistogramVariant,
    chunks: RowChunks,
    partials: torch.Tensor,
    histograms: torch.Tensor,
    slots: Any,
    sibling_slots: Any,
) -> None:
    """Sum partial histograms into slots of ``histograms`` and subtract them from siblings'."""
    tile_cells = 256 * variant.tile_features
    outputs = n_outputs(slab, variant)
    library.kernel("reduce_histograms", None, variant.constants())(
        partials,
        slab.features(),
        histograms,
        chunks.targets(np.asarray(slots), np.asarray(sibling_slots)),
        chunks.n_chunks,
        slab.n_features,
        slab.total_bins,
        threads=(tile_cells * variant.n_tiles(slab.n_features), chunks.n_nodes, outputs),
        group_size=(256, 1, 1),
    )


def library(
    seed: int, edit: Callable[[str], str] | None = None, checked: bool = False
) -> MetalLibrary:
    """Kernels on the emulator, threads and groups in an order of the seed's.

    On some devices a group has at most 512 threads.
    """
    options = EmulatorOptions(shuffle_seed=seed, checked=checked, max_total_threads=512)
    device = EmulatedDevice(options)
    return MetalLibrary(lambda source: device.compile_shader(edit(source) if edit else source))

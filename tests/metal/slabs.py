"""Random slabs of nodes, as the buffers of a run hold them, and what kernels must make of them."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from torchgbdt.backends.row_chunks import RowChunks

LARGEST_GRADIENT = 2**30
LARGEST_HESSIAN = 2**29


@dataclass
class Slab:
    """Nodes of one level, their rows in stretches of row order that do not touch.

    Attributes
    ----------
    codes : uint8, (n_rows, n_features).
    n_value_bins : of each feature; its missing code.
    row_order : int32, (n_rows,); a permutation.
    fixed_point : int32, (n_words, n_rows); in row order.
    begins, sizes : int64, (n_nodes,).
    """

    codes: np.ndarray
    n_value_bins: np.ndarray
    row_order: np.ndarray
    fixed_point: np.ndarray
    begins: np.ndarray
    sizes: np.ndarray

    @property
    def n_rows(self) -> int:
        return self.codes.shape[0]

    @property
    def n_features(self) -> int:
        return self.codes.shape[1]

    @property
    def bin_offsets(self) -> np.ndarray:
        return np.concatenate(([0], np.cumsum(self.n_value_bins + 1)))

    @property
    def total_bins(self) -> int:
        return int(self.bin_offsets[-1])

    def words(self) -> torch.Tensor:
        padded = np.zeros((self.n_rows, -(-self.n_features // 8) * 8), np.uint8)
        padded[:, : self.n_features] = self.codes
        return torch.from_numpy(padded)

    def columns(self) -> torch.Tensor:
        return torch.from_numpy(np.ascontiguousarray(self.codes.T))

    def features(self) -> torch.Tensor:
        table = np.stack((self.bin_offsets[:-1], self.n_value_bins), axis=1)
        return torch.from_numpy(table.astype(np.int32))

    def places(self, node: int) -> np.ndarray:
        """Where the node's rows are in row order."""
        return np.arange(self.begins[node], self.begins[node] + self.sizes[node])

    def chunk_places(self, chunks: RowChunks) -> list[np.ndarray]:
        """The same of each chunk."""
        pieces = []
        for node in range(self.sizes.size):
            places = self.places(node)
            for i in range(max(-(-places.size // chunks.rows_per_chunk), 1)):
                pieces.append(places[i * chunks.rows_per_chunk :][: chunks.rows_per_chunk])
        return pieces

    def histogram(self, places: np.ndarray) -> np.ndarray:
        """Sums over rows, int64 (1 + n_words, n_features, 256)."""
        sums = np.zeros((1 + len(self.fixed_point), self.n_features, 256), np.int64)
        for feature in range(self.n_features):
            bins = self.codes[self.row_order[places], feature]
            np.add.at(sums[0, feature], bins, 1)
            for word, values in enumerate(self.fixed_point):
                np.add.at(sums[1 + word, feature], bins, values[places].astype(np.int64))
        return sums

    def slot(self, sums: np.ndarray) -> np.ndarray:
        """The cells of ``histogram`` that a slot has; int64, (1 + n_words, total_bins)."""
        cells = [sums[:, f, : n + 1] for f, n in enumerate(self.n_value_bins)]
        return np.concatenate(cells, axis=1)


def make_slab(
    seed: int,
    sizes: Sequence[int],
    n_value_bins: Sequence[int],
    *,
    n_outputs: int = 1,
    constant_hessian: bool = True,
    extreme: float | None = None,
    one_bin: bool = False,
) -> Slab:
    """A slab of nodes with these numbers of rows.

    Parameters
    ----------
    extreme : gradients are this times the largest, Hessians the largest; None: random ones, among
        them the largest, the smallest and 0.
    one_bin : all rows of a feature have its missing code.
    """
    rng = np.random.default_rng(seed)
    gaps = rng.integers(0, 4, len(sizes) + 1)
    begins = np.cumsum(gaps[:-1]) + np.cumsum([0, *sizes[:-1]])
    n_rows = int(sum(sizes) + gaps.sum())
    bins = np.asarray(n_value_bins)
    codes = rng.integers(0, bins + 1, (n_rows, bins.size))
    if one_bin:
        codes[:] = bins
    words = []
    for _ in range(n_outputs):
        words.append(_fixed_point(rng, n_rows, -LARGEST_GRADIENT, LARGEST_GRADIENT))
        if not constant_hessian:
            words.append(_fixed_point(rng, n_rows, 0, LARGEST_HESSIAN))
    fixed_point = np.stack(words)
    if extreme is not None:
        step = 1 if constant_hessian else 2
        fixed_point[::step] = int(extreme * LARGEST_GRADIENT)
        if not constant_hessian:
            fixed_point[1::2] = LARGEST_HESSIAN
    return Slab(
        codes.astype(np.uint8),
        bins,
        rng.permutation(n_rows).astype(np.int32),
        fixed_point.astype(np.int32),
        begins,
        np.array(sizes),
    )


def _fixed_point(rng: np.random.Generator, n_rows: int, low: int, high: int) -> np.ndarray:
    """Numbers low..high, every other of them low, 0 or high."""
    ends = rng.choice([low, 0, high], n_rows)
    return np.where(rng.random(n_rows) < 0.5, ends, rng.integers(low, high + 1, n_rows))

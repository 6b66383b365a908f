"""How the rows of a slab of nodes are cut into chunks for the Metal kernels, as lists of words.

A slab is at most ``MAX_SLAB_NODES`` nodes of one level. One threadgroup works on one chunk:
``rows_per_chunk`` rows of a node, or what is left of it. Chunks are numbered node by node; a node
without rows has one chunk without rows, so that every node has a group that writes its results.
"""

from dataclasses import dataclass

import numpy as np

from torchgbdt.core.arrays import Int32Array, Int64Array

MAX_SLAB_NODES = 256
"""Nodes of a slab: lists of up to 4 words per node fit into an argument of 1,024 words."""

GROUP_THREADS = 256
"""Threads of a threadgroup."""

N_CODES = 256
"""Bin codes of a feature, as n_codes in csrc/metal/partials.h."""


@dataclass(frozen=True)
class HistogramVariant:
    """A variant of build_histograms and reduce_histograms.

    Attributes
    ----------
    constant_hessian : every Hessian is 1, and fixed point has no words for Hessians.
    returning_atomics : False: no addition to threadgroup memory returns what was there; only where
        the Hessian is constant. The sums are the same; hardware decides which is faster.
    """

    constant_hessian: bool
    returning_atomics: bool = True

    @property
    def tile_features(self) -> int:
        """Features that a threadgroup sums at once."""
        return 8 if self.constant_hessian else 4

    @property
    def partial_words(self) -> int:
        """Words of 32 bits per cell of a partial histogram: count, and two per int64 sum."""
        return 3 if self.constant_hessian else 5

    @property
    def max_packed_rows(self) -> int:
        """Rows after which packed sums would overflow; csrc/metal/packed_cells.h says why."""
        if not self.constant_hessian:
            return 4_095
        return 65_535 if self.returning_atomics else 2_047

    def constants(self) -> dict[str, int]:
        """What csrc/metal/build_histograms.metal and reduce_histograms.metal ask for."""
        return {
            "CONSTANT_HESSIAN": int(self.constant_hessian),
            "RETURNING_ATOMICS": int(self.returning_atomics),
            "TILE_FEATURES": self.tile_features,
            "PARTIAL_WORDS": self.partial_words,
            "MAX_PACKED_ROWS": self.max_packed_rows,
        }

    def n_tiles(self, n_features: int) -> int:
        """Tiles of all features."""
        return -(-n_features // self.tile_features)

    def chunk_words(self, n_features: int, n_outputs: int) -> int:
        """int32 words of the partial histograms of one chunk."""
        cells = self.n_tiles(n_features) * self.tile_features * N_CODES
        return n_outputs * cells * self.partial_words


@dataclass(frozen=True)
class RowChunks:
    """The chunks of a slab's nodes.

    Attributes
    ----------
    rows_per_chunk : rows of each chunk but the last one of a node.
    first : int64, (n_nodes,); number of each node's first chunk.
    counts : int64, (n_nodes,); chunks of each node, at least 1.
    nodes : list argument ``nodes`` of the kernels; begin, n_rows, first chunk of each node.
    """

    rows_per_chunk: int
    first: Int64Array
    counts: Int64Array
    nodes: list[int]

    @property
    def n_nodes(self) -> int:
        """Nodes of the slab."""
        return int(self.counts.size)

    @property
    def n_chunks(self) -> int:
        """Chunks of all nodes: threadgroups of a dispatch."""
        return int(self.counts.sum())

    def targets(self, slots: Int32Array, sibling_slots: Int32Array) -> list[int]:
        """List argument ``targets`` of reduce_histograms.

        Parameters
        ----------
        slots : int32, (n_nodes,); where each histogram goes.
        sibling_slots : int32, (n_nodes,); where it is subtracted from the parent's, or -1.
        """
        columns = (self.first, self.counts, slots, sibling_slots)
        return [int(word) for word in np.stack(columns, axis=1).ravel()]


def cut_rows(begins: Int64Array, n_rows: Int64Array, rows_per_chunk: int) -> RowChunks:
    """Cut the rows of 1..MAX_SLAB_NODES nodes into chunks.

    Parameters
    ----------
    begins, n_rows : int64, (n_nodes,) each; a node's rows are row_order[begin : begin + n_rows].
    rows_per_chunk : > 0.
    """
    if not 0 < begins.size <= MAX_SLAB_NODES:
        raise ValueError(f"a slab has 1..{MAX_SLAB_NODES} nodes; found {begins.size}.")
    counts = np.maximum(-(-n_rows // rows_per_chunk), 1)
    first = np.cumsum(counts) - counts
    nodes = [int(word) for word in np.stack((begins, n_rows, first), axis=1).ravel()]
    return RowChunks(rows_per_chunk, first, counts, nodes)


def choose_rows_per_chunk(
    n_rows: Int64Array, groups_per_chunk: int, wanted_groups: int, least: int
) -> int:
    """Rows per chunk that give a device enough threadgroups, and none too little to do.

    Parameters
    ----------
    n_rows : int64, (n_nodes,); rows of the slab's nodes.
    groups_per_chunk : threadgroups that share a chunk: tiles times outputs.
    wanted_groups : threadgroups that keep the device busy.
    least : rows that are worth a threadgroup and its partial histogram.
    """
    wanted_chunks = max(wanted_groups // groups_per_chunk, 1)
    return max(-(-int(n_rows.sum()) // wanted_chunks), least)

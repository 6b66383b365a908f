"""From the nodes of a tree to the dispatches that grow it, for any number of rows.

Rows are cut by the functions that the backend calls, so that threadgroups are counted and not
estimated; where the same tree was recorded, the groups must be those of the record.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from metal_cost.devices import LINE_BYTES
from torchgbdt.backends.metal_run import MetalTuning
from torchgbdt.backends.row_chunks import (
    GROUP_THREADS,
    HistogramVariant,
    choose_rows_per_chunk,
    cut_rows,
)
from torchgbdt.core.arrays import Int64Array
from torchgbdt.core.tree import Tree

COPY = "copy_"
"""A torch operation among the kernels."""

WORD_FEATURES = 8
"""Rows of words are padded to so many features."""


@dataclass(frozen=True)
class LevelShape:
    """The nodes of one depth; int64 and bool, (n_nodes,).

    Attributes
    ----------
    rows : of each node.
    built : whether its histogram is summed from its rows; else it is parent - sibling.
    split : whether its rows are routed.
    """

    rows: Int64Array
    built: np.ndarray
    split: np.ndarray


@dataclass(frozen=True)
class TreeShape:
    """What decides how much work a tree is.

    Attributes
    ----------
    levels : those whose nodes are searched.
    n_columns : features that the tree splits at.
    """

    levels: list[LevelShape]
    n_columns: int

    @property
    def n_rows(self) -> int:
        """All rows."""
        return int(self.levels[0].rows.sum())

    def scaled(self, n_rows: int) -> "TreeShape":
        """The same shares of another number of rows."""
        factor = n_rows / self.n_rows
        levels = [
            LevelShape(np.rint(level.rows * factor).astype(np.int64), level.built, level.split)
            for level in self.levels
        ]
        return TreeShape(levels, self.n_columns)


def shape_of(tree: Tree, max_depth: int, min_samples_leaf: int) -> TreeShape:
    """The shape of a finished tree.

    Children are searched, and their parent's rows routed, where one of the two has rows enough for
    a split and the depth allows one.
    """
    levels = []
    nodes = np.zeros(1, np.int64)
    large = tree.count >= 2 * min_samples_leaf
    for depth in range(max_depth):
        rows = tree.count[nodes]
        built = np.ones(1, np.bool_) if depth == 0 else _smaller_siblings(rows)
        left, right = tree.left[nodes], tree.right[nodes]
        split = ~tree.is_leaf[nodes] & (large[left] | large[right]) & (depth + 1 < max_depth)
        levels.append(LevelShape(rows, built, split))
        if not split.any():
            break
        nodes = np.stack((left[split], right[split]), axis=1).ravel().astype(np.int64)
    n_columns = int(np.unique(tree.feature[~tree.is_leaf]).size)
    return TreeShape(levels, n_columns)


def halved_shape(n_rows: int, n_columns: int, max_depth: int) -> TreeShape:
    """Every split in halves: the most rows that histograms can be summed of."""
    levels = []
    for depth in range(max_depth):
        rows = np.full(2**depth, n_rows // 2**depth, np.int64)
        built = np.ones(1, np.bool_) if depth == 0 else _smaller_siblings(rows)
        levels.append(LevelShape(rows, built, np.full(2**depth, depth + 1 < max_depth)))
    return TreeShape(levels, n_columns)


def _smaller_siblings(rows: Int64Array) -> np.ndarray:
    left, right = rows[0::2], rows[1::2]
    return np.stack((left <= right, left > right), axis=1).ravel()


def touched_lines(rows: Int64Array, n_rows: int, rows_per_line: int) -> float:
    """Lines of memory that hold rows of each node, if a node's rows are anywhere among all rows.

    A line is moved whole for one row of it: near the root all rows of a line are wanted, further
    down one.
    """
    share = rows / n_rows
    return float((n_rows / rows_per_line * (1 - (1 - share) ** rows_per_line)).sum())


@dataclass(frozen=True)
class Work:
    """One dispatch.

    Attributes
    ----------
    level : depth of its nodes; -1 for kernels that go over all rows.
    groups : threadgroups.
    sizes : what its counters grow with, by name.
    """

    kernel: str
    level: int
    groups: int
    sizes: dict[str, float]

    def size(self, name: str) -> float:
        """One of ``sizes``, or ``groups``, or ``dispatches``, of which this is one."""
        return {"dispatches": 1.0, "groups": self.groups, **self.sizes}[name]


@dataclass(frozen=True)
class Planner:
    """Dispatches of trees on one kind of run."""

    n_features: int
    variant: HistogramVariant
    tuning: MetalTuning

    def tree(self, shape: TreeShape) -> list[Work]:
        """All dispatches of a tree, in their order."""
        n_rows = shape.n_rows
        result = [
            Work("write_words", -1, 1, {}),  # clears the extremes
            self._rows_work("compute_gradients", n_rows, 4_096),
            self._rows_work("round_gradients", n_rows, 256),
        ]
        for depth, level in enumerate(shape.levels):
            result += self._search(depth, level, n_rows)
            if level.split.any():
                result += self._routing(depth, level, n_rows)
        result.append(Work("write_words", -1, 1, {}))
        columns = shape.n_columns * n_rows / LINE_BYTES
        sizes = {"rows": n_rows, "columns": columns, "steps": n_rows * len(shape.levels)}
        result.append(Work("update_predictions", -1, -(-n_rows // GROUP_THREADS), sizes))
        return result

    def _rows_work(self, kernel: str, n_rows: int, at_most: int) -> Work:
        return Work(kernel, -1, min(-(-n_rows // GROUP_THREADS), at_most), {"rows": n_rows})

    def _search(self, depth: int, level: LevelShape, n_rows: int) -> Iterator[Work]:
        rows, tuning = level.rows[level.built], self.tuning
        n_tiles = self.variant.n_tiles(self.n_features)
        per_chunk = choose_rows_per_chunk(
            rows, n_tiles, tuning.wanted_groups, tuning.histogram_rows
        )
        n_chunks = cut_rows(np.zeros_like(rows), rows, per_chunk).n_chunks
        padded = -(-self.n_features // WORD_FEATURES) * WORD_FEATURES
        sizes = {
            "rows": int(rows.sum()),
            "chunks": n_chunks,
            "drains": _drains(rows, per_chunk, self.variant.max_packed_rows),
            "gathered": touched_lines(rows, n_rows, LINE_BYTES // padded),
            "cells": int(rows.sum()) * self.n_features,
        }
        yield Work("build_histograms", depth, n_chunks * n_tiles, sizes)
        n_nodes, n_built = level.rows.size, rows.size
        of_node = n_tiles * self.variant.tile_features
        sizes = {"chunks": n_chunks, "built": n_built, "derived": n_nodes - n_built}
        yield Work("reduce_histograms", depth, of_node * n_built, sizes)
        searched: dict[str, float] = {
            "nodes": n_nodes,
            "cells": n_nodes * self.n_features * GROUP_THREADS,
        }
        yield Work("scan_splits", depth, -(-n_nodes * self.n_features // 8), searched)
        yield Work("select_candidates", depth, n_nodes, {"nodes": n_nodes})

    def _routing(self, depth: int, level: LevelShape, n_rows: int) -> Iterator[Work]:
        rows, tuning = level.rows[level.split], self.tuning
        if rows.sum() < n_rows:  # torch copies the order of rows that stay where they are
            yield Work(COPY, depth, 0, {"rows": n_rows})
        per_chunk = choose_rows_per_chunk(rows, 1, tuning.wanted_groups, tuning.routing_rows)
        n_chunks = cut_rows(np.zeros_like(rows), rows, per_chunk).n_chunks
        sizes = {
            "rows": int(rows.sum()),
            "chunks": n_chunks,
            "gathered": touched_lines(rows, n_rows, LINE_BYTES),
        }
        yield Work("route_count", depth, n_chunks, sizes)
        yield Work("route_scatter", depth, n_chunks, sizes)


def _drains(rows: Int64Array, rows_per_chunk: int, max_packed_rows: int) -> int:
    """How often build_histograms empties threadgroup memory, over all chunks."""
    whole, rest = np.divmod(rows, rows_per_chunk)
    of_whole = -(-rows_per_chunk // max_packed_rows)
    return int((whole * of_whole + -(-rest // max_packed_rows)).sum())

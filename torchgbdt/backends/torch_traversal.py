"""From features to leaves: all rows, and all trees, take one step down at a time.

    node -> feature, bound -> key <= bound? -> left or right child -> ...  down to the leaves

Leaves send every row to themselves, so nobody asks which rows have arrived. Keys are bins, or X as
``torch_matrix.DeviceKeys`` has it.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from torchgbdt.backends.torch_transfers import Transfers
from torchgbdt.core.arrays import AnyArray, Int64Array
from torchgbdt.core.tree import Tree


@dataclass(frozen=True)
class DeviceTrees:
    """Trees laid end to end on a device, by node.

    A row at a node goes left if ``key <= bound``, or if ``key == also_left``; the right child comes
    after the left one.

    Attributes
    ----------
    feature : int64, (n_nodes,).
    bound, also_left : int32 or int64, as keys are.
    left : int64; counted over all trees.
    values : float32, (n_nodes, n_values).
    roots : int64, (n_trees,).
    depth : splits on the longest path of all trees.
    """

    feature: torch.Tensor
    bound: torch.Tensor
    also_left: torch.Tensor
    left: torch.Tensor
    values: torch.Tensor
    roots: torch.Tensor
    depth: int

    @classmethod
    def of(
        cls,
        nodes: Tree,
        offsets: Int64Array,
        bounds: AnyArray,
        missing: AnyArray | int,
        transfers: Transfers,
    ) -> "DeviceTrees":
        """Hand trees over, in one piece of 8 bytes per number.

        Parameters
        ----------
        nodes, offsets : as in ``Forest``.
        bounds : int32 or int64, (n_nodes,); what keys are compared with, of nodes that split. IN.
        missing : the key that means missing, for all nodes or each; above all bounds.
        """
        is_leaf, ids = nodes.is_leaf, np.arange(nodes.n_nodes)
        roots = offsets[:-1].astype(np.int64)
        first = np.repeat(roots, np.diff(offsets))  # of each node's tree
        limits = np.iinfo(bounds.dtype)
        left = np.where(is_leaf, ids, nodes.left + first)
        parts: list[AnyArray] = [
            np.where(is_leaf, 0, nodes.feature),
            np.where(is_leaf, limits.max, bounds),
            np.where(nodes.missing_left & ~is_leaf, missing, limits.min),
            left,
            roots,
            _as_integers(nodes.value),
        ]
        packed = transfers.to_device(np.concatenate([part.astype(np.int64) for part in parts]))
        ends = np.cumsum([0, *(part.size for part in parts)]).tolist()
        feature, bound, also_left, left_child, device_roots, values = (
            packed[begin:end] for begin, end in pairwise(ends)
        )
        dtype = torch.int32 if bounds.dtype == np.int32 else torch.int64
        return cls(
            feature,
            bound.to(dtype),
            also_left.to(dtype),
            left_child,
            values.to(torch.int32).view(torch.float32).reshape(nodes.value.shape),
            device_roots,
            forest_depth(nodes, offsets),
        )

    def leaves(self, keys: torch.Tensor) -> torch.Tensor:
        """The leaf of each row in each tree, int64, (n_rows, n_trees); counted over all trees.

        Parameters
        ----------
        keys : (n_rows, n_columns), contiguous; columns beyond the features are not read. IN.
        """
        n_rows, width = keys.shape
        ends = n_rows * width
        starts = torch.arange(0, ends, width, dtype=torch.int64, device=keys.device)[:, None]
        flat = keys.view(-1)
        node = self.roots.expand(n_rows, -1)
        for _ in range(self.depth):
            key = flat[starts + self.feature[node]]
            goes_left = (key <= self.bound[node]) | (key == self.also_left[node])
            node = self.left[node] + ~goes_left
        return node


def _as_integers(values: AnyArray) -> AnyArray:
    """The bits of float32 numbers, (n,)."""
    return np.ascontiguousarray(values, np.float32).view(np.int32).reshape(-1)


def forest_depth(nodes: Tree, offsets: Int64Array) -> int:
    """Splits on the longest path of trees laid end to end, as in ``Forest``; all at once."""
    roots = offsets[:-1].astype(np.int64)
    left = nodes.left + np.repeat(roots, np.diff(offsets))
    is_leaf, depth, level = nodes.is_leaf, 0, roots
    while True:
        level = level[~is_leaf[level]]
        if level.size == 0:
            return depth
        level = np.concatenate((left[level], left[level] + 1))
        depth += 1

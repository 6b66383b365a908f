"""Trees as flat arrays in breadth-first order, and forests as trees laid end to end.

Children of the i-th split node (counting from 0 in node order) are nodes 2i + 1 and 2i + 2, so
every well-formed tree has exactly one representation. Flags say what a node is; no special number
ever does. Arrays are checked when a model is made and again when a file is loaded.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from enum import IntFlag

import numpy as np

from torchgbdt.core.arrays import (
    SMALLEST_NORMAL,
    AnyArray,
    BinArray,
    BoolArray,
    Float32Array,
    Float64Array,
    Int32Array,
    Int64Array,
    UInt64Array,
)
from torchgbdt.core.errors import ModelFormatError

NO_NODE = -1
"""Child of a leaf; also the feature of a leaf."""

NO_CATEGORY_SET = -1
"""``category_set`` of every node that does not split on categories."""


class NodeFlag(IntFlag):
    """What a node is, and where its missing rows go."""

    LEAF = 1
    MISSING_LEFT = 2
    CATEGORICAL = 4


NODE_ARRAYS: dict[str, type[np.generic]] = {
    "feature": np.int32,
    "split_bin": np.int32,
    "threshold": np.float64,
    "left": np.int32,
    "right": np.int32,
    "value": np.float32,
    "gain": np.float64,
    "cover": np.float64,
    "count": np.int64,
    "flags": np.uint8,
    "category_set": np.int32,
}
"""Name and dtype of each per-node array, in the order in which files and digests list them."""


@dataclass(frozen=True)
class Tree:
    """One tree.

    Attributes
    ----------
    feature : int32, column of X; -1 for leaves.
    split_bin : int32, bins <= it go left.
    threshold : float64, x <= it goes left; 0 for leaves. +inf splits values from missing ones.
    left, right : int32, children; -1 for leaves.
    value : float32, (n_nodes, n_outputs), raw-prediction units, times learning_rate already; 0 for
        split nodes.
    gain : float64 > 0, loss units; 0 for leaves.
    cover : float64, sum of Hessians. count : int64, rows.
    flags : uint8, ``NodeFlag``.
    category_set : int32, row of ``Forest.category_sets``; -1 without.
    """

    feature: Int32Array
    split_bin: Int32Array
    threshold: Float64Array
    left: Int32Array
    right: Int32Array
    value: Float32Array
    gain: Float64Array
    cover: Float64Array
    count: Int64Array
    flags: BinArray
    category_set: Int32Array

    @property
    def n_nodes(self) -> int:
        """Leaves and splits."""
        return int(self.feature.size)

    @property
    def is_leaf(self) -> BoolArray:
        """bool, (n_nodes,)."""
        return (self.flags & NodeFlag.LEAF).astype(np.bool_)

    @property
    def missing_left(self) -> BoolArray:
        """bool, (n_nodes,): whether missing rows go left."""
        return (self.flags & NodeFlag.MISSING_LEFT).astype(np.bool_)

    @property
    def depth(self) -> int:
        """Splits on the longest path from the root."""
        level = np.zeros(self.n_nodes, np.int64)
        for node in np.flatnonzero(~self.is_leaf):
            level[self.left[node]] = level[self.right[node]] = level[node] + 1
        return int(level.max())


def _check_nodes(nodes: Tree, offsets: Int64Array, n_features: int) -> None:
    """Check one or more trees laid end to end, none of them empty; see ``Forest``."""
    n_splits = np.add.reduceat(~nodes.is_leaf, offsets[:-1], dtype=np.int64)
    _check_structure(nodes, offsets, n_splits)
    _check_splits(nodes, n_features)
    _check_numbers(nodes, np.repeat(offsets[:-1], n_splits))


def _require(condition: object, what: str) -> None:
    if not condition:
        raise ModelFormatError(f"invalid tree: {what}.")


def _check_arrays(tree: Tree) -> None:
    for name, dtype in NODE_ARRAYS.items():
        array = getattr(tree, name)
        _require(array.dtype == dtype, f"{name} has dtype {array.dtype}, not {np.dtype(dtype)}")
        _require(array.ndim == (2 if name == "value" else 1), f"{name} has {array.ndim} axes")
        _require(array.shape[0] == tree.n_nodes, f"{name} has {array.shape[0]} entries")
    _require(tree.value.shape[1] > 0, "value has no outputs")


def _check_structure(tree: Tree, offsets: Int64Array, n_splits: Int64Array) -> None:
    _require(not (tree.flags & ~np.uint8(sum(NodeFlag))).any(), "flags has an unknown bit")
    leaf = tree.is_leaf
    _require(not (tree.flags[leaf] & ~np.uint8(NodeFlag.LEAF)).any(), "a leaf has split flags")
    splits = np.flatnonzero(~leaf)
    first_split = np.cumsum(n_splits) - n_splits
    first_child = 2 * (np.arange(splits.size) - np.repeat(first_split, n_splits)) + 1
    _require(np.all(np.diff(offsets) == 2 * n_splits + 1), "splits and leaves do not add up")
    in_tree = splits - np.repeat(offsets[:-1], n_splits)
    _require(np.all(first_child > in_tree), "a child comes before its parent")
    _require(np.array_equal(tree.left[splits], first_child), "left is not breadth-first")
    _require(np.array_equal(tree.right[splits], first_child + 1), "right is not breadth-first")
    for name in ("left", "right", "feature"):
        _require(np.all(getattr(tree, name)[leaf] == NO_NODE), f"a leaf has a {name}")


def _check_splits(tree: Tree, n_features: int) -> None:
    split = ~tree.is_leaf
    feature = tree.feature[split]
    _require(np.all((feature >= 0) & (feature < n_features)), "a feature is out of range")
    _require(np.all(tree.split_bin[split] >= 0), "a split_bin is negative")
    _require(not np.isnan(tree.threshold).any(), "a threshold is NaN")
    _require(np.all(np.isfinite(tree.gain)) and np.all(tree.gain[split] > 0), "a gain is not > 0")
    _require(not (tree.flags & NodeFlag.CATEGORICAL).any(), "categorical splits are not supported")
    _require(np.all(tree.category_set == NO_CATEGORY_SET), "category sets are not supported")
    for name in ("split_bin", "threshold", "gain"):
        _require(np.all(getattr(tree, name)[~split] == 0), f"a leaf has a {name}")


def _check_numbers(tree: Tree, root_of_split: Int64Array) -> None:
    split = ~tree.is_leaf
    _require(np.all(np.isfinite(tree.value)), "a leaf value is not finite")
    _require(np.all(tree.value[split] == 0), "a split node has a value")
    normal = (tree.value == 0) | (np.abs(tree.value) >= SMALLEST_NORMAL)
    _require(np.all(normal), "a leaf value is subnormal")
    _require(np.all(np.isfinite(tree.cover) & (tree.cover >= 0)), "a cover is not >= 0")
    _require(np.all(tree.count >= 0), "a count is negative")
    left, right = tree.left[split] + root_of_split, tree.right[split] + root_of_split
    children = tree.count[left] + tree.count[right]
    _require(np.array_equal(tree.count[split], children), "counts of children do not add up")


@dataclass(frozen=True)
class Forest:
    """Trees laid end to end: the form in which models are stored and kernels predict.

    Attributes
    ----------
    offsets : int64, (n_trees + 1,); nodes of tree t are offsets[t]:offsets[t + 1].
    nodes : one Tree whose arrays hold all nodes; child indices count from their own tree's root.
    category_sets : uint64, (n_sets, 4); 256-bit masks of categories that go left.
    """

    offsets: Int64Array
    nodes: Tree
    category_sets: UInt64Array

    @property
    def n_trees(self) -> int:
        """Trees of all rounds."""
        return int(self.offsets.size - 1)

    @property
    def n_outputs(self) -> int:
        """Values per leaf."""
        return int(self.nodes.value.shape[1])

    def tree(self, index: int) -> Tree:
        """One tree, as views."""
        return _slice_nodes(self.nodes, int(self.offsets[index]), int(self.offsets[index + 1]))

    def trees(self) -> list[Tree]:
        """All trees, as views."""
        return [self.tree(index) for index in range(self.n_trees)]

    def slice(self, start: int, stop: int) -> "Forest":
        """Trees start..stop, as views."""
        begin, end = int(self.offsets[start]), int(self.offsets[stop])
        nodes = _slice_nodes(self.nodes, begin, end)
        return Forest(self.offsets[start : stop + 1] - begin, nodes, self.category_sets)

    @classmethod
    def from_trees(cls, trees: Sequence[Tree], n_outputs: int) -> "Forest":
        """Lay trees end to end; no trees give a forest that adds nothing."""
        offsets = np.concatenate(([0], np.cumsum([tree.n_nodes for tree in trees])))
        joined: dict[str, AnyArray] = {
            name: np.concatenate([_no_nodes(name, n_outputs), *(getattr(t, name) for t in trees)])
            for name in NODE_ARRAYS
        }
        return cls(offsets.astype(np.int64), Tree(**joined), np.zeros((0, 4), np.uint64))


def check_forest(forest: Forest, n_features: int) -> Forest:
    """Return the forest, or raise ModelFormatError if any of its arrays is not valid."""
    _check_arrays(forest.nodes)
    offsets, n_nodes = forest.offsets, forest.nodes.n_nodes
    _require(offsets.dtype == np.int64 and offsets.ndim == 1 and offsets.size, "bad tree offsets")
    _require(offsets[0] == 0 and offsets[-1] == n_nodes, "tree offsets do not cover the nodes")
    _require(np.all(offsets[1:] > offsets[:-1]), "tree offsets do not ascend")  # no overflow
    sets = forest.category_sets
    _require(sets.dtype == np.uint64 and sets.shape == (0, 4), "category sets are not supported")
    if forest.n_trees:
        _check_nodes(forest.nodes, offsets, n_features)
    return forest


def _slice_nodes(nodes: Tree, begin: int, end: int) -> Tree:
    return Tree(**{field.name: getattr(nodes, field.name)[begin:end] for field in fields(Tree)})


def _no_nodes(name: str, n_outputs: int) -> AnyArray:
    shape = (0, n_outputs) if name == "value" else (0,)
    return np.zeros(shape, NODE_ARRAYS[name])

"""Growing one tree, level by level: the only growth loop there is.

active nodes -> search: build the smaller siblings, (sum over ranks), subtract, find splits
             -> route rows -> next level

Records of nodes are those of ``backend.NODE_DTYPE``; ``Level`` and where histograms are kept:
``histogram_plan``. Nodes whose children need no search are not routed.
"""

from dataclasses import dataclass

import numpy as np

from torchgbdt.core.arrays import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int32Array,
    Int64Array,
    RecordArray,
)
from torchgbdt.core.backend import NODE_DTYPE, ComputeBackend
from torchgbdt.core.binning import BinThresholds
from torchgbdt.core.clock import PhaseClock
from torchgbdt.core.communicator import Communicator
from torchgbdt.core.errors import BackendError, InvalidParameterError
from torchgbdt.core.fixed_point import flush_subnormals, to_float
from torchgbdt.core.histogram_plan import HistogramPlan, Level
from torchgbdt.core.splits import SPLIT_DTYPE, SplitRules, leaf_weight
from torchgbdt.core.tree import NO_CATEGORY_SET, NO_NODE, NodeFlag, Tree

_LEAF = np.uint8(NodeFlag.LEAF)
_MISSING_LEFT = np.uint8(NodeFlag.MISSING_LEFT)


@dataclass(frozen=True)
class TreeLimits:
    """What bounds and scales one tree.

    Attributes
    ----------
    max_depth : levels of splits, or None.
    learning_rate : multiplies leaf weights.
    """

    max_depth: int | None
    learning_rate: float


@dataclass(frozen=True)
class RootTotals:
    """The root: this rank's rows, rows over all ranks, and sums over all ranks.

    Attributes
    ----------
    sums : int64, (tree_outputs, 2).
    """

    n_rows: int
    count: int
    sums: Int64Array


class TreeGrower:
    """Grows the trees of one run: holds what stays the same from tree to tree."""

    def __init__(
        self,
        backend: ComputeBackend,
        communicator: Communicator,
        plan: HistogramPlan,
        limits: TreeLimits,
        thresholds: BinThresholds,
        clock: PhaseClock,
    ) -> None:
        self._backend = backend
        self._communicator = communicator
        self._plan = plan
        self._limits = limits
        self._thresholds = thresholds
        self._clock = clock

    def grow(self, root: RootTotals, rules: SplitRules) -> Tree:
        """Grow one tree from the gradients that the backend holds."""
        tree = _TreeRecords(root)
        self._plan.start_tree()
        level = _root_level(root, rules)
        depth = 0
        while level is not None:
            depth += 1
            is_last = depth == self._limits.max_depth
            splits, left_sums, further = self._find_splits(level, rules, is_last)
            children = tree.split(level, splits, left_sums)
            level = None if is_last else self._next_level(level, splits, further, children, rules)
        return self._finish(tree, rules)

    def _find_splits(self, level: Level, rules: SplitRules, is_last: bool) -> "_Found":
        """The best split of every node of a level, batch by batch under the histogram budget."""
        found = []
        for positions, batch in self._plan.batches(level):
            with self._clock.phase("search_level"):
                splits, left_sums = self._backend.search_level(
                    batch, rules, self._communicator, not is_last
                )
            further = _splits_further(splits, rules, is_last)
            self._plan.keep(positions, batch.nodes, further)
            found.append((positions, (splits, left_sums, further)))
        return _in_order(found, level)

    def _next_level(
        self,
        level: Level,
        splits: RecordArray,
        further: BoolArray,
        children: "Children",
        rules: SplitRules,
    ) -> Level | None:
        """Route the rows of nodes whose children will be searched, and line the children up."""
        which = further.take(children.parents).nonzero()[0]
        if which.size == 0:
            return None
        parents = children.parents.take(which)
        nodes, splits = level.nodes.take(parents), splits.take(parents)
        with self._clock.phase("route_rows"):
            left_rows = self._backend.route_rows(nodes, splits)
        pairs = np.zeros((which.size, 2), NODE_DTYPE)
        pairs["node"] = children.nodes.take(which, 0)
        left, right = pairs[:, 0], pairs[:, 1]
        left["count"], right["count"] = splits["left_count"], splits["right_count"]
        left["begin"], right["begin"] = nodes["begin"], nodes["begin"] + left_rows
        left["n_rows"], right["n_rows"] = left_rows, nodes["n_rows"] - left_rows
        flat = pairs.reshape(-1)
        self._check_routing(flat)
        sums = children.sums.take(which, 0).reshape(-1, *level.sums.shape[1:])
        slots = self._plan.kept_slots(parents)
        return Level(flat, sums, _can_split(flat["count"], rules), slots)

    def _check_routing(self, children: RecordArray) -> None:
        """The rows that moved and the histogram counts of a split must agree."""
        totals = children["n_rows"].copy()
        self._communicator.sum_int64(totals)
        if totals.tolist() != children["count"].tolist():
            raise BackendError(
                f"backend {self._backend.name!r} routed other numbers of rows than its histograms "
                f"counted; its results cannot be trusted. Please report this as a bug."
            )

    def _finish(self, records: "_TreeRecords", rules: SplitRules) -> Tree:
        learning_rate = self._limits.learning_rate
        tree = records.build(rules, learning_rate, self._thresholds)
        if not np.isfinite(tree.value).all():
            raise InvalidParameterError(
                f"a leaf value exceeds float32 at learning_rate={learning_rate:g}, "
                f"reg_lambda={rules.reg_lambda:g}; lower the first, raise the second, or scale y."
            )
        return tree


def leaf_values(sums: Int64Array, rules: SplitRules, learning_rate: float) -> Float32Array:
    """``float32(learning_rate * weight)``, flushed; float32, (n_nodes, n_outputs)."""
    totals = to_float(sums, rules.scales)
    with np.errstate(over="ignore"):  # the caller sees the infinity
        weight = learning_rate * leaf_weight(totals[..., 0], totals[..., 1], rules.reg_lambda)
    values: Float32Array = flush_subnormals(weight)
    return values


def _splits_further(splits: RecordArray, rules: SplitRules, is_last: bool) -> BoolArray:
    """Whether a child of a node may be split in turn."""
    if is_last:
        return np.zeros(splits.size, np.bool_)
    larger = np.maximum(splits["left_count"], splits["right_count"])
    return _can_split(larger, rules)  # both are 0 where no split was found


def _can_split(counts: Int64Array, rules: SplitRules) -> BoolArray:
    """Whether two children of min_samples_leaf rows fit into a node."""
    result: BoolArray = counts >= 2 * rules.min_samples_leaf
    return result


_Found = tuple[RecordArray, Int64Array, BoolArray]
"""The split of each node of a level or batch, its left sums, and whether its children will be
searched."""


def _in_order(found: list[tuple[Int64Array, _Found]], level: Level) -> _Found:
    """What was found in batches, by position in the level; zeros for nodes of no batch."""
    n_nodes = level.nodes.size
    if found[0][0].size == n_nodes:  # as a rule: one batch, in this order
        return found[0][1]
    splits = np.zeros(n_nodes, SPLIT_DTYPE)
    left_sums = np.zeros(level.sums.shape, np.int64)
    further = np.zeros(n_nodes, np.bool_)
    for positions, batch in found:
        splits[positions], left_sums[positions], further[positions] = batch
    return splits, left_sums, further


def _root_level(root: RootTotals, rules: SplitRules) -> Level | None:
    """The root alone; None if it cannot split."""
    nodes = np.zeros(1, NODE_DTYPE)
    nodes["n_rows"] = root.n_rows
    nodes["count"] = root.count
    searched = _can_split(nodes["count"], rules)
    return Level(nodes, root.sums[None], searched, np.zeros(0, np.int32)) if searched[0] else None


@dataclass(frozen=True)
class Children:
    """The children of the nodes of a level that were split, left and right.

    Attributes
    ----------
    parents : int64, (n_split,); ascending positions in the level.
    nodes : int64, (n_split, 2).
    sums : int64, (n_split, 2, tree_outputs, 2).
    """

    parents: Int64Array
    nodes: Int64Array
    sums: Int64Array


class _TreeRecords:
    """What was found, level by level; the tree is written down from it at the end, all at once."""

    def __init__(self, root: RootTotals) -> None:
        self._root_count = root.count
        self._sums = [root.sums[None]]
        self._n_nodes = 1
        self._searched: list[Int32Array] = []  # nodes, and their splits as bytes
        self._splits: list[bytes] = []

    def split(self, level: Level, splits: RecordArray, left_sums: Int64Array) -> Children:
        """Add the children of the nodes of a level for which a split was found."""
        parents = splits["found"].nonzero()[0]
        end = self._n_nodes + 2 * parents.size
        nodes = np.arange(self._n_nodes, end).reshape(-1, 2)
        left = left_sums.take(parents, 0)
        sums = np.empty((parents.size, 2, *left.shape[1:]), np.int64)
        sums[:, 0], sums[:, 1] = left, level.sums.take(parents, 0) - left
        self._sums.append(sums.reshape(-1, *left.shape[1:]))
        self._n_nodes = end
        self._searched.append(level.nodes["node"])
        self._splits.append(splits.tobytes())
        return Children(parents, nodes, sums)

    def build(self, rules: SplitRules, learning_rate: float, thresholds: BinThresholds) -> Tree:
        """The flat tree: all nodes as leaves, and then the splits among them."""
        n_nodes, sums = self._n_nodes, np.concatenate(self._sums)
        feature, left, right = np.full((3, n_nodes), NO_NODE, np.int32)
        tree = Tree(
            feature=feature,
            split_bin=np.zeros(n_nodes, np.int32),
            threshold=np.zeros(n_nodes, np.float64),
            left=left,
            right=right,
            value=leaf_values(sums, rules, learning_rate),
            gain=np.zeros(n_nodes, np.float64),
            cover=_cover(sums, rules),
            count=np.empty(n_nodes, np.int64),
            flags=np.full(n_nodes, _LEAF, np.uint8),
            category_set=np.full(n_nodes, NO_CATEGORY_SET, np.int32),
        )
        tree.count[0] = self._root_count
        if n_nodes > 1:
            self._write_splits(tree, thresholds)
        return tree

    def _write_splits(self, tree: Tree, thresholds: BinThresholds) -> None:
        """Turn the nodes for which splits were found into split nodes."""
        # Joined as bytes: numpy would compare the fields of all records first, which takes longer.
        splits = np.frombuffer(b"".join(self._splits), SPLIT_DTYPE)
        found = splits["found"].nonzero()[0]
        splits, ids = splits.take(found), np.concatenate(self._searched).take(found)
        feature, split_bin = splits["feature"].copy(), splits["split_bin"].copy()
        cells = thresholds.bin_offsets.take(feature) + split_bin
        tree.feature[ids] = feature
        tree.split_bin[ids] = split_bin
        tree.threshold[ids] = thresholds.upper_bounds.take(cells)
        tree.left[ids] = np.arange(1, tree.n_nodes, 2)
        tree.right[ids] = np.arange(2, tree.n_nodes, 2)
        tree.value[ids] = 0
        tree.gain[ids] = splits["gain"]
        tree.count[1::2], tree.count[2::2] = splits["left_count"], splits["right_count"]
        tree.flags[ids] = splits["missing_left"] * _MISSING_LEFT


def _cover(sums: Int64Array, rules: SplitRules) -> Float64Array:
    """Hessian totals, float64, (n_nodes,), added over outputs in ascending order."""
    cover = np.zeros(sums.shape[0])
    for output, (_, hessian_scale) in enumerate(rules.scales.tolist()):
        cover += to_float(sums[:, output, 1], hessian_scale)
    return cover

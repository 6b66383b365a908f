"""Growing one tree, level by level: the only growth loop there is.

active nodes -> search: build the smaller siblings, (sum over ranks), subtract, find splits
             -> route rows -> next level
"""

import itertools
from dataclasses import dataclass

import numpy as np

from torchgbdt.core.arrays import (
    AnyArray,
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
        for depth in itertools.count(1):
            if level.nodes.size == 0:
                break
            is_last = depth == self._limits.max_depth
            splits, left_sums = self._find_splits(level, rules, is_last)
            splitting = splits["found"].nonzero()[0]
            nodes, splits = level.nodes.take(splitting), splits.take(splitting)
            children = tree.split(nodes, level.sums[splitting], splits, left_sums[splitting])
            if is_last:
                break
            level = self._next_level(splitting, nodes, splits, children, rules)
        return self._finish(tree, rules)

    def _find_splits(
        self, level: Level, rules: SplitRules, is_last: bool
    ) -> tuple[RecordArray, Int64Array]:
        """The best split of every node of a level, batch by batch under the histogram budget."""
        backend, clock = self._backend, self._clock
        splits = np.zeros(level.nodes.size, SPLIT_DTYPE)
        left_sums = np.zeros(level.sums.shape, np.int64)
        for positions, batch in self._plan.batches(level):
            with clock.phase("search_level"):
                found = backend.search_level(batch, rules, self._communicator, not is_last)
            if is_last:
                wanted = np.zeros(positions.size, np.bool_)
            else:
                wanted = _splits_further(found[0], rules)
            self._plan.keep(positions, batch.nodes, wanted)
            if positions.size == level.nodes.size:
                return found  # as a rule: the level is one batch, in its own order
            splits[positions], left_sums[positions] = found
        return splits, left_sums

    def _next_level(
        self,
        positions: Int64Array,
        nodes: RecordArray,
        splits: RecordArray,
        children: "Children",
        rules: SplitRules,
    ) -> Level:
        """Route the rows of nodes whose children will be searched, and line the children up."""
        further = _splits_further(splits, rules).nonzero()[0]
        nodes, splits = nodes.take(further), splits.take(further)
        pairs = np.zeros((further.size, 2), NODE_DTYPE)
        pairs["node"] = children.nodes[further]
        pairs["count"] = children.counts[further]
        if further.size:
            with self._clock.phase("route_rows"):
                left_rows = self._backend.route_rows(nodes, splits)
            begins, n_rows = pairs["begin"], pairs["n_rows"]
            begins[:, 0] = nodes["begin"]
            begins[:, 1] = nodes["begin"] + left_rows
            n_rows[:, 0] = left_rows
            n_rows[:, 1] = nodes["n_rows"] - left_rows
            self._check_routing(n_rows, pairs["count"])
        flat = pairs.reshape(-1)
        sums = children.sums[further].reshape(-1, *children.sums.shape[2:])
        slots = self._plan.kept_slots(positions[further])
        return Level(flat, sums, _can_split(flat["count"], rules), slots)

    def _check_routing(self, n_rows: Int64Array, counts: Int64Array) -> None:
        """The rows that moved and the histogram counts of a split must agree."""
        totals = n_rows.copy()
        self._communicator.sum_int64(totals)
        if not np.array_equal(totals, counts):
            raise BackendError(
                f"backend {self._backend.name!r} routed other numbers of rows than its histograms "
                f"counted; its results cannot be trusted. Please report this as a bug."
            )

    def _finish(self, records: "_TreeRecords", rules: SplitRules) -> Tree:
        learning_rate = self._limits.learning_rate
        values = leaf_values(records.sums, rules, learning_rate)
        tree = records.build(values, rules, self._thresholds)
        if not np.isfinite(tree.value).all():
            raise InvalidParameterError(
                f"a leaf value exceeds float32 at learning_rate={learning_rate:g}, "
                f"reg_lambda={rules.reg_lambda:g}; lower the first, raise the second, or scale y."
            )
        return tree


def leaf_values(sums: Int64Array, rules: SplitRules, learning_rate: float) -> Float32Array:
    """``float32(learning_rate * weight)``, flushed; float32, (n_nodes, n_outputs)."""
    values = np.empty(sums.shape[:-1], np.float32)
    for output, (gradient_scale, hessian_scale) in enumerate(rules.scales.tolist()):
        gradient = to_float(sums[:, output, 0], gradient_scale)
        hessian = to_float(sums[:, output, 1], hessian_scale)
        with np.errstate(over="ignore"):  # the caller sees the infinity
            weight = learning_rate * leaf_weight(gradient, hessian, rules.reg_lambda)
        values[:, output] = flush_subnormals(weight)
    return values


def _splits_further(splits: RecordArray, rules: SplitRules) -> BoolArray:
    """Whether a child of a node may be split in turn."""
    larger = np.maximum(splits["left_count"], splits["right_count"])
    result: BoolArray = splits["found"] & _can_split(larger, rules)
    return result


def _can_split(counts: Int64Array, rules: SplitRules) -> BoolArray:
    """Whether two children of min_samples_leaf rows fit into a node."""
    result: BoolArray = counts >= 2 * rules.min_samples_leaf
    return result


def _root_level(root: RootTotals, rules: SplitRules) -> Level:
    nodes = np.zeros(1, NODE_DTYPE)
    nodes["n_rows"] = root.n_rows
    nodes["count"] = root.count
    searched = _can_split(nodes["count"], rules)
    size = int(searched[0])  # an empty level if the root cannot split
    return Level(nodes[:size], root.sums[None][:size], searched[:size], np.zeros(0, np.int32))


@dataclass(frozen=True)
class Children:
    """The children of split nodes, left and right: (n_split, 2, ...) arrays."""

    nodes: Int64Array
    counts: Int64Array
    sums: Int64Array


class _TreeRecords:
    """Node totals and splits in breadth-first order, appended level by level."""

    _SPLIT_COLUMNS = ("feature", "split_bin", "gain", "missing_left")

    def __init__(self, root: RootTotals) -> None:
        self._sums = [root.sums[None]]
        self._counts = [np.array([root.count], np.int64)]
        self._split_nodes: list[Int32Array] = []
        self._splits: dict[str, list[AnyArray]] = {name: [] for name in self._SPLIT_COLUMNS}
        self._n_nodes = 1

    @property
    def sums(self) -> Int64Array:
        """int64, (n_nodes, tree_outputs, 2)."""
        return np.concatenate(self._sums)

    def split(
        self, nodes: RecordArray, sums: Int64Array, splits: RecordArray, left_sums: Int64Array
    ) -> Children:
        """Add the children of these nodes of one level, in node order."""
        end = self._n_nodes + 2 * nodes.size
        ids = np.arange(self._n_nodes, end, dtype=np.int64).reshape(-1, 2)
        counts = np.empty(ids.shape, np.int64)
        counts[:, 0], counts[:, 1] = splits["left_count"], splits["right_count"]
        child_sums = np.empty((nodes.size, 2, *sums.shape[1:]), np.int64)
        child_sums[:, 0], child_sums[:, 1] = left_sums, sums - left_sums
        self._sums.append(child_sums.reshape(-1, *sums.shape[1:]))
        self._counts.append(counts.reshape(-1))
        self._split_nodes.append(nodes["node"])
        for name, column in self._splits.items():  # joined as columns: records take much longer
            column.append(splits[name])
        self._n_nodes = end
        return Children(ids, counts, child_sums)

    def build(self, values: Float32Array, rules: SplitRules, thresholds: BinThresholds) -> Tree:
        """The flat tree; ``values`` hold the leaf value every node would have."""
        n_nodes = self._n_nodes
        tree = Tree(
            feature=np.full(n_nodes, NO_NODE, np.int32),
            split_bin=np.zeros(n_nodes, np.int32),
            threshold=np.zeros(n_nodes, np.float64),
            left=np.full(n_nodes, NO_NODE, np.int32),
            right=np.full(n_nodes, NO_NODE, np.int32),
            value=values,
            gain=np.zeros(n_nodes, np.float64),
            cover=_cover(self.sums, rules),
            count=np.concatenate(self._counts),
            flags=np.full(n_nodes, NodeFlag.LEAF, np.uint8),
            category_set=np.full(n_nodes, NO_CATEGORY_SET, np.int32),
        )
        if not self._split_nodes:
            return tree
        ids = np.concatenate(self._split_nodes)
        splits = {name: np.concatenate(column) for name, column in self._splits.items()}
        cells = thresholds.bin_offsets[splits["feature"]] + splits["split_bin"]
        tree.feature[ids] = splits["feature"]
        tree.split_bin[ids] = splits["split_bin"]
        tree.threshold[ids] = thresholds.upper_bounds[cells]
        tree.left[ids] = np.arange(1, 2 * ids.size, 2)
        tree.right[ids] = np.arange(2, 2 * ids.size + 1, 2)
        tree.value[ids] = 0
        tree.gain[ids] = splits["gain"]
        tree.flags[ids] = splits["missing_left"] * np.uint8(NodeFlag.MISSING_LEFT)
        return tree


def _cover(sums: Int64Array, rules: SplitRules) -> Float64Array:
    """Hessian totals, float64, (n_nodes,), added over outputs in ascending order."""
    cover = np.zeros(sums.shape[0])
    for output, (_, hessian_scale) in enumerate(rules.scales.tolist()):
        cover += to_float(sums[:, output, 1], hessian_scale)
    return cover

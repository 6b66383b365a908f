"""Growing one tree, level by level: the only growth loop there is.

active nodes -> build the smaller siblings -> (sum over ranks) -> subtract -> find splits
             -> route rows -> next level
"""

import itertools
from dataclasses import dataclass

import numpy as np

from torchgbdt.core.arrays import BoolArray, Float32Array, Float64Array, Int64Array, RecordArray
from torchgbdt.core.backend import NODE_DTYPE, ComputeBackend
from torchgbdt.core.binning import BinThresholds
from torchgbdt.core.clock import PhaseClock
from torchgbdt.core.communicator import Communicator
from torchgbdt.core.errors import BackendError, InvalidParameterError
from torchgbdt.core.fixed_point import flush_subnormals, to_float
from torchgbdt.core.histogram_plan import HistogramPlan, Level
from torchgbdt.core.splits import SPLIT_DTYPE, SplitRules, leaf_weight
from torchgbdt.core.tree import NO_CATEGORY_SET, NO_NODE, NodeFlag, Tree, check_tree


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
            if level.nodes.size == 0 or depth - 1 == self._limits.max_depth:
                break
            splits, left_sums = self._find_splits(level, rules, depth)
            splitting = np.flatnonzero(splits["found"])
            nodes, splits = level.nodes[splitting], splits[splitting]
            children = tree.split(nodes, level.sums[splitting], splits, left_sums[splitting])
            level = self._next_level(splitting, nodes, splits, children, rules, depth)
        return self._finish(tree, rules)

    def _find_splits(
        self, level: Level, rules: SplitRules, depth: int
    ) -> tuple[RecordArray, Int64Array]:
        """The best split of every node of a level, batch by batch under the histogram budget."""
        backend, clock = self._backend, self._clock
        splits = np.zeros(level.nodes.size, SPLIT_DTYPE)
        left_sums = np.zeros_like(level.sums)
        for positions, batch in self._plan.batches(level):
            with clock.phase("histograms"):
                backend.build_histograms(batch)
                if self._communicator.size > 1:
                    backend.exchange_histograms(batch, self._communicator)
                backend.subtract_histograms(batch)
            with clock.phase("find_splits"):
                splits[positions], left_sums[positions] = backend.find_splits(batch, rules)
            wanted = self._splits_further(splits[positions], rules, depth)
            self._plan.keep(positions, batch.nodes, wanted)
        return splits, left_sums

    def _splits_further(self, splits: RecordArray, rules: SplitRules, depth: int) -> BoolArray:
        """Whether a node's children will be searched."""
        if depth == self._limits.max_depth:
            return np.zeros(splits.size, np.bool_)
        larger = np.maximum(splits["left_count"], splits["right_count"])
        result: BoolArray = splits["found"] & _can_split(larger, rules)
        return result

    def _next_level(
        self,
        positions: Int64Array,
        nodes: RecordArray,
        splits: RecordArray,
        children: "Children",
        rules: SplitRules,
        depth: int,
    ) -> Level:
        """Route the rows of nodes whose children will be searched, and line the children up."""
        further = np.flatnonzero(self._splits_further(splits, rules, depth))
        nodes, splits = nodes[further], splits[further]
        left_rows = np.zeros(0, np.int64)
        if further.size:
            with self._clock.phase("route_rows"):
                left_rows = self._backend.route_rows(nodes, splits)
            self._check_routing(nodes, splits, left_rows)
        pairs = np.zeros((further.size, 2), NODE_DTYPE)
        pairs["node"] = children.nodes[further]
        pairs["count"] = children.counts[further]
        pairs["begin"] = np.stack((nodes["begin"], nodes["begin"] + left_rows), axis=1)
        pairs["n_rows"] = np.stack((left_rows, nodes["n_rows"] - left_rows), axis=1)
        flat = pairs.reshape(-1)
        sums = children.sums[further].reshape(-1, *children.sums.shape[2:])
        slots = self._plan.kept_slots(positions[further])
        return Level(flat, sums, _can_split(flat["count"], rules), slots)

    def _check_routing(
        self, nodes: RecordArray, splits: RecordArray, left_rows: Int64Array
    ) -> None:
        """A split's histogram counts and the rows that moved must agree."""
        totals = np.stack((left_rows, nodes["n_rows"] - left_rows))
        self._communicator.sum_int64(totals)
        if not np.array_equal(totals, np.stack((splits["left_count"], splits["right_count"]))):
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
        return check_tree(tree, self._thresholds.n_features)


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

    def __init__(self, root: RootTotals) -> None:
        self._sums = [root.sums[None]]
        self._counts = [np.array([root.count], np.int64)]
        self._split_nodes: list[RecordArray] = []
        self._splits: list[RecordArray] = []
        self._n_nodes = 1

    @property
    def sums(self) -> Int64Array:
        """int64, (n_nodes, tree_outputs, 2)."""
        return np.concatenate(self._sums)

    def split(
        self, nodes: RecordArray, sums: Int64Array, splits: RecordArray, left_sums: Int64Array
    ) -> Children:
        """Add the children of these nodes of one level, in node order."""
        ids = self._n_nodes + np.arange(2 * nodes.size, dtype=np.int64).reshape(-1, 2)
        counts = np.stack((splits["left_count"], splits["right_count"]), axis=1)
        child_sums = np.stack((left_sums, sums - left_sums), axis=1)
        self._sums.append(child_sums.reshape(-1, *sums.shape[1:]))
        self._counts.append(counts.reshape(-1))
        self._split_nodes.append(nodes)
        self._splits.append(splits)
        self._n_nodes += ids.size
        return Children(ids, counts, child_sums)

    def build(self, values: Float32Array, rules: SplitRules, thresholds: BinThresholds) -> Tree:
        """The flat tree; ``values`` hold the leaf value every node would have."""
        n_nodes = self._n_nodes
        flags = np.full(n_nodes, NodeFlag.LEAF, np.uint8)
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
            flags=flags,
            category_set=np.full(n_nodes, NO_CATEGORY_SET, np.int32),
        )
        if not self._splits:
            return tree
        ids = np.concatenate(self._split_nodes)["node"]
        splits = np.concatenate(self._splits)
        for name in ("feature", "split_bin", "gain"):
            getattr(tree, name)[ids] = splits[name]
        tree.threshold[ids] = [
            thresholds.upper_bound(feature, split_bin)
            for feature, split_bin in zip(
                splits["feature"].tolist(), splits["split_bin"].tolist(), strict=True
            )
        ]
        tree.left[ids] = 2 * np.arange(ids.size) + 1
        tree.right[ids] = 2 * np.arange(ids.size) + 2
        tree.value[ids] = 0
        flags[ids] = np.where(splits["missing_left"], NodeFlag.MISSING_LEFT, 0)
        return tree


def _cover(sums: Int64Array, rules: SplitRules) -> Float64Array:
    """Hessian totals, float64, (n_nodes,), added over outputs in ascending order."""
    cover = np.zeros(sums.shape[0])
    for output, (_, hessian_scale) in enumerate(rules.scales.tolist()):
        cover += to_float(sums[:, output, 1], hessian_scale)
    return cover

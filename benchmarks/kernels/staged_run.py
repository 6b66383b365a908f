"""A run of any backend that stands still at one level of a tree, so that one call can be repeated.

The calls are those of ``core/backend.py``, in the order of ``core/growth.py``, but every node of a
level is built from its rows and none is subtracted. What the native backend leaves behind must
equal what the oracle does, with ``==``: each benchmark checks that before it takes any time.
"""

from dataclasses import dataclass

import numpy as np
import synthetic

from torchgbdt.core.arrays import Float32Array, Int64Array, RecordArray
from torchgbdt.core.backend import NO_SLOT, NODE_DTYPE, ComputeBackend, LevelBatch, RunSettings
from torchgbdt.core.communicator import SINGLE_RANK
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.fixed_point import (
    GRADIENT_BITS,
    HESSIAN_BITS,
    minimum_hessian,
    scale_exponent,
)
from torchgbdt.core.run_data import RawData, TrainingData
from torchgbdt.core.settings import TrainerSettings
from torchgbdt.core.splits import SplitRules


@dataclass(frozen=True)
class Shape:
    """Which rows, and how deep the level is that the run stands at."""

    objective: str = "squared_error"
    n_rows: int = 65_536
    n_features: int = 28
    n_classes: int = 0
    depth: int = 5

    def rows(self) -> tuple[Float32Array, Float32Array]:
        """X and y; every tenth value of the first feature is missing."""
        X, y = synthetic.make_rows(1, self.n_rows, self.n_features, 2, self.n_classes, 1.0)
        X[::10, 0] = np.nan
        return X, y


class StagedRun:
    """Binned, prepared, and grown down to the level of ``shape.depth``.

    Attributes
    ----------
    root : the batch of the root alone.
    level : that of the level's nodes; their histograms are built and not yet searched.
    routed : nodes and splits of each level above, from the root down.
    """

    def __init__(self, backend: ComputeBackend, shape: Shape) -> None:
        self.backend, self.shape = backend, shape
        X, y = shape.rows()
        self.source = HostMatrix(X)
        settings = TrainerSettings(objective=shape.objective)
        data = TrainingData(RawData(self.source, y)).check(settings, SINGLE_RANK)
        self.data = data.quantize(settings, backend, SINGLE_RANK)
        self.thresholds = self.data.train.thresholds
        baseline = self.data.fit_baseline(None, SINGLE_RANK)
        objective = self.data.objective
        tree_outputs = objective.n_outputs // objective.trees_per_round
        n_slots = 2**shape.depth
        backend.prepare(
            self.data.run_rows(baseline, SINGLE_RANK)[0],
            [],
            RunSettings(self.thresholds, objective, baseline, tree_outputs,
                        objective.constant_hessian, n_slots),
        )  # fmt: skip
        backend.sample_rows(0)
        self.scales = self._scales(settings)
        self.root = self._root(backend.round_gradients(self.scales))
        self.level = self.root
        self.routed: list[tuple[RecordArray, RecordArray]] = []
        for _ in range(shape.depth):
            self._descend()
        backend.build_histograms(self.level)

    def _scales(self, settings: TrainerSettings) -> Int64Array:
        """Of the first output's gradients; keeps the rules of its tree as well."""
        largest = self.backend.compute_gradients(0).largest
        bits = (GRADIENT_BITS, HESSIAN_BITS)
        scales = np.array(
            [[scale_exponent(*pair) for pair in zip(row, bits, strict=True)] for row in largest]
        )
        least = [minimum_hessian(settings.min_child_weight, s) for s in scales[:, 1].tolist()]
        self.rules = SplitRules(
            settings.reg_lambda,
            settings.gamma,
            settings.min_samples_leaf,
            np.array(least, np.int64),
            scales,
        )
        return scales

    def _root(self, totals: Int64Array) -> LevelBatch:
        nodes = np.zeros(1, NODE_DTYPE)
        nodes["n_rows"] = nodes["count"] = self.shape.n_rows
        nodes["sibling_slot"], nodes["build"] = NO_SLOT, True
        return LevelBatch(nodes, totals[None])

    def _descend(self) -> None:
        """Split every node of the level that can be split, and route its rows."""
        batch = self.level
        self.backend.build_histograms(batch)
        splits, left_sums = self.backend.find_splits(batch, self.rules)
        found = splits["found"]
        nodes, splits = batch.nodes[found], splits[found]
        left_rows = self.backend.route_rows(nodes, splits)
        sums = np.stack((left_sums[found], batch.sums[found] - left_sums[found]), axis=1)
        self.routed.append((nodes, splits))
        self.level = LevelBatch(_children(nodes, left_rows), sums.reshape(-1, *sums.shape[2:]))

    def stand_above(self) -> None:
        """Bring the rows back to where the last level was not routed yet."""
        self.backend.sample_rows(0)
        for nodes, splits in self.routed[:-1]:
            self.backend.route_rows(nodes, splits)


def _children(nodes: RecordArray, left_rows: Int64Array) -> RecordArray:
    """Both children of each node, built in slots of their own."""
    pairs = np.zeros((nodes.size, 2), NODE_DTYPE)
    pairs["begin"] = np.stack((nodes["begin"], nodes["begin"] + left_rows), axis=1)
    pairs["n_rows"] = np.stack((left_rows, nodes["n_rows"] - left_rows), axis=1)
    children = pairs.reshape(-1)
    children["count"] = children["n_rows"]
    children["node"] = children["slot"] = np.arange(children.size)
    children["sibling_slot"], children["build"] = NO_SLOT, True
    return children

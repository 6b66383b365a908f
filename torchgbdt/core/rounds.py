"""One boosting round: gradients of the state at its start, one tree per output, then the update."""

import itertools
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from torchgbdt.core.arrays import Int64Array
from torchgbdt.core.backend import ComputeBackend
from torchgbdt.core.clock import PhaseClock
from torchgbdt.core.communicator import Communicator
from torchgbdt.core.errors import InvalidDataError
from torchgbdt.core.extremes import GradientExtremes
from torchgbdt.core.fixed_point import (
    GRADIENT_BITS,
    HESSIAN_BITS,
    minimum_hessian,
    scale_exponent,
)
from torchgbdt.core.growth import RootTotals, TreeGrower
from torchgbdt.core.metrics import AreaUnderCurve, MeanLoss, Metric, mean_loss
from torchgbdt.core.observer import History
from torchgbdt.core.settings import TrainerSettings
from torchgbdt.core.splits import SplitRules
from torchgbdt.core.tree import Tree


@dataclass(frozen=True)
class Booster:
    """Runs rounds on a prepared backend."""

    backend: ComputeBackend
    communicator: Communicator
    grower: TreeGrower
    settings: TrainerSettings
    trees_per_round: int
    clock: PhaseClock

    def boost(self, round_index: int) -> list[Tree]:
        """Grow the trees of one round and add them to all predictions."""
        trees = [
            self._grow(round_index * self.trees_per_round + output, output)
            for output in range(self.trees_per_round)
        ]
        with self.clock.phase("update_predictions"):
            for output, tree in enumerate(trees):
                self.backend.update_predictions(tree, output)
        return trees

    def _grow(self, tree_index: int, output: int) -> Tree:
        with self.clock.phase("gradients"):
            n_rows = self.backend.sample_rows(tree_index)
            count = np.array([n_rows], np.int64)
            self.communicator.sum_int64(count)
            extremes = self.backend.compute_gradients(output)
            scales = self._scales(extremes, tree_index)
            sums = self.backend.round_gradients(scales)
            self.communicator.sum_int64(sums)
        root = RootTotals(n_rows, int(count[0]), sums)
        return self.grower.grow(root, self._rules(scales))

    def _scales(self, extremes: GradientExtremes, tree_index: int) -> Int64Array:
        """Powers of two over all ranks, int64 (tree_outputs, 2); a typed error on every rank."""
        flags = (-extremes.smallest_hessian, float(not extremes.finite))
        local = np.array([*extremes.largest.reshape(-1).tolist(), *flags])
        *largest, negative, not_finite = self.communicator.max_float64(local).tolist()
        if not_finite > 0:
            raise InvalidDataError(
                f"a gradient or Hessian of tree {tree_index} is NaN or infinite; predictions left "
                f"float32's range. Lower learning_rate, or scale a real y."
            )
        if negative > 0:
            raise InvalidDataError(f"a Hessian of tree {tree_index} is negative; none may be.")
        bits = itertools.cycle((GRADIENT_BITS, HESSIAN_BITS))
        scales = [scale_exponent(*one) for one in zip(largest, bits, strict=False)]
        return np.array(scales, np.int64).reshape(extremes.largest.shape)

    def _rules(self, scales: Int64Array) -> SplitRules:
        settings = self.settings
        min_hessian = [
            minimum_hessian(settings.min_child_weight, scale) for scale in scales[:, 1].tolist()
        ]
        return SplitRules(
            settings.reg_lambda,
            settings.gamma,
            settings.min_samples_leaf,
            np.array(min_hessian, np.int64),
            scales,
        )


@dataclass(frozen=True)
class EvaluatedSet:
    """What metrics need to know of a data set over all ranks.

    Attributes
    ----------
    index : for the backend; 0 is the training data.
    total_weight : exact, > 0.
    label_variance : weighted variance of real targets; 0 where no metric needs it.
    weight_scale : power of two at which weights become integers; see ``ranking.weight_scale``.
    """

    index: int
    total_weight: Fraction
    label_variance: Fraction
    weight_scale: int


class Evaluation:
    """Evaluates metrics after each round and keeps their history.

    Parameters
    ----------
    datasets : by the names of the history.
    """

    def __init__(
        self,
        backend: ComputeBackend,
        communicator: Communicator,
        metrics: list[Metric],
        datasets: dict[str, EvaluatedSet],
    ) -> None:
        self._backend = backend
        self._communicator = communicator
        self._metrics = metrics
        self._datasets = datasets
        self.history: History = {name: {metric.name: [] for metric in metrics} for name in datasets}

    def record(self) -> None:
        """Append each metric of each data set at the current predictions."""
        for name, metrics in self.measure().items():
            for metric, value in metrics.items():
                self.history[name][metric].append(value)

    def measure(self) -> dict[str, dict[str, float]]:
        """Each metric of each data set at the current predictions."""
        return {
            name: {metric.name: self._evaluate(metric, data) for metric in self._metrics}
            for name, data in self._datasets.items()
        }

    def _evaluate(self, metric: Metric, data: EvaluatedSet) -> float:
        if isinstance(metric, MeanLoss):
            losses = self._backend.evaluate(metric, data.index, self._communicator)
            if not losses.finite:
                return metric.worst
            mean = mean_loss(losses.total, losses.scale, data.total_weight)
            return metric.finish(mean, data.label_variance)
        assert isinstance(metric, AreaUnderCurve)
        pairs = self._backend.count_pairs(data.index, data.weight_scale, self._communicator)
        return metric.finish(pairs) if pairs.finite else metric.worst

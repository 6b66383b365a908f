"""Binned data sets of targets or class codes on their way to the backend.

Datasets --exact sums over ranks--> baseline --> RunRows
"""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from torchgbdt.core.arrays import AnyArray, Float32Array, Float64Array
from torchgbdt.core.backend import RunRows
from torchgbdt.core.communicator import Communicator
from torchgbdt.core.dataset import Dataset
from torchgbdt.core.errors import InvalidDataError
from torchgbdt.core.exact_sum import ExactSum, exact_weighted_sum
from torchgbdt.core.fixed_point import flush_subnormals
from torchgbdt.core.objectives import Objective


@dataclass(frozen=True)
class QuantizedData:
    """Binned data sets, the training data first, labelled with what the objective learns from.

    Attributes
    ----------
    datasets : their labels are real targets, float32 or float64, or int32 class codes.
    margins : of each set's kept rows, float32 (n_rows, n_outputs), or None.
    starts : prediction sums of each set's kept rows, for continued training; or None.
    are_own : whether each set was binned for this run, and is nobody else's.
    classes : class labels in code order; None for real targets.
    """

    datasets: tuple[Dataset, ...]
    margins: list[Float32Array | None]
    starts: list[Float32Array | None]
    are_own: list[bool]
    objective: Objective
    classes: AnyArray | None

    @property
    def train(self) -> Dataset:
        """The data that trees are grown on."""
        return self.datasets[0]

    def any_weights(self, communicator: Communicator) -> bool:
        """Whether any rank's training rows have weights."""
        return communicator.any_true(self.train.weights is not None)

    def fit_baseline(self, given: float | None, communicator: Communicator) -> Float64Array:
        """float64, (n_outputs,): the given baseline; 0 with margins; else the fitted one."""
        objective = self.objective
        if given is not None:
            return np.full(objective.n_outputs, given, np.float64)
        if self.margins[0] is not None:
            return np.zeros(objective.n_outputs, np.float64)
        train = self.train
        sums = objective.label_sums(_labels_of(train), train.weights)
        for one in sums:
            communicator.sum_int64(one.limbs)
        total = total_weight(train, communicator).total()
        return objective.fit_baseline([one.total() for one in sums], total)

    def run_rows(self, baseline: Float64Array, communicator: Communicator) -> list[RunRows]:
        """The rows of each data set as the kernels see them.

        Raises
        ------
        InvalidDataError : a target lies too far from the baseline for float32.
        """
        result = []
        for index, dataset in enumerate(self.datasets):
            margins = self.margins[index]
            labels = self.objective.kernel_labels(_labels_of(dataset), baseline, margins)
            _check_finite(labels, dataset, labels_name(index), "the baseline (or base_margin)")
            total_rows = np.array([dataset.n_rows], np.int64)
            communicator.sum_int64(total_rows)
            result.append(
                RunRows(
                    dataset.bins,
                    labels,
                    dataset.weights,
                    None if self.objective.centers_labels else margins,
                    int(total_rows[0]),
                    self.starts[index],
                    bins_are_shared=not self.are_own[index],
                )
            )
        return result

    def label_variance(self, index: int, communicator: Communicator) -> Fraction:
        """Weighted variance of a data set's real targets over all ranks.

        Exact for targets that are rounded to float32 once their rounded mean is subtracted.

        Raises
        ------
        InvalidDataError : a target lies too far from the mean for float32.
        """
        dataset = self.datasets[index]
        targets = _labels_of(dataset)
        total = total_weight(dataset, communicator).total()
        sums = exact_weighted_sum(targets, dataset.weights)
        communicator.sum_int64(sums.limbs)
        mean = float(sums.total() / total)
        rounded = flush_subnormals(targets.astype(np.float64) - mean)
        _check_finite(rounded, dataset, labels_name(index), "its mean")
        centred, moments = rounded.astype(np.float64), []
        for values in (centred, centred * centred):  # squares of float32 are exact in float64
            moment = exact_weighted_sum(values, dataset.weights)
            communicator.sum_int64(moment.limbs)
            moments.append(moment.total() / total)
        return moments[1] - moments[0] ** 2

    def largest_weight(self, index: int, communicator: Communicator) -> float:
        """The largest weight of a data set over all ranks; rows without weights have 1."""
        dataset = self.datasets[index]
        weights = np.ones(min(dataset.n_rows, 1)) if dataset.weights is None else dataset.weights
        largest = float(weights.max(initial=0))
        return float(communicator.max_float64(np.array([largest]))[0])


def labels_name(index: int) -> str:
    """How messages call the labels of a data set: 0 is training, then evaluation sets."""
    return "y" if index == 0 else f"eval_set[{index - 1}] y"


def total_weight(data: Dataset, communicator: Communicator) -> ExactSum:
    """Exact sum of the weights over all ranks; rows without weights count 1."""
    result = ExactSum()
    if data.weights is None:
        result.add(np.array([float(data.n_rows)]))
    else:
        result = exact_weighted_sum(data.weights, None)
    communicator.sum_int64(result.limbs)
    return result


def total_weights(data: QuantizedData, communicator: Communicator) -> list[Fraction]:
    """The exact total weight of each data set, > 0.

    Raises
    ------
    InvalidDataError : no rank has a row that counts.
    """
    totals = [total_weight(one, communicator).total() for one in data.datasets]
    for index, total in enumerate(totals[1:]):
        if total == 0:
            raise InvalidDataError(
                f"eval_set[{index}] has no row with a positive weight; nothing can be evaluated on."
            )
    return totals


def _labels_of(data: Dataset) -> AnyArray:
    assert data.labels is not None
    return data.labels


def _check_finite(labels: Float32Array, data: Dataset, name: str, center: str) -> None:
    """Raise InvalidDataError if a target lies too far from what it is centred on for float32."""
    if not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        input_row = row if data.kept_rows is None else int(data.kept_rows[row])
        raise InvalidDataError(
            f"{name} minus {center} exceeds float32 in row {input_row}; scale y."
        )

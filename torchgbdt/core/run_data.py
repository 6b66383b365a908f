"""The data of one run on its way from the user to the backend.

    RawData (X, y, weights) --check--> --quantize--> Dataset --centre on the baseline--> RunRows

A ``Dataset`` that is binned already enters at the second arrow.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from torchgbdt.core.arrays import AnyArray, BoolArray, Float32Array, Float64Array
from torchgbdt.core.backend import ComputeBackend, RunRows
from torchgbdt.core.binning import BinThresholds
from torchgbdt.core.communicator import Communicator
from torchgbdt.core.dataset import Dataset, quantize
from torchgbdt.core.errors import InvalidDataError, InvalidParameterError
from torchgbdt.core.exact_sum import ExactSum, exact_weighted_sum
from torchgbdt.core.feature_source import FeatureSource
from torchgbdt.core.objectives import Objective
from torchgbdt.core.row_values import check_labels, check_margins, check_weights
from torchgbdt.core.settings import BinningSettings, TrainerSettings, default_of


@dataclass(frozen=True)
class RawData:
    """X, y and weights before quantization; one entry per input row.

    Attributes
    ----------
    name : how error messages call the set: "" for training data, "eval_set[0]" and so on.
    """

    source: FeatureSource
    labels: AnyArray | None
    weights: AnyArray | None = None
    feature_names: tuple[str, ...] | None = None
    name: str = ""

    def check(self, *, is_share: bool = False) -> "RawData":
        """Return the data with labels and weights, where there are any, checked.

        Parameters
        ----------
        is_share : other ranks hold rows of the same set.

        Raises
        ------
        InvalidDataError : see ``row_values``.
        """
        prefix = f"{self.name} " if self.name else ""
        n_rows, checked = self.source.n_rows, self
        if self.weights is not None:
            name = f"{prefix}sample_weight"
            weights = check_weights(self.weights, n_rows, name, may_be_all_zero=is_share)
            checked = replace(checked, weights=weights)
        if self.labels is not None:
            labels = check_labels(self.labels, n_rows, f"{prefix}y", checked.dropped_rows())
            checked = replace(checked, labels=labels)
        return checked

    def dropped_rows(self) -> BoolArray | None:
        """bool, (n_rows,), the rows of weight zero of checked data; None without weights."""
        return None if self.weights is None else self.weights == 0

    def quantize(
        self,
        settings: BinningSettings,
        backend: ComputeBackend,
        communicator: Communicator,
        thresholds: BinThresholds | None = None,
    ) -> Dataset:
        """Bin checked data with given thresholds, or fit them."""
        return quantize(
            self.source,
            self.labels,
            self.weights,
            settings,
            backend.bin_features,
            feature_names=self.feature_names,
            thresholds=thresholds,
            communicator=communicator,
        )


@dataclass(frozen=True)
class TrainingData:
    """What the user handed to ``fit``.

    Attributes
    ----------
    margins, valid_margins : per input row, or None; replace the fitted baseline.
    """

    train: RawData | Dataset
    valids: Sequence[RawData | Dataset] = ()
    margins: AnyArray | None = None
    valid_margins: Sequence[AnyArray | None] = ()

    def check(self, settings: TrainerSettings, *, is_share: bool = False) -> "TrainingData":
        """Return the data with every array checked, or raise InvalidDataError.

        ``is_share``: other ranks hold rows of the same sets.
        """
        train = _check_one(self.train, "", is_share)
        valids = [_check_one(v, f"eval_set[{i}]", is_share) for i, v in enumerate(self.valids)]
        for index, valid in enumerate(valids):
            _check_same_features(train, valid, f"eval_set[{index}]")
        if isinstance(train, Dataset):
            _check_binning_settings(train.settings, settings)
        valid_margins = list(self.valid_margins) or [None] * len(valids)
        if any((margin is None) != (self.margins is None) for margin in valid_margins):
            raise InvalidDataError(
                "base_margin and eval_base_margin go together: pass one margin array for the "
                "training data and one for every eval set, or none at all."
            )
        return TrainingData(
            train,
            valids,
            _check_margins_of(train, self.margins, "base_margin"),
            [
                _check_margins_of(valid, margins, f"eval_base_margin[{index}]")
                for index, (valid, margins) in enumerate(zip(valids, valid_margins, strict=True))
            ],
        )

    def quantize(
        self, settings: TrainerSettings, backend: ComputeBackend, communicator: Communicator
    ) -> "QuantizedData":
        """Bin what is not binned yet; validation data shares the training thresholds."""
        train = self.train
        if isinstance(train, RawData):
            binning = BinningSettings(settings.max_bins, settings.random_state)
            train = train.quantize(binning, backend, communicator)
        valids = [
            valid
            if isinstance(valid, Dataset)
            else valid.quantize(train.settings, backend, communicator, train.thresholds)
            for valid in self.valids
        ]
        for index, valid in enumerate(valids):
            _check_same_thresholds(train, valid, f"eval_set[{index}]")
        margins = [self.margins, *self.valid_margins]
        kept = [
            None if margin is None else data.of_kept_rows(margin)
            for data, margin in zip((train, *valids), margins, strict=True)
        ]
        return QuantizedData((train, *valids), kept)


@dataclass(frozen=True)
class QuantizedData:
    """Binned data sets, the training data first, with margins of their kept rows."""

    datasets: tuple[Dataset, ...]
    margins: list[Float32Array | None]

    @property
    def train(self) -> Dataset:
        """The data that trees are grown on."""
        return self.datasets[0]

    def any_weights(self, communicator: Communicator) -> bool:
        """Whether any rank's training rows have weights."""
        return communicator.any_true(self.train.weights is not None)

    def fit_baseline(
        self, objective: Objective, given: float | None, communicator: Communicator
    ) -> Float64Array:
        """float64, (n_outputs,): the given baseline; 0 with margins; else the fitted one."""
        if given is not None:
            return np.full(objective.n_outputs, given, np.float64)
        if self.margins[0] is not None:
            return np.zeros(objective.n_outputs, np.float64)
        assert self.train.labels is not None
        labels = exact_weighted_sum(self.train.labels, self.train.weights)
        weights = total_weight(self.train, communicator)
        communicator.sum_int64(labels.limbs)
        return objective.fit_baseline(labels, weights)

    def run_rows(
        self, objective: Objective, baseline: Float64Array, communicator: Communicator
    ) -> list[RunRows]:
        """The rows of each data set with labels centred on the baseline.

        Raises
        ------
        InvalidDataError : a label lies too far from the baseline for float32.
        """
        result = []
        for index, (data, margins) in enumerate(zip(self.datasets, self.margins, strict=True)):
            assert data.labels is not None
            labels = objective.center_labels(data.labels, baseline, margins)
            _check_centered(labels, data, "y" if index == 0 else f"eval_set[{index - 1}] y")
            total_rows = np.array([data.n_rows], np.int64)
            communicator.sum_int64(total_rows)
            result.append(RunRows(data.bins, labels, data.weights, None, int(total_rows[0])))
        return result


def _check_centered(labels: Float32Array, data: Dataset, name: str) -> None:
    """Raise InvalidDataError if a label lies too far from the baseline for float32."""
    if not np.isfinite(labels).all():
        row = int(np.flatnonzero(~np.isfinite(labels))[0])
        input_row = row if data.kept_rows is None else int(data.kept_rows[row])
        raise InvalidDataError(
            f"{name} minus the baseline (or base_margin) exceeds float32 in row {input_row}; "
            f"scale y."
        )


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


def _check_one(data: RawData | Dataset, name: str, is_share: bool) -> RawData | Dataset:
    if isinstance(data, RawData):
        if data.labels is None:
            prefix = f"{data.name} " if data.name else ""
            raise InvalidDataError(f"{prefix}y is missing; training needs targets.")
        return data.check(is_share=is_share)
    if data.labels is None:
        where = f" in {name}" if name else ""
        raise InvalidDataError(f"the Dataset{where} has no y; build it with targets.")
    return data


def _check_margins_of(
    data: RawData | Dataset, margins: AnyArray | None, name: str
) -> Float32Array | None:
    if margins is None:
        return None
    return check_margins(margins, _input_rows(data), name, data.dropped_rows())


def _n_features(data: RawData | Dataset) -> int:
    return data.source.n_features if isinstance(data, RawData) else data.n_features


def _input_rows(data: RawData | Dataset) -> int:
    return data.source.n_rows if isinstance(data, RawData) else data.n_input_rows


def _check_same_features(train: RawData | Dataset, valid: RawData | Dataset, name: str) -> None:
    expected, found = _n_features(train), _n_features(valid)
    if expected != found:
        raise InvalidDataError(f"{name} has {found} features; the training data has {expected}.")
    if valid.feature_names is not None and train.feature_names not in (None, valid.feature_names):
        raise InvalidDataError(
            f"{name} has the features {list(valid.feature_names)}; the training data has "
            f"{list(train.feature_names or ())}, in that order."
        )


def _check_same_thresholds(train: Dataset, valid: Dataset, name: str) -> None:
    a, b = train.thresholds, valid.thresholds
    same = np.array_equal(a.values, b.values) and np.array_equal(a.n_value_bins, b.n_value_bins)
    if a is not b and not same:
        raise InvalidDataError(
            f"{name} is a Dataset with bins of its own; pass (X, y), or a subset of the training "
            f"Dataset, so that both share their bins."
        )


def _check_binning_settings(binning: BinningSettings, settings: TrainerSettings) -> None:
    """The Dataset owns max_bins; only a non-default value that differs is an error."""
    if settings.max_bins not in (default_of(TrainerSettings, "max_bins"), binning.max_bins):
        raise InvalidParameterError(
            f"max_bins={settings.max_bins} differs from the Dataset's max_bins={binning.max_bins}; "
            f"binning settings belong to the Dataset. Leave max_bins out, or build the Dataset "
            f"with it."
        )

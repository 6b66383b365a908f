"""The data of one run as the user hands it over, checked and quantized.

    RawData (X, y, weights) --check--> --quantize--> Dataset --> quantized_data

A ``Dataset`` that is binned already enters at the second arrow.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from torchgbdt.core.arrays import AnyArray, BoolArray, Float32Array, Int64Array
from torchgbdt.core.backend import ComputeBackend
from torchgbdt.core.binning import BinThresholds
from torchgbdt.core.class_labels import check_class_labels, encode_labels, find_classes
from torchgbdt.core.communicator import SINGLE_RANK, Communicator
from torchgbdt.core.continuation import check_continues, start_sums
from torchgbdt.core.dataset import Dataset, quantize
from torchgbdt.core.errors import InvalidDataError, InvalidParameterError
from torchgbdt.core.feature_source import FeatureSource
from torchgbdt.core.model import Model
from torchgbdt.core.objectives import Objective, find_objective
from torchgbdt.core.quantized_data import QuantizedData, labels_name
from torchgbdt.core.row_values import (
    check_labels,
    check_margins,
    check_weights,
    regression_targets,
)
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

    @cached_property
    def kept_rows(self) -> Int64Array | None:
        """int64, the rows of positive weight of checked data; None if every row counts."""
        dropped = self.dropped_rows()
        return None if dropped is None or not dropped.any() else np.flatnonzero(~dropped)

    def labels_that_count(self) -> AnyArray:
        """The labels of ``kept_rows``."""
        assert self.labels is not None
        return self.labels if self.kept_rows is None else self.labels[self.kept_rows]

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
            reader=backend,
        )


@dataclass(frozen=True)
class TrainingData:
    """What the user handed to ``fit``.

    Attributes
    ----------
    margins, valid_margins : per input row, or None; replace the fitted baseline.
    init_model : the model whose training goes on, or None.
    """

    train: RawData | Dataset
    valids: Sequence[RawData | Dataset] = ()
    margins: AnyArray | None = None
    valid_margins: Sequence[AnyArray | None] = ()
    init_model: Model | None = None

    def check(
        self, settings: TrainerSettings, communicator: Communicator = SINGLE_RANK
    ) -> "CheckedData":
        """Return the data with every array checked and with classes found and encoded.

        Raises
        ------
        InvalidDataError : see ``row_values`` and ``class_labels``.
        InvalidParameterError : a setting does not fit the data.
        """
        self._agree(communicator)
        find = find_objective(settings.objective)
        is_share = communicator.size > 1
        train = _check_one(self.train, 0, find, is_share)
        valids = [
            _check_one(valid, index, find, is_share) for index, valid in enumerate(self.valids, 1)
        ]
        for index, valid in enumerate(valids):
            _check_same_features(train, valid, f"eval_set[{index}]")
        if isinstance(train, Dataset):
            _check_binning_settings(train.settings, settings)
        if self.init_model is not None:
            names = train.feature_names
            check_continues(self.init_model, settings, _n_features(train), names)
        sets, classes = [train, *valids], None
        if find.takes_classes:
            known = None if self.init_model is None else self.init_model.classes
            classes = _find_classes(train, communicator) if known is None else known
            sets = [_encode(data, classes, index) for index, data in enumerate(sets)]
        objective = find.for_classes(None if classes is None else classes.size)
        margins = self._check_margins(sets, objective)
        return CheckedData(sets, margins, self.init_model, objective, classes)

    def _agree(self, communicator: Communicator) -> None:
        """Ranks that were given different arguments would wait for each other's sums for ever."""
        own = np.array([len(self.valids), self.margins is not None, self.init_model is not None])
        if any(not np.array_equal(part, own) for part in communicator.gather(own)):
            raise InvalidDataError(
                "eval_set, base_margin or init_model were passed on some ranks only; pass as many "
                "evaluation sets on every rank, and the others on all ranks or on none."
            )

    def _check_margins(
        self, sets: Sequence[RawData | Dataset], objective: Objective
    ) -> list[Float32Array | None]:
        margins = [self.margins, *(self.valid_margins or [None] * len(self.valids))]
        if any((margin is None) != (self.margins is None) for margin in margins):
            raise InvalidDataError(
                "base_margin and eval_base_margin go together: pass one margin array for the "
                "training data and one for every eval set, or none at all."
            )
        return [
            _check_margins_of(data, margin, index, objective.n_outputs)
            for index, (data, margin) in enumerate(zip(sets, margins, strict=True))
        ]


@dataclass(frozen=True)
class CheckedData:
    """What training needs, checked, and labelled with what the objective learns from.

    Attributes
    ----------
    sets : the training data first; their labels are real targets or int32 class codes.
    margins : of each set, float32 (n_input_rows, n_outputs), or None.
    classes : class labels in code order; None for real targets.
    """

    sets: Sequence[RawData | Dataset]
    margins: list[Float32Array | None]
    init_model: Model | None
    objective: Objective
    classes: AnyArray | None

    def quantize(
        self, settings: TrainerSettings, backend: ComputeBackend, communicator: Communicator
    ) -> "QuantizedData":
        """Bin what is not binned yet; validation data shares the training thresholds."""
        train, *valids = self.sets
        if isinstance(train, RawData):
            binning = BinningSettings(settings.max_bins, settings.random_state)
            train = train.quantize(binning, backend, communicator)
        binned = [
            valid
            if isinstance(valid, Dataset)
            else valid.quantize(train.settings, backend, communicator, train.thresholds)
            for valid in valids
        ]
        for index, valid in enumerate(binned):
            _check_same_thresholds(train, valid, f"eval_set[{index}]")
        datasets = (train, *binned)
        margins = [
            None if margin is None else data.of_kept_rows(margin)
            for data, margin in zip(datasets, self.margins, strict=True)
        ]
        starts = [
            self._start(given, data, backend, index)
            for index, (given, data) in enumerate(zip(self.sets, datasets, strict=True))
        ]
        are_own = [isinstance(given, RawData) for given in self.sets]
        return QuantizedData(datasets, margins, starts, are_own, self.objective, self.classes)

    def _start(
        self, given: RawData | Dataset, data: Dataset, backend: ComputeBackend, index: int
    ) -> Float32Array | None:
        """Prediction sums of ``init_model`` on a data set's kept rows."""
        if self.init_model is None:
            return None
        name = "X" if index == 0 else f"eval_set[{index - 1}]"
        if isinstance(given, Dataset):
            return start_sums(self.init_model, given, backend, name)
        return data.of_kept_rows(start_sums(self.init_model, given.source, backend, name))


def _check_one(
    data: RawData | Dataset, index: int, objective: type[Objective], is_share: bool
) -> RawData | Dataset:
    """One data set with labels of the kind that the objective learns from."""
    if data.labels is None:
        if isinstance(data, RawData):
            raise InvalidDataError(f"{labels_name(index)} is missing; training needs targets.")
        where = f" in eval_set[{index - 1}]" if index else ""
        raise InvalidDataError(f"the Dataset{where} has no y; build it with targets.")
    if isinstance(data, RawData):
        data = data.check(is_share=is_share)
    assert data.labels is not None
    if objective.takes_classes:
        check_class_labels(data.labels_that_count(), labels_name(index), data.kept_rows)
        return data
    dropped = data.dropped_rows() if isinstance(data, RawData) else None
    targets = regression_targets(data.labels, labels_name(index), dropped)
    return replace(data, labels=targets)


def _find_classes(train: RawData | Dataset, communicator: Communicator) -> AnyArray:
    return find_classes(train.labels_that_count(), labels_name(0), communicator)


def _encode(data: RawData | Dataset, classes: AnyArray, index: int) -> RawData | Dataset:
    """The data set with codes for labels; rows that do not count have 0."""
    codes = encode_labels(data.labels_that_count(), classes, labels_name(index), data.kept_rows)
    if isinstance(data, RawData) and data.kept_rows is not None:
        of_all_rows = np.zeros(data.source.n_rows, np.int32)
        of_all_rows[data.kept_rows] = codes
        codes = of_all_rows
    return replace(data, labels=codes)


def _check_margins_of(
    data: RawData | Dataset, margins: AnyArray | None, index: int, n_outputs: int
) -> Float32Array | None:
    if margins is None:
        return None
    name = "base_margin" if index == 0 else f"eval_base_margin[{index - 1}]"
    return check_margins(margins, _input_rows(data), name, data.dropped_rows(), n_outputs)


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

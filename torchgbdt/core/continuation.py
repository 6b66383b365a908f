"""Continued training: the prediction sums of a model that is trained on.

X of (X, y)    --predict--> sums of leaf values, as the model's own rounds left them
a Dataset      --a value of each bin--> the same; its thresholds must be the model's
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from torchgbdt.core.arrays import AnyArray, BinArray, Float32Array, Float64Array
from torchgbdt.core.backend import ComputeBackend
from torchgbdt.core.dataset import Dataset
from torchgbdt.core.errors import InvalidDataError, InvalidParameterError
from torchgbdt.core.feature_source import FeatureSource
from torchgbdt.core.model import Model
from torchgbdt.core.settings import TrainerSettings


@dataclass(frozen=True)
class BinRepresentatives:
    """A data set read as a FeatureSource: of each bin its largest value, nan where missing.

    Splits at thresholds of the data set send it the way they send every value of the bin.
    """

    dataset: Dataset

    @cached_property
    def _bins(self) -> BinArray:
        return np.asarray(self.dataset.bins)

    @cached_property
    def _tables(self) -> list[Float64Array]:
        """Of each feature the value of every code, float64, (n_value_bins + 1,)."""
        thresholds = self.dataset.thresholds
        return [
            np.array(
                [
                    *(thresholds.upper_bound(feature, code) for code in range(n_value_bins)),
                    np.nan,
                ]
            )
            for feature, n_value_bins in enumerate(thresholds.n_value_bins.tolist())
        ]

    @property
    def n_rows(self) -> int:
        """Rows that count."""
        return self.dataset.n_rows

    @property
    def n_features(self) -> int:
        """Columns of X."""
        return self.dataset.n_features

    def column(self, feature: int, start: int, stop: int) -> Float64Array:
        """Rows start..stop of one feature as float64."""
        return self._tables[feature][self._bins[start:stop, feature]]

    def sample(self, rows: AnyArray, features: slice) -> Float64Array:
        """Chosen rows of a few features as float64, (n_chosen, n_features)."""
        columns = range(*features.indices(self.n_features))
        block = np.empty((rows.size, len(columns)))
        for position, feature in enumerate(columns):
            block[:, position] = self._tables[feature][self._bins[rows, feature]]
        return block


def start_sums(
    model: Model, data: FeatureSource | Dataset, backend: ComputeBackend, name: str
) -> Float32Array:
    """Sums of the model's leaf values, float32 (n_rows, n_outputs), of every row of ``data``.

    Raises
    ------
    InvalidDataError : ``data`` is a Dataset whose bins are not cut where the model splits.
    """
    if isinstance(data, Dataset):
        _check_thresholds(model, data, name)
        source: FeatureSource = BinRepresentatives(data)
    else:
        source = data
    sums = np.zeros((source.n_rows, model.n_outputs), np.float32)
    backend.predict(model.forest, source, sums)
    return sums


def check_continues(
    model: Model,
    settings: TrainerSettings,
    n_features: int,
    feature_names: tuple[str, ...] | None,
) -> None:
    """Return if a run of these settings on such data can go on from the model.

    Raises
    ------
    InvalidParameterError : another objective, or a baseline although the model's is kept.
    InvalidDataError : other features.
    """
    if model.objective != settings.objective:
        raise InvalidParameterError(
            f"init_model was trained with objective={model.objective!r}; found objective="
            f"{settings.objective!r}. Use the same one."
        )
    if settings.baseline is not None:
        raise InvalidParameterError(
            f"baseline={settings.baseline:g} cannot be set with init_model, whose baseline is "
            f"kept. Leave it out."
        )
    if model.n_features != n_features:
        raise InvalidDataError(
            f"init_model has {model.n_features} features; X has {n_features} columns. Pass the "
            f"same columns in the same order."
        )
    if None not in (model.feature_names, feature_names) and model.feature_names != feature_names:
        raise InvalidDataError(
            f"init_model has the features {list(model.feature_names or ())}; X has "
            f"{list(feature_names or ())}. Pass the same columns in the same order."
        )


def _check_thresholds(model: Model, data: Dataset, name: str) -> None:
    nodes = model.forest.nodes
    split = ~nodes.is_leaf
    for feature in np.unique(nodes.feature[split]).tolist():
        used = np.unique(nodes.threshold[split & (nodes.feature == feature)])
        unknown = used[~np.isin(used, [*data.thresholds.of_feature(feature), np.inf])]
        if unknown.size:
            raise InvalidDataError(
                f"{name}: init_model splits feature {feature} at {unknown[0]:g}, where this "
                f"Dataset's bins are not cut. Go on with the Dataset it was trained on, or pass "
                f"X and y themselves."
            )

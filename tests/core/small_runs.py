"""Small data on its way to the backend: as a user hands it over, binned, and labelled."""

from typing import Any

import numpy as np

from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.core.communicator import SINGLE_RANK, Communicator
from torchgbdt.core.dataset import Dataset
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.quantized_data import QuantizedData
from torchgbdt.core.run_data import RawData, TrainingData
from torchgbdt.core.settings import BinningSettings, TrainerSettings


def raw(
    n_rows: int = 4,
    n_features: int = 2,
    y: Any = None,
    weights: Any = None,
    names: tuple[str, ...] | None = None,
    name: str = "",
) -> RawData:
    """Row i holds i in every column and has the label i."""
    rows = np.arange(float(n_rows))
    X = np.repeat(rows[:, None], n_features, axis=1)
    given = (rows if y is None else np.asarray(y), None if weights is None else np.asarray(weights))
    return RawData(HostMatrix(X), *given, names, name)


def labels(y: Any, weights: Any = None, name: str = "") -> RawData:
    """Data of these labels."""
    return raw(len(y), y=y, weights=weights, name=name)


def binned(data: RawData | None = None, max_bins: int = 10) -> Dataset:
    one = (raw() if data is None else data).check()
    return one.quantize(BinningSettings(max_bins), OracleBackend(), SINGLE_RANK)


def quantized(
    data: TrainingData, communicator: Communicator = SINGLE_RANK, **settings: Any
) -> QuantizedData:
    checked = TrainerSettings(**{"max_bins": 10, **settings})
    return data.check(checked, communicator).quantize(checked, OracleBackend(), communicator)

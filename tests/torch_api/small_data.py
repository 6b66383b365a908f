"""Data that trains in milliseconds, and a backend-neutral way to say what was read of X."""

from typing import Any

import numpy as np
import torch

from torchgbdt.core.feature_source import FeatureSource
from torchgbdt.torch_api.features import Features, read_features
from torchgbdt.torch_api.tensors import device_of

QUICK: dict[str, Any] = {"n_estimators": 3, "max_depth": 3, "min_samples_leaf": 5}


def regression(n_rows: int = 200, n_features: int = 4, seed: int = 0) -> tuple[Any, Any]:
    """X float32 (n_rows, n_features) with a few missing values, y float32 (n_rows,)."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(n_rows, n_features, generator=generator)
    y = X[:, 0] * X[:, -1] + 0.1 * torch.randn(n_rows, generator=generator)
    X[::17, 0] = torch.nan
    return X, y


def read(X: Any) -> Features:
    """X, read where it lies."""
    return read_features(X, "X", {}, may_be_empty=False, device=device_of(X))


def as_float64(source: FeatureSource) -> np.ndarray:
    """All of a source, column by column, as the core would read it."""
    columns = [source.column(f, 0, source.n_rows) for f in range(source.n_features)]
    return np.stack(columns, axis=1)

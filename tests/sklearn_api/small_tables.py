"""Tables that estimators train on in milliseconds, and the settings for that."""

from typing import Any

import numpy as np

import torchgbdt as tg

QUICK: dict[str, Any] = {"n_estimators": 4, "max_depth": 3, "min_samples_leaf": 5}


def features(n_rows: int = 240, seed: int = 0) -> np.ndarray:
    """float32, (n_rows, 4), a few missing."""
    X = np.random.RandomState(seed).randn(n_rows, 4).astype(np.float32)
    X[::17, 3] = np.nan
    return X


def regression(n_rows: int = 240, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """X and float32 targets."""
    X = features(n_rows, seed)
    noise = np.random.RandomState(seed + 1000).randn(n_rows).astype(np.float32)
    return X, X[:, 0] * X[:, 1] + X[:, 2] + np.float32(0.3) * noise


def classification(
    n_classes: int = 3, n_rows: int = 240, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """X and int64 classes 0, 1, ... of about the same size, with noise."""
    X, y = regression(n_rows, seed)
    return X, np.argsort(np.argsort(y)) * n_classes // n_rows


def weights(n_rows: int = 240, seed: int = 0) -> np.ndarray:
    """float64, (n_rows,), a quarter of them 0."""
    random = np.random.RandomState(seed)
    return random.uniform(0.5, 2, n_rows) * (random.uniform(size=n_rows) > 0.25)


def digest(estimator: Any) -> str:
    model: tg.Model = estimator.model_
    return model.digest()

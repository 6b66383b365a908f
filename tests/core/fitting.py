"""Thresholds of a small matrix, with defaults for what a test does not care about."""

import numpy as np

from torchgbdt.core.binning import BinThresholds, fit_thresholds
from torchgbdt.core.communicator import SINGLE_RANK, Communicator
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.settings import BinningSettings


def fit(
    X: np.ndarray,
    max_bins: int = 256,
    weights: np.ndarray | None = None,
    kept_rows: np.ndarray | None = None,
    random_state: int = 0,
    first_row_id: int = 0,
    communicator: Communicator = SINGLE_RANK,
) -> BinThresholds:
    """Thresholds of X; a vector is a matrix of one column."""
    source = HostMatrix(X[:, None] if X.ndim == 1 else X)
    settings = BinningSettings(max_bins, random_state)
    return fit_thresholds(source, kept_rows, first_row_id, weights, settings, communicator)

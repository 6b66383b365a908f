"""Prepared runs of logistic and softmax whose raw predictions a test chooses."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from support.runs import integer_thresholds

from torchgbdt.core.backend import ComputeBackend, RunRows, RunSettings
from torchgbdt.core.objectives import Logistic, Objective, Softmax


def class_rows(raw: Any, codes: Any, weights: Any = None, total_rows: int | None = None) -> RunRows:
    """Rows whose margins are these raw predictions: (n_rows,) for logistic, else one per class."""
    margins = np.asarray(raw, np.float32)
    margins = margins[:, None] if margins.ndim == 1 else margins
    n_rows = margins.shape[0]
    return RunRows(
        bins=np.zeros((n_rows, 1), np.uint8),
        labels=np.asarray(codes, np.float32),
        weights=None if weights is None else np.asarray(weights, np.float32),
        margins=margins,
        total_rows=n_rows if total_rows is None else total_rows,
    )


def prepare_classes(
    backend: ComputeBackend, *data: RunRows, baseline: Sequence[float] | None = None
) -> ComputeBackend:
    """A run on these data sets, the training data first; all rows are sampled.

    ``baseline`` has one number per output; 0 where it is left out.
    """
    assert data[0].margins is not None
    n_outputs = data[0].margins.shape[1]
    objective: Objective = Logistic() if n_outputs == 1 else Softmax(n_outputs)
    settings = RunSettings(
        integer_thresholds([1]),
        objective,
        np.zeros(n_outputs) if baseline is None else np.array(baseline, np.float64),
        tree_outputs=1,
        constant_hessian=False,
        n_slots=1,
    )
    backend.prepare(data[0], data[1:], settings)
    backend.sample_rows(0)
    return backend


def gradients_of(backend: ComputeBackend, n_outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """Gradients and Hessians of all outputs, float32, (n_rows, n_outputs) each."""
    columns = []
    for output in range(n_outputs):
        backend.compute_gradients(output)
        columns.append(backend.read_gradients())
    g, h = (np.hstack(parts) for parts in zip(*columns, strict=True))
    return g, h

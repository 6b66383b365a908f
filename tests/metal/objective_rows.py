"""Rows as kernels of objectives and metrics see them, with awkward predictions among them."""

import numpy as np
import torch
from metal.row_buffers import tensor

from torchgbdt.core.fixed_point import flush_subnormals
from torchgbdt.core.objectives import Logistic, Objective, Softmax, SquaredError
from torchgbdt.core.raw_predictions import baseline_parts, raw_float32

N_CLASSES = 5
OBJECTIVES = {
    "squared_error": SquaredError(),
    "logistic": Logistic(),
    "softmax": Softmax(N_CLASSES),
}
BASELINES = {"squared_error": [0.0], "logistic": [0.3], "softmax": [0.1, -0.2, 1e-3, 0.0, 2.0]}

AWKWARD = [0.0, 1e-38, -1e-38, 2.0**-126, 1.0, -1.0, 17.0, -17.0, 86.0, -86.0, 86.5, -87.0, 88.0]
AWKWARD += [-88.8, 1e4, -1e4, 3e38, -3e38, 1e-7, -1e-7]


class Rows:
    """Rows of a run; everything column-major, as kernels see it."""

    def __init__(self, objective: str, n_rows: int, weighted: bool, margins: bool) -> None:
        rng = np.random.default_rng(n_rows)
        self.objective: Objective = OBJECTIVES[objective]
        self.n_rows, self.n_outputs = n_rows, self.objective.n_outputs
        shape = (self.n_outputs, n_rows)
        self.baseline = np.array(BASELINES[objective])
        self.predictions = flush_subnormals(rng.normal(size=shape) * 4)
        pick = rng.random(shape) < 0.3
        self.predictions[pick] = flush_subnormals(rng.choice(AWKWARD, pick.sum()))
        self.labels = rng.normal(size=n_rows).astype(np.float32)
        if self.objective.takes_classes:
            self.labels = rng.integers(0, max(self.n_outputs, 2), n_rows).astype(np.float32)
        self.weights = flush_subnormals(rng.exponential(size=n_rows)) if weighted else None
        self.margins = flush_subnormals(rng.normal(size=shape)) if margins else None

    def baseline_buffer(self) -> torch.Tensor:
        """High and low part of each output's baseline, (n_outputs, 2)."""
        return tensor(np.stack(baseline_parts(self.baseline), axis=1))

    def seen(self) -> np.ndarray:
        """What the objective reads, (n_rows, n_outputs)."""
        if self.objective.centers_labels:
            return self.predictions.T
        margins = None if self.margins is None else self.margins.T
        return raw_float32(self.baseline, self.predictions.T, margins)

    def expected(self, output: int) -> tuple[np.ndarray, np.ndarray]:
        with np.errstate(all="ignore"):
            both = self.objective.gradients(self.seen(), self.labels, self.weights)
        return both[0][:, output], both[1][:, output]


def or_any(array: np.ndarray | None) -> torch.Tensor:
    """A buffer, or one that stands in for it."""
    return torch.zeros(1) if array is None else tensor(array)

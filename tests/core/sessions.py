"""Training sessions on small data, for each objective."""

from typing import Any

import numpy as np

from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.core.communicator import SINGLE_RANK, Communicator
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.model import Model
from torchgbdt.core.run_data import RawData, TrainingData
from torchgbdt.core.settings import TrainerSettings
from torchgbdt.core.trainer import TrainingSession

N_ROWS = 24

OBJECTIVES = ["squared_error", "logistic", "softmax"]


def n_outputs(objective: str) -> int:
    """Of a run on the labels below."""
    return 3 if objective == "softmax" else 1


def labels_for(objective: str, n_rows: int = N_ROWS) -> np.ndarray:
    """A real target; "no" and "yes"; or 10, 20 and 40: the same on every machine."""
    steps = np.arange(n_rows) * 7 % 11
    if objective == "squared_error":
        return (steps - 5) / 4
    if objective == "logistic":
        return np.where(steps > 5, "yes", "no")
    return np.array([10, 20, 40])[steps % 3]


def raw_for(objective: str, n_rows: int = N_ROWS, **changes: Any) -> RawData:
    x = np.arange(float(n_rows))
    X = np.stack((x % 5, x), axis=1)
    return RawData(**{"source": HostMatrix(X), "labels": labels_for(objective, n_rows), **changes})


def data_for(objective: str, n_valids: int = 0, **more: Any) -> TrainingData:
    """Training data, and validation data of 11 rows each."""
    valids = [raw_for(objective, 11, name=f"eval_set[{i}]") for i in range(n_valids)]
    return TrainingData(raw_for(objective), valids, **more)


def session_for(
    objective: str,
    *observers: Any,
    backend: OracleBackend | None = None,
    communicator: Communicator = SINGLE_RANK,
    **settings: Any,
) -> TrainingSession:
    small = {"n_estimators": 3, "max_depth": 2, "min_samples_leaf": 1, "max_bins": 16}
    checked = TrainerSettings(**{"objective": objective, **small, **settings})
    return TrainingSession(checked, backend or OracleBackend(), observers, communicator)


def run(given: TrainingData, objective: str, *observers: Any, **settings: Any) -> Model:
    return session_for(objective, *observers, **settings).run(given)


class At:
    """Calls ``do(context)`` at one event; other events pass."""

    def __init__(self, event: str, do: Any) -> None:
        self._event, self._do = event, do

    def __getattr__(self, event: str) -> Any:
        if not event.startswith("on_"):
            raise AttributeError(event)
        return self._do if event == self._event else lambda context: None

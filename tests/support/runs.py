"""Ways to run a backend: a whole training session, or a prepared run that a test drives itself."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from torchgbdt.core.backend import ComputeBackend, RunRows, RunSettings
from torchgbdt.core.binning import BinThresholds
from torchgbdt.core.clock import PhaseClock
from torchgbdt.core.communicator import SINGLE_RANK, Communicator
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.growth import TreeGrower, TreeLimits
from torchgbdt.core.histogram_plan import HistogramPlan
from torchgbdt.core.model import Model
from torchgbdt.core.objectives import SquaredError
from torchgbdt.core.rounds import Booster
from torchgbdt.core.run_data import RawData, TrainingData
from torchgbdt.core.settings import TrainerSettings
from torchgbdt.core.trainer import TrainingSession
from torchgbdt.core.tree import Tree


@dataclass(frozen=True)
class Rows:
    """One data set as a user holds it; labels of classes may be of any kind."""

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None = None
    margins: np.ndarray | None = None

    def __getitem__(self, rows: Any) -> "Rows":
        return Rows(
            *(None if part is None else part[rows] for part in (self.X, self.y)),
            *(None if part is None else part[rows] for part in (self.weights, self.margins)),
        )

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])


@dataclass(frozen=True)
class Scenario:
    """Data and settings of one small training run; with ``init_model``, of its continuation."""

    train: Rows
    settings: dict[str, Any] = field(default_factory=dict)
    valids: Sequence[Rows] = ()
    init_model: Model | None = None

    def changed(self, **settings: Any) -> "Scenario":
        return replace(self, settings={**self.settings, **settings})

    def with_train(self, train: Rows) -> "Scenario":
        return replace(self, train=train)

    @property
    def objective(self) -> str:
        name: str = self.settings.get("objective", "squared_error")
        return name


@dataclass(frozen=True)
class Outcome:
    """What a training session left behind."""

    model: Model
    history: dict[str, dict[str, list[float]]]
    session: TrainingSession


MANY_ROWS = 40_000
"""More than two of the blocks that any kernel hands to its threads."""

DEFAULTS: dict[str, Any] = {
    "n_estimators": 4,
    "max_depth": 4,
    "learning_rate": 0.3,
    "min_samples_leaf": 5,
}
"""Small trees that still reach every branch; a scenario's own settings win."""

EVAL_METRICS = {
    "squared_error": ("rmse", "mae", "r2"),
    "logistic": ("logloss", "error", "auc"),
    "softmax": ("logloss", "error"),
}
"""All metrics of each objective."""


def training_data(scenario: Scenario) -> TrainingData:
    def raw(rows: Rows, name: str) -> RawData:
        return RawData(HostMatrix(rows.X), rows.y, rows.weights, name=name)

    return TrainingData(
        raw(scenario.train, ""),
        [raw(rows, f"eval_set[{i}]") for i, rows in enumerate(scenario.valids)],
        scenario.train.margins,
        [rows.margins for rows in scenario.valids],
        scenario.init_model,
    )


def settings_of(scenario: Scenario) -> TrainerSettings:
    metrics = EVAL_METRICS[scenario.objective]
    return TrainerSettings(**{**DEFAULTS, "eval_metric": metrics, **scenario.settings})


def make_session(
    backend: ComputeBackend,
    scenario: Scenario,
    observers: Sequence[Any] = (),
    communicator: Communicator = SINGLE_RANK,
) -> TrainingSession:
    return TrainingSession(settings_of(scenario), backend, observers, communicator)


def train(
    backend: ComputeBackend,
    scenario: Scenario,
    observers: Sequence[Any] = (),
    communicator: Communicator = SINGLE_RANK,
) -> Outcome:
    session = make_session(backend, scenario, observers, communicator)
    model = session.run(training_data(scenario))
    return Outcome(model, session.history, session)


class ManyOutputs(SquaredError):
    """Stands in for an objective with n outputs per tree; its gradients are loaded."""

    def __init__(self, n_outputs: int) -> None:
        self.n_outputs = n_outputs


def integer_thresholds(n_value_bins: Sequence[int]) -> BinThresholds:
    """Value b of a feature falls into bin b: thresholds lie halfway between integers."""
    return BinThresholds.from_features([(np.arange(max(n - 1, 0)) + 0.5, n) for n in n_value_bins])


def run_rows(
    bins: np.ndarray, labels: np.ndarray | None = None, weights: np.ndarray | None = None
) -> RunRows:
    """Rows of a single rank; labels are 0 where the test loads gradients instead."""
    n_rows = bins.shape[0]
    labels = np.zeros(n_rows, np.float32) if labels is None else labels
    return RunRows(np.ascontiguousarray(bins, np.uint8), labels, weights, None, n_rows)


def run_settings(
    thresholds: BinThresholds, tree_outputs: int = 1, n_slots: int = 1, constant: bool = False
) -> RunSettings:
    objective = SquaredError() if tree_outputs == 1 else ManyOutputs(tree_outputs)
    baseline = np.zeros(tree_outputs)
    return RunSettings(thresholds, objective, baseline, tree_outputs, constant, n_slots)


def prepare(
    backend: ComputeBackend,
    bins: np.ndarray,
    n_value_bins: Sequence[int],
    tree_outputs: int = 1,
    n_slots: int = 4,
    constant: bool = False,
) -> BinThresholds:
    """A prepared run on hand-made bins, all rows sampled."""
    thresholds = integer_thresholds(n_value_bins)
    backend.prepare(run_rows(bins), [], run_settings(thresholds, tree_outputs, n_slots, constant))
    backend.sample_rows(0)
    return thresholds


def grow_tree(
    backend: ComputeBackend,
    thresholds: BinThresholds,
    n_slots: int = 4,
    communicator: Communicator = SINGLE_RANK,
    **settings: Any,
) -> Tree:
    """Grow one tree on a prepared backend and add it to the predictions."""
    checked = TrainerSettings(**{"min_samples_leaf": 1, "min_child_weight": 0.0, **settings})
    limits = TreeLimits(checked.max_depth, checked.learning_rate)
    clock = PhaseClock()
    grower = TreeGrower(backend, communicator, HistogramPlan(n_slots), limits, thresholds, clock)
    return Booster(backend, communicator, grower, checked, 1, clock).boost(0)[0]

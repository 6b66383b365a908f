"""What both estimators share: parameters, ``fit`` and the attributes it leaves.

    arguments of fit --read--> --classes, class weights--> --hold out--> Trainer --> model_

``fit`` works on a copy of the estimator, whose attributes are taken over at the end, all or none.
"""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, check_random_state

from torchgbdt.core.arrays import Float64Array, Int32Array
from torchgbdt.core.errors import InvalidParameterError
from torchgbdt.core.objectives import OBJECTIVES
from torchgbdt.core.observer import History, TrainingObserver
from torchgbdt.core.settings import TrainerSettings, check_float, check_integer
from torchgbdt.sklearn_api.hold_out import check_validation_fraction, hold_out
from torchgbdt.sklearn_api.inputs import read_features, read_fit_arguments, read_row_values
from torchgbdt.torch_api.callbacks import EarlyStopping, check_callbacks
from torchgbdt.torch_api.fit_arguments import FitArguments
from torchgbdt.torch_api.model import Model
from torchgbdt.torch_api.trainer import Trainer

SETTINGS = tuple(field.name for field in fields(TrainerSettings))
"""Parameters that go to the Trainer under the same name."""

FITTED = {"model_", "history_", "n_features_in_", "feature_names_in_", "_seed"}
"""Attributes that ``fit`` sets, all or none."""


@dataclass(frozen=True)
class Prepared:
    """Arguments of ``fit`` that fit the kind of target.

    Attributes
    ----------
    objective : for the Trainer, which checks it.
    codes : int32, (n_kept,), of the classes of the rows that count, whose shares held-out rows
        keep; None for real targets.
    """

    arguments: FitArguments
    objective: Any
    codes: Int32Array | None = None


class GBDTEstimator(BaseEstimator, ABC):  # type: ignore[misc]
    """Base of the estimators; see ``GBDTRegressor`` for the parameters."""

    model_: Model
    history_: History
    n_features_in_: int
    _seed: Any

    def __init__(
        self,
        *,
        objective: str | None = "squared_error",
        n_estimators: int = 100,
        learning_rate: float = 0.1,
        max_depth: int | None = 6,
        max_leaves: int | None = None,
        max_bins: int = 256,
        min_samples_leaf: int = 20,
        min_child_weight: float = 1e-3,
        reg_lambda: float = 1.0,
        gamma: float = 0.0,
        subsample: float = 1.0,
        colsample_bytree: float = 1.0,
        baseline: float | None = None,
        eval_metric: str | Sequence[str] | None = None,
        random_state: int | np.random.RandomState | None = 0,
        device: str | torch.device = "auto",
        backend: str = "auto",
        n_threads: int | None = None,
        histogram_budget_mb: float = 512.0,
        warm_start: bool = False,
        early_stopping: bool = False,
        validation_fraction: float | int = 0.1,
        n_iter_no_change: int = 10,
        tol: float = 1e-7,
        callbacks: Sequence[TrainingObserver] | None = None,
    ) -> None:
        self.objective = objective
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.max_depth = max_depth
        self.max_leaves = max_leaves
        self.max_bins = max_bins
        self.min_samples_leaf = min_samples_leaf
        self.min_child_weight = min_child_weight
        self.reg_lambda = reg_lambda
        self.gamma = gamma
        self.subsample = subsample
        self.colsample_bytree = colsample_bytree
        self.baseline = baseline
        self.eval_metric = eval_metric
        self.random_state = random_state
        self.device = device
        self.backend = backend
        self.n_threads = n_threads
        self.histogram_budget_mb = histogram_budget_mb
        self.warm_start = warm_start
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.tol = tol
        self.callbacks = callbacks

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any = None,
        *,
        eval_set: Any = None,
        eval_sample_weight: Any = None,
        base_margin: Any = None,
        eval_base_margin: Any = None,
    ) -> Self:
        """Train a model. Whatever is raised, the estimator is what it was before.

        Parameters
        ----------
        X : torch tensor (any device), data frame, numpy array or list, (n_rows, n_features); nan is
            missing.
        y : targets, (n_rows,).
        sample_weight : >= 0, (n_rows,); rows of weight 0 are left out.
        eval_set : list of (X, y) pairs; the last is what early stopping monitors.
        eval_sample_weight : list with one entry per evaluation set, None where it has none.
        base_margin : raw predictions to start from, (n_rows,), or (n_rows, n_classes) for softmax,
            in place of a fitted baseline. ``score`` and searches predict without it.
        eval_base_margin : list of the same for each evaluation set; needed with ``base_margin``.

        Returns
        -------
        The estimator itself.

        Raises
        ------
        ValueError : data or parameters that cannot be trained on; what was fitted before stays.
        BackendUnavailableError : the backend or device cannot run here.
        """
        fitted = copy.copy(self)  # thrown away when anything is raised
        fitted._fit(
            FitArguments(
                X, y, sample_weight, eval_set, eval_sample_weight, base_margin, eval_base_margin
            )
        )
        gained = {name: value for name, value in vars(fitted).items() if name in FITTED}
        self.__dict__.update(gained)
        for name in FITTED - gained.keys():
            self.__dict__.pop(name, None)
        return self

    def _fit(self, given: FitArguments) -> None:
        """Set all fitted attributes."""
        self._check_parameters()
        previous = self.model_ if self.warm_start and hasattr(self, "model_") else None
        given = read_fit_arguments(self, given, reset=previous is None)
        prepared = self._prepare(given, previous)
        if not hasattr(self, "_seed") or previous is None or _is_number(self.random_state):
            self._seed = _draw_seed(self.random_state)
        settings = {name: getattr(self, name) for name in SETTINGS}
        settings |= {"objective": prepared.objective, "random_state": self._seed}
        n_added = None if previous is None else self._rounds_to_add(previous)
        if n_added is not None:
            # The baseline is the model's; the other settings are checked if no round is added, too.
            settings |= {"n_estimators": max(n_added, 1), "baseline": None}
        callbacks = list(check_callbacks(() if self.callbacks is None else self.callbacks))
        if self.early_stopping:
            callbacks.append(EarlyStopping(patience=self.n_iter_no_change, min_delta=self.tol))
        trainer = Trainer(callbacks=callbacks, **settings)
        if n_added == 0:
            return
        given = prepared.arguments
        if self.early_stopping and given.eval_set is None:
            given = hold_out(given, self.validation_fraction, self._seed, prepared.codes)
        arguments = {field.name: getattr(given, field.name) for field in fields(given)}
        self.model_ = trainer.fit(**{**arguments, "init_model": previous})
        earlier = {} if previous is None else self.history_
        n_earlier = 0 if previous is None else previous.n_rounds
        self.history_ = _joined(earlier, n_earlier, trainer.history)

    def _check_parameters(self) -> None:
        """Those that the Trainer does not know."""
        for name in ("warm_start", "early_stopping"):
            if not isinstance(getattr(self, name), bool | np.bool_):
                raise InvalidParameterError(
                    f"{name} must be True or False; found {getattr(self, name)!r}."
                )
        check_validation_fraction(self.validation_fraction)
        check_integer("n_iter_no_change", self.n_iter_no_change, 1)
        check_float("tol", self.tol, 0.0)

    @abstractmethod
    def _prepare(self, given: FitArguments, previous: Model | None) -> "Prepared":
        """What depends on the kind of target; ``previous`` is the model to continue, or None."""

    def _check_objective(self, *, takes_classes: bool) -> None:
        """Refuse the other kind of objective; unknown ones are left to the Trainer."""
        allowed = [name for name, one in OBJECTIVES.items() if one.takes_classes == takes_classes]
        known = isinstance(self.objective, str) and self.objective in OBJECTIVES
        if known and self.objective not in allowed:
            raise InvalidParameterError(
                f"objective must be {' or '.join(map(repr, allowed))} for a "
                f"{type(self).__name__}; found {self.objective!r}."
            )

    def _rounds_to_add(self, previous: Model) -> int:
        n_estimators = check_integer("n_estimators", self.n_estimators, 1)
        if n_estimators < previous.n_rounds:
            raise InvalidParameterError(
                f"n_estimators must be at least {previous.n_rounds} with warm_start=True, the "
                f"rounds that the model has; found {n_estimators}. Raise it, or train anew with "
                f"warm_start=False."
            )
        return n_estimators - previous.n_rounds

    # --- predictions -------------------------------------------------------------------------

    def staged_predict(self, X: Any, *, base_margin: Any = None) -> Iterator[Any]:
        """``predict`` after each round: ``n_iter_`` results, each one round's work."""
        stages: Iterator[Any] = self._ask_model("staged_predict", X, base_margin)
        return stages

    def _ask_model(self, method: str, X: Any, base_margin: Any) -> Any:
        """The answer of one of the model's methods."""
        check_is_fitted(self)
        X = read_features(self, X, reset=False)
        margins = read_row_values(base_margin, "base_margin")
        return getattr(self.model_, method)(X, base_margin=margins)

    # --- facts -------------------------------------------------------------------------------

    @property
    def n_iter_(self) -> int:
        """Rounds of the model."""
        check_is_fitted(self)
        return self.model_.n_rounds

    @property
    def best_iteration_(self) -> int | None:
        """Zero-based round that early stopping kept; None without early stopping."""
        check_is_fitted(self)
        return self.model_.best_iteration

    @property
    def feature_importances_(self) -> Float64Array:
        """Share of each feature in the gain of all splits, (n_features,); 0 without any split."""
        check_is_fitted(self)
        gain = self.model_.feature_importance("gain")
        total = gain.sum()
        return gain / total if total > 0 else gain

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _joined(earlier: History, n_earlier: int, added: History) -> History:
    """One value per round of the model for what the last fit evaluated.

    Where earlier rounds did not evaluate it they have nan.
    """

    def before(dataset: str, metric: str) -> list[float]:
        values = earlier.get(dataset, {}).get(metric, [math.nan] * n_earlier)
        return values[:n_earlier]  # early stopping may have cut the model back

    return {
        dataset: {metric: before(dataset, metric) + values for metric, values in metrics.items()}
        for dataset, metrics in added.items()
    }


def _is_number(random_state: Any) -> bool:
    """Whether it is a number, or nonsense, but not a source of random numbers."""
    is_source = random_state is None or random_state is np.random
    return not (is_source or isinstance(random_state, np.random.RandomState))


def _draw_seed(random_state: Any) -> Any:
    """A random state for the Trainer, which checks those that are numbers."""
    if _is_number(random_state):
        return random_state
    return int(check_random_state(random_state).randint(2**32, dtype=np.int64))

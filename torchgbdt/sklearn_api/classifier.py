"""``tg.GBDTClassifier``."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from torchgbdt.core.arrays import AnyArray
from torchgbdt.core.class_labels import encode_labels, find_classes
from torchgbdt.core.communicator import SINGLE_RANK
from torchgbdt.core.observer import TrainingObserver
from torchgbdt.sklearn_api.class_weight import weigh_classes
from torchgbdt.sklearn_api.estimator import GBDTEstimator, Prepared
from torchgbdt.sklearn_api.hold_out import kept_rows
from torchgbdt.sklearn_api.inputs import to_host
from torchgbdt.torch_api.fit_arguments import FitArguments
from torchgbdt.torch_api.model import Model


class GBDTClassifier(ClassifierMixin, GBDTEstimator):  # type: ignore[misc]
    """Gradient-boosted trees for classes, as a scikit-learn estimator.

    Parameters
    ----------
    objective : None takes "logistic" for two classes and "softmax" for more.
    n_estimators : rounds of the model.
    learning_rate, max_depth, max_leaves, max_bins, min_samples_leaf, min_child_weight, reg_lambda,
    gamma, subsample, colsample_bytree, baseline, eval_metric, device, backend, n_threads,
    histogram_budget_mb :
        as in ``tg.Trainer``, with the same defaults; ``fit`` checks them. Of max_leaves, subsample
        and colsample_bytree only the defaults are built.
    random_state : 0 <= random_state < 2^64 keys all random choices; None or a numpy RandomState: a
        key is drawn from it.
    warm_start : whether ``fit`` goes on from the model that there is, up to ``n_estimators`` rounds
        in all. 50 rounds and then 100 are the model of 100 rounds, if the data are the same.
    early_stopping : whether to stop when the metric of the last evaluation set has not improved for
        some rounds, and keep the best round's model. Without ``eval_set``, rows are held out of
        training, for which X is copied.
    validation_fraction : share (a float) or number (an integer) of the rows to hold out, with the
        same share of each class.
    n_iter_no_change : >= 1, rounds without improvement after which early stopping stops.
    tol : >= 0, in units of the metric; an improvement must be larger than this.
    callbacks : list of objects as in ``tg.callbacks``, or None.
    class_weight : factors on the weights of rows, by their class: a dict, where classes left out
        have 1; "balanced" for n_rows / (n_classes * rows of the class), counting rows of positive
        weight; or None. Evaluation sets that are passed to ``fit`` keep their weights.

    Attributes
    ----------
    model_ : the trained ``tg.Model``.
    history_ : {"valid_0": {"logloss": [one per round]}, ...}; with "train" where ``eval_metric`` is
        named.
    classes_, n_classes_ : class labels in ascending order, and their number.
    n_iter_, best_iteration_, feature_importances_ : see there.
    n_features_in_, feature_names_in_ : columns of X, and their names if it was a data frame.
    """

    def __init__(
        self,
        *,
        objective: str | None = None,
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
        class_weight: Any = None,
    ) -> None:
        super().__init__(
            objective=objective,
            n_estimators=n_estimators,
            learning_rate=learning_rate,
            max_depth=max_depth,
            max_leaves=max_leaves,
            max_bins=max_bins,
            min_samples_leaf=min_samples_leaf,
            min_child_weight=min_child_weight,
            reg_lambda=reg_lambda,
            gamma=gamma,
            subsample=subsample,
            colsample_bytree=colsample_bytree,
            baseline=baseline,
            eval_metric=eval_metric,
            random_state=random_state,
            device=device,
            backend=backend,
            n_threads=n_threads,
            histogram_budget_mb=histogram_budget_mb,
            warm_start=warm_start,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            n_iter_no_change=n_iter_no_change,
            tol=tol,
            callbacks=callbacks,
        )
        self.class_weight = class_weight

    def _prepare(self, given: FitArguments, previous: Model | None) -> Prepared:
        self._check_objective(takes_classes=True)
        labels, kept = to_host(given.y, "y"), kept_rows(given)
        n_rows, labels = labels.size, labels[kept]
        assert_all_finite(labels, input_name="y")
        check_classification_targets(labels)
        known = None if previous is None else previous.classes
        classes = find_classes(labels, "y", SINGLE_RANK) if known is None else known
        codes = encode_labels(labels, classes, "y", kept)
        if self.class_weight is not None:
            weights = to_host(given.sample_weight, "sample_weight")
            of_kept = None if weights is None else weights[kept]
            weights = np.zeros(n_rows)
            weights[kept] = weigh_classes(self.class_weight, classes, codes, of_kept)
            given = replace(given, sample_weight=weights)
            codes = codes[np.isin(kept, kept_rows(given))]  # a factor of 0 drops rows
        objective: Any = self.objective
        if objective is None and previous is not None:
            objective = previous.objective
        elif objective is None:
            objective = "softmax" if np.count_nonzero(np.bincount(codes)) > 2 else "logistic"
        return Prepared(given, objective, codes)

    @property
    def classes_(self) -> AnyArray:
        """Class labels in ascending order: the columns of ``predict_proba``."""
        check_is_fitted(self)
        classes = self.model_.classes
        assert classes is not None
        return classes

    @property
    def n_classes_(self) -> int:
        """Number of classes."""
        return int(self.classes_.size)

    def predict(self, X: Any, *, base_margin: Any = None) -> Any:
        """Predict the likeliest class of each row.

        Parameters
        ----------
        X : as in ``fit``.
        base_margin : raw predictions that the trees are added to, (n_rows,), or (n_rows, n_classes)
            for softmax.

        Returns
        -------
        (n_rows,): a tensor on X's device if X is a tensor and classes are numbers, else an array.
        """
        return self._ask_model("predict", X, base_margin)

    def predict_proba(self, X: Any, *, base_margin: Any = None) -> Any:
        """Probabilities of the classes, (n_rows, n_classes), as a tensor if X is one."""
        return self._ask_model("predict_proba", X, base_margin)

    def decision_function(self, X: Any, *, base_margin: Any = None) -> Any:
        """Raw predictions: > 0 for the second of two classes, (n_rows,); else one per class."""
        raw = self._ask_model("predict_raw", X, base_margin)
        return raw[:, 1] - raw[:, 0] if raw.ndim == 2 and raw.shape[1] == 2 else raw

    def staged_predict_proba(self, X: Any, *, base_margin: Any = None) -> Iterator[Any]:
        """``predict_proba`` after each round: ``n_iter_`` results, each one round's work."""
        stages: Iterator[Any] = self._ask_model("staged_predict_proba", X, base_margin)
        return stages

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy: the share of rows whose class is predicted; computed on the host."""
        predicted = to_host(self.predict(X), "prediction")
        weights = to_host(sample_weight, "sample_weight")
        return float(accuracy_score(to_host(y, "y"), predicted, sample_weight=weights))

"""``tg.GBDTRegressor``."""

from typing import Any

from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from torchgbdt.sklearn_api.estimator import GBDTEstimator, Prepared
from torchgbdt.sklearn_api.inputs import to_host
from torchgbdt.torch_api.fit_arguments import FitArguments
from torchgbdt.torch_api.model import Model


class GBDTRegressor(RegressorMixin, GBDTEstimator):  # type: ignore[misc]
    """Gradient-boosted trees for real targets, as a scikit-learn estimator.

    Parameters
    ----------
    objective : "squared_error".
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
    validation_fraction : share (a float) or number (an integer) of the rows to hold out.
    n_iter_no_change : >= 1, rounds without improvement after which early stopping stops.
    tol : >= 0, in units of the metric; an improvement must be larger than this.
    callbacks : list of objects as in ``tg.callbacks``, or None.

    Attributes
    ----------
    model_ : the trained ``tg.Model``.
    history_ : {"valid_0": {"rmse": [one per round]}, ...}; with "train" where ``eval_metric`` is
        named.
    n_iter_, best_iteration_, feature_importances_ : see there.
    n_features_in_, feature_names_in_ : columns of X, and their names if it was a data frame.
    """

    def _prepare(self, given: FitArguments, previous: Model | None) -> Prepared:
        self._check_objective(takes_classes=False)
        return Prepared(given, self.objective)

    def predict(self, X: Any, *, base_margin: Any = None) -> Any:
        """Predict the mean of each row's target.

        Parameters
        ----------
        X : as in ``fit``.
        base_margin : raw predictions that the trees are added to, (n_rows,).

        Returns
        -------
        (n_rows,): a tensor on X's device if X is a tensor, else a float64 array.
        """
        return self._ask_model("predict", X, base_margin)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R squared, the share of the variance of ``y`` that the prediction explains."""
        predicted = to_host(self.predict(X), "prediction")
        weights = to_host(sample_weight, "sample_weight")
        return float(r2_score(to_host(y, "y"), predicted, sample_weight=weights))

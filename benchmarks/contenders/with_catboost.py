"""CatBoost: its own symmetric trees, without what it does to small data by default.

It limits neither rows nor Hessian of the leaves of symmetric trees.
"""

from typing import Any

import catboost
from synthetic import Float32Array

from contenders.contender import Contender

OBJECTIVES = {"squared_error": "RMSE", "logistic": "Logloss", "softmax": "MultiClass"}


class CatBoost(Contender):
    """A quantized ``Pool``, then ``fit``."""

    def params(self) -> dict[str, Any]:
        s = self.settings
        learning_rate, reg_lambda = s.step(1.0)  # a Newton step with the whole softmax Hessian
        return {
            "loss_function": OBJECTIVES[s.objective],
            "iterations": s.n_rounds,
            "learning_rate": learning_rate,
            "l2_leaf_reg": reg_lambda,
            "depth": s.max_depth,
            "border_count": s.max_bins - 2,  # 255 bins of values
            "boosting_type": "Plain",
            "bootstrap_type": "No",
            "random_strength": 0.0,  # no noise is added to gains
            "leaf_estimation_iterations": 1,  # one step per tree, as all others take
            "metric_period": s.n_rounds,  # and no metrics on the way
            "thread_count": s.n_threads,
            "allow_writing_files": False,
            "logging_level": "Silent",
        }

    def version(self) -> str:
        return str(catboost.__version__)

    def load(self, X: Float32Array, y: Float32Array) -> Any:
        return X, y

    def bin(self, data: Any) -> Any:
        X, y = data
        pool = catboost.Pool(X, y, thread_count=self.settings.n_threads)
        pool.quantize(border_count=self.settings.max_bins - 2)
        return pool

    def train(self, binned: Any) -> None:
        self.model = catboost.CatBoost(self.params()).fit(binned)

    def predict(self, X: Float32Array) -> Any:
        kind = "RawFormulaVal" if self.settings.objective == "squared_error" else "Probability"
        result = self.model.predict(X, prediction_type=kind, thread_count=self.settings.n_threads)
        return result[:, 1] if self.settings.objective == "logistic" else result

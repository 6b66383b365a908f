"""LightGBM: grows leaf by leaf, so the depth limits it and the number of leaves does not.

It sums histograms by columns or by rows; left alone it tries both when a training starts, which
takes time. Both compete here, without the trial.
"""

from typing import Any

import lightgbm as lgb
from synthetic import Float32Array

from contenders.contender import Contender

OBJECTIVES = {"squared_error": "regression", "logistic": "binary", "softmax": "multiclass"}


class LightGBM(Contender):
    """``lgb.Dataset`` constructed first, then ``lgb.train``; histograms by columns."""

    layout = "force_col_wise"

    def params(self) -> dict[str, Any]:
        s = self.settings
        # multiclass takes K / (K - 1) p (1 - p)
        learning_rate, reg_lambda = s.step(s.n_classes / max(1, s.n_classes - 1))
        params = {
            "objective": OBJECTIVES[s.objective],
            "learning_rate": learning_rate,
            "lambda_l2": reg_lambda,
            "max_depth": s.max_depth,
            "num_leaves": 2**s.max_depth,
            # 255 is the most that fits into a byte; beyond it everything is twice as wide
            "max_bin": s.max_bins - 1,
            "min_data_in_leaf": s.min_samples_leaf,
            "min_sum_hessian_in_leaf": s.min_child_weight,
            "num_threads": s.n_threads,
            self.layout: True,
            "enable_bundle": False,  # no feature here is sparse; looking for such ones takes time
            "metric": "none",
            "verbosity": -1,
        }
        return params | ({"num_class": s.n_classes} if s.objective == "softmax" else {})

    def version(self) -> str:
        return str(lgb.__version__)

    def load(self, X: Float32Array, y: Float32Array) -> Any:
        return X, y

    def bin(self, data: Any) -> Any:
        X, y = data
        return lgb.Dataset(X, y, params=self.params()).construct()

    def train(self, binned: Any) -> None:
        self.model = lgb.train(self.params(), binned, num_boost_round=self.settings.n_rounds)

    def predict(self, X: Float32Array) -> Any:
        return self.model.predict(X, num_threads=self.settings.n_threads)


class LightGBMByRows(LightGBM):
    """The same with histograms by rows."""

    layout = "force_row_wise"

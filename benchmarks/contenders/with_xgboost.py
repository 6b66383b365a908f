"""XGBoost: the histogram method, on both of its matrices.

A DMatrix copies the floats, and is binned when training begins; a QuantileDMatrix is binned when it
is made, and needs less memory. Which one takes less time in all depends on the data.
"""

from typing import Any

import xgboost as xgb
from synthetic import Float32Array

from contenders.contender import Contender
from contenders.settings import Settings

OBJECTIVES = {
    "squared_error": "reg:squarederror",
    "logistic": "binary:logistic",
    "softmax": "multi:softprob",
}
SOFTMAX_FACTOR = 2.0

# It counts no rows, only Hessian. These are of one row when training begins: 1; p (1 - p) at one
# half; and, near enough for a few classes of like frequency, 2 p (1 - p).
HESSIAN_OF_ROW = {"squared_error": 1.0, "logistic": 0.25, "softmax": 0.25}


class XGBoost(Contender):
    """A ``DMatrix``, ``xgb.train``, ``inplace_predict``."""

    bins_apart = False

    def params(self) -> dict[str, Any]:
        s = self.settings
        learning_rate, reg_lambda = s.step(SOFTMAX_FACTOR)
        params = {
            "objective": OBJECTIVES[s.objective],
            "tree_method": "hist",
            "learning_rate": learning_rate,
            "reg_lambda": reg_lambda,
            "max_depth": s.max_depth,
            "max_bin": s.max_bins,
            "min_child_weight": max(
                s.min_child_weight, s.min_samples_leaf * HESSIAN_OF_ROW[s.objective]
            ),
            "nthread": s.n_threads,
            "disable_default_eval_metric": 1,
            "verbosity": 0,
        }
        return params | ({"num_class": s.n_classes} if s.objective == "softmax" else {})

    def version(self) -> str:
        return str(xgb.__version__)

    def load(self, X: Float32Array, y: Float32Array) -> Any:
        return X, y

    def bin(self, data: Any) -> Any:
        X, y = data
        return xgb.DMatrix(X, label=y, nthread=self.settings.n_threads)

    def bin_alone(self, data: Any) -> None:
        quantile_matrix(data, self.settings)

    def train(self, binned: Any) -> None:
        self.model = xgb.train(self.params(), binned, num_boost_round=self.settings.n_rounds)

    def predict(self, X: Float32Array) -> Any:
        return self.model.inplace_predict(X)


class XGBoostQuantile(XGBoost):
    """The same on a ``QuantileDMatrix``."""

    bins_apart = True

    def bin(self, data: Any) -> Any:
        return quantile_matrix(data, self.settings)


def quantile_matrix(data: Any, settings: Settings) -> Any:
    """The rows, binned."""
    X, y = data
    return xgb.QuantileDMatrix(X, label=y, max_bin=settings.max_bins, nthread=settings.n_threads)

"""XGBoost: the histogram method, on whichever of two matrices takes less time to bin and train.

A DMatrix copies the floats, and is binned when training begins; a QuantileDMatrix is binned when it
is made, and needs less memory. With few features the first was faster on one machine with two cores
(by 9% on W4, 4 runs of each; 8% on W2, 2 runs; 5% on W1, 1 run), with many the second (by 2 to 3%
on W3 and W5, 1 run of each: within the noise). W6 was not tried.
"""

from typing import Any

import xgboost as xgb
from synthetic import Float32Array

from contenders.contender import Contender

OBJECTIVES = {
    "squared_error": "reg:squarederror",
    "logistic": "binary:logistic",
    "softmax": "multi:softprob",
}
SOFTMAX_FACTOR = 2.0
MANY_FEATURES = 40

# It counts no rows, only Hessian. These are of one row when training begins: 1; p (1 - p) at one
# half; and, near enough for a few classes of like frequency, 2 p (1 - p).
HESSIAN_OF_ROW = {"squared_error": 1.0, "logistic": 0.25, "softmax": 0.25}


class XGBoost(Contender):
    """A matrix, ``xgb.train``, ``inplace_predict``."""

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
        if X.shape[1] < MANY_FEATURES:
            return xgb.DMatrix(X, label=y, nthread=self.settings.n_threads)
        return self._quantile_matrix(X, y)

    def bin_alone(self, data: Any) -> None:
        self._quantile_matrix(*data)

    def _quantile_matrix(self, X: Float32Array, y: Float32Array) -> Any:
        s = self.settings
        return xgb.QuantileDMatrix(X, label=y, max_bin=s.max_bins, nthread=s.n_threads)

    def train(self, binned: Any) -> None:
        self.model = xgb.train(self.params(), binned, num_boost_round=self.settings.n_rounds)

    def predict(self, X: Float32Array) -> Any:
        return self.model.inplace_predict(X)

"""scikit-learn's histogram booster. Its threads are OpenMP's, which one_run.py sets."""

from typing import Any

import sklearn
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper
from synthetic import Float32Array

from contenders.contender import Contender


class ScikitLearn(Contender):
    """``fit`` bins as well; its bin mapper alone is private, and asked only for its time."""

    bins_apart = False

    def estimator(self) -> Any:
        s = self.settings
        learning_rate, reg_lambda = s.step(1.0)
        kind = (
            HistGradientBoostingRegressor
            if s.objective == "squared_error"
            else HistGradientBoostingClassifier
        )
        return kind(
            learning_rate=learning_rate,
            l2_regularization=reg_lambda,
            max_iter=s.n_rounds,
            max_depth=s.max_depth,
            max_leaf_nodes=None,
            max_bins=s.max_bins - 1,
            min_samples_leaf=s.min_samples_leaf,
            early_stopping=False,
            random_state=0,
        )

    def version(self) -> str:
        return str(sklearn.__version__)

    def load(self, X: Float32Array, y: Float32Array) -> Any:
        return X, y

    def bin(self, data: Any) -> Any:
        return data

    def bin_alone(self, data: Any) -> None:
        s = self.settings
        # n_bins counts the one for missing values
        mapper = _BinMapper(n_bins=s.max_bins, random_state=0, n_threads=s.n_threads)
        mapper.fit_transform(data[0])

    def train(self, binned: Any) -> None:
        self.model = self.estimator().fit(*binned)

    def predict(self, X: Float32Array) -> Any:
        if self.settings.objective == "squared_error":
            return self.model.predict(X)
        probabilities = self.model.predict_proba(X)
        return probabilities[:, 1] if self.settings.objective == "logistic" else probabilities

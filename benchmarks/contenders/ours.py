"""torchgbdt as its users call it: on torch tensors."""

from typing import Any

import torch
from synthetic import Float32Array

import torchgbdt as tg
from contenders.contender import Contender
from contenders.settings import Settings

SOFTMAX_FACTOR = 2.0


class Torchgbdt(Contender):
    """``tg.Trainer.fit`` on tensors, which bins them; binning alone is ``tg.Dataset``."""

    bins_apart = False

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        torch.set_num_threads(settings.n_threads)  # what tg.Dataset and predict go by

    def trainer(self) -> tg.Trainer:
        s = self.settings
        learning_rate, reg_lambda = s.step(SOFTMAX_FACTOR)
        return tg.Trainer(
            objective=s.objective,
            n_estimators=s.n_rounds,
            learning_rate=learning_rate,
            max_depth=s.max_depth,
            max_bins=s.max_bins,
            min_samples_leaf=s.min_samples_leaf,
            min_child_weight=s.min_child_weight,
            reg_lambda=reg_lambda,
            n_threads=s.n_threads,
        )

    def version(self) -> str:
        return tg.__version__

    def load(self, X: Float32Array, y: Float32Array) -> Any:
        return torch.from_numpy(X), torch.from_numpy(y)

    def bin(self, data: Any) -> Any:
        return data

    def bin_alone(self, data: Any) -> None:
        tg.Dataset(*data, max_bins=self.settings.max_bins)

    def train(self, binned: Any) -> None:
        self.model = self.trainer().fit(*binned)

    def predict(self, X: Float32Array) -> Any:
        rows = torch.from_numpy(X)
        if self.settings.objective == "squared_error":
            return self.model.predict(rows).numpy()
        probabilities = self.model.predict_proba(rows).numpy()
        return probabilities[:, 1] if self.settings.objective == "logistic" else probabilities

    def digest(self) -> str | None:
        return self.model.digest()

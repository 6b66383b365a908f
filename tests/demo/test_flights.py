"""The demo's model is one model, whatever trains it and however its flights lie in memory."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from flights_data import FEATURES, Flights, Part, load_flights
from support.exact import assert_identical
from support.ranks import run_ranks

import torchgbdt as tg
from torchgbdt.backends.registry import make_backend
from torchgbdt.core.backend import ComputeBackend
from torchgbdt.core.communicator import Communicator
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.run_data import RawData, TrainingData
from torchgbdt.core.settings import TrainerSettings
from torchgbdt.core.trainer import TrainingSession

N_FLIGHTS = 20_000
SETTINGS: dict[str, Any] = {"n_estimators": 5, "eval_metric": "rmse"}
"""Those of the demo, and fewer trees."""


@cache
def flights() -> Flights:
    return load_flights(N_FLIGHTS)


def train(X: Any, y: Any, **where: Any) -> tuple[str, Any]:
    """Digest and history, trained as the demo trains."""
    trainer = tg.Trainer(**SETTINGS, **where)
    data = tg.Dataset(X, y, feature_names=list(FEATURES))
    model = trainer.fit(data, eval_set=[(flights().valid.X, flights().valid.y)])
    return model.digest(), trainer.history


@cache
def expected() -> tuple[str, Any]:
    return train(flights().train.X, flights().train.y, backend="oracle")


@pytest.mark.parametrize("n_threads", [1, 2, 3, 7])
def test_cpu_has_the_model_of_the_oracle_for_any_number_of_threads(n_threads: int) -> None:
    train_part = flights().train
    found = train(train_part.X, train_part.y, backend="cpu", n_threads=n_threads)
    assert_identical(found, expected())


def share(part: Part, communicator: Communicator) -> RawData:
    """The rows of one rank; each rank has more of them than the one before."""
    size = communicator.size
    first, end = (
        len(part.y) * k * (k + 1) // (size * (size + 1))
        for k in (communicator.rank, communicator.rank + 1)
    )
    X, y = HostMatrix(part.X[first:end].numpy()), part.y[first:end].numpy()
    return RawData(X, y, feature_names=tuple(FEATURES))


def train_a_share(backend: ComputeBackend, communicator: Communicator) -> tuple[str, Any]:
    settings = TrainerSettings(n_estimators=SETTINGS["n_estimators"], eval_metric=("rmse",))
    session = TrainingSession(settings, backend, (), communicator)
    train_part, valid = share(flights().train, communicator), share(flights().valid, communicator)
    model = session.run(TrainingData(train_part, [valid], None, [None]))
    return model.digest(), session.history


@pytest.mark.parametrize("n_ranks", [2, 3])
@pytest.mark.parametrize("backend", ["cpu", "oracle"])
def test_each_of_several_ranks_has_the_model_of_one(backend: str, n_ranks: int) -> None:
    found = run_ranks(n_ranks, lambda ranks: train_a_share(make_backend(backend, "cpu", 1), ranks))
    assert_identical(found, [expected()] * n_ranks)


def every_other_row_and_column(X: torch.Tensor) -> torch.Tensor:
    wide = torch.full((2 * X.shape[0], 2 * X.shape[1] + 1), torch.nan)
    wide[::2, 1::2] = X
    return wide[::2, 1::2]


COPIES: dict[str, Callable[[torch.Tensor], Any]] = {
    "float64": torch.Tensor.double,
    "column by column": lambda X: X.T.contiguous().T,
    "every other row and column": every_other_row_and_column,
    "numpy": lambda X: X.numpy().copy(),
    "numpy, reversed": lambda X: np.flip(np.flip(X.numpy()).copy()),
    "numpy, Fortran order, float64": lambda X: np.asfortranarray(X.numpy().astype(np.float64)),
}


@pytest.mark.parametrize("name", COPIES)
def test_any_copy_of_the_flights_gives_the_same_model(name: str) -> None:
    X = COPIES[name](flights().train.X)
    assert_identical(train(X, flights().train.y), expected())


def test_arrival_delays_in_float64_give_the_same_model() -> None:
    train_part = flights().train
    assert_identical(train(train_part.X, train_part.y.double()), expected())


def test_a_cut_keeps_every_kind_of_flight() -> None:
    parts = (flights().train, flights().valid, flights().test)
    assert sum(len(part.y) for part in parts) == N_FLIGHTS < flights().n_read == 336_776
    assert [part.X.shape[1] for part in parts] == [len(FEATURES)] * 3
    assert all(part.y.isfinite().all() for part in parts)
    assert not parts[0].X.isnan().all(dim=0).any()  # every column has values

"""Whole trainings, as users start them, each of them small; the models are the oracle's."""

from functools import cache
from typing import Any

import pytest
import torch
from pytest_benchmark.fixture import BenchmarkFixture

import torchgbdt as tg
from kernels.staged_run import Shape

SHAPES = {
    "regression": Shape(n_rows=20_000, depth=6),
    "few-rows": Shape(n_rows=1_000, n_features=20, depth=6),
    "wide": Shape(n_rows=2_000, n_features=300, depth=4),
    "logistic": Shape("logistic", n_rows=20_000, n_classes=2, depth=6),
    "softmax": Shape("softmax", n_rows=5_000, n_features=20, n_classes=4, depth=4),
}
ROUNDS = 10


def train(shape: Shape, **settings: Any) -> tg.Model:
    X, y = map(torch.from_numpy, shape.rows())
    return tg.train(X, y, objective=shape.objective, n_estimators=ROUNDS,
                    max_depth=shape.depth, **settings)  # fmt: skip


@cache
def digest_of_oracle(name: str) -> str:
    return train(SHAPES[name], backend="oracle").digest()


@pytest.mark.parametrize("name", SHAPES)
def test_train(benchmark: BenchmarkFixture, name: str, n_threads: int) -> None:
    X, y = map(torch.from_numpy, SHAPES[name].rows())
    trainer = tg.Trainer(objective=SHAPES[name].objective, n_estimators=ROUNDS,
                         max_depth=SHAPES[name].depth, n_threads=n_threads)  # fmt: skip
    assert trainer.fit(X, y).digest() == digest_of_oracle(name)
    benchmark(trainer.fit, X, y)

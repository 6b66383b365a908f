"""Predictions of one tree on bins, while training, and of a forest on raw rows."""

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from kernels.both_backends import native_run, oracle_run
from kernels.staged_run import Shape, StagedRun
from torchgbdt.backends.native import NativeBackend
from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.run_data import RawData, TrainingData
from torchgbdt.core.settings import TrainerSettings
from torchgbdt.core.trainer import TrainingSession
from torchgbdt.core.tree import Forest

SHAPE = Shape(depth=1)


@pytest.fixture(scope="module")
def forest() -> Forest:
    """Ten trees of depth 6, trained by the oracle on some rows."""
    X, y = Shape(n_rows=20_000).rows()
    session = TrainingSession(TrainerSettings(n_estimators=10), OracleBackend())
    return session.run(TrainingData(RawData(HostMatrix(X), y))).forest


def test_update_predictions(benchmark: BenchmarkFixture, forest: Forest, n_threads: int) -> None:
    tree = forest.tree(0)
    runs = [StagedRun(backend, SHAPE) for backend in (NativeBackend(n_threads), OracleBackend())]
    for run in runs:
        run.backend.update_predictions(tree, 0)
    found, expected = (run.backend.read_predictions(0) for run in runs)
    assert np.array_equal(found, expected) and found.any()
    benchmark(runs[0].backend.update_predictions, tree, 0)


@pytest.mark.parametrize("n_rows", [1_000, 65_536])
def test_predict(benchmark: BenchmarkFixture, forest: Forest, n_rows: int, n_threads: int) -> None:
    native, oracle = native_run(SHAPE, n_threads), oracle_run(SHAPE)
    source = HostMatrix(oracle.source.values[:n_rows])
    sums = np.zeros((2, n_rows, 1), np.float32)
    native.backend.predict(forest, source, sums[0])
    oracle.backend.predict(forest, source, sums[1])
    assert np.array_equal(*sums)
    benchmark(native.backend.predict, forest, source, sums[0])

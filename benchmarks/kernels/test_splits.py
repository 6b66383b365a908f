"""The search for splits: of one node, and of a level."""

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from kernels.both_backends import native_run, oracle_run
from kernels.staged_run import Shape
from torchgbdt.core.backend import LevelBatch

SHAPES = [Shape(), Shape("logistic", n_classes=2)]
NAMES = {"squared_error": "constant-hessian", "logistic": "hessians"}


@pytest.mark.parametrize("n_nodes", [1, 32])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: NAMES[shape.objective])
def test_find_splits(
    benchmark: BenchmarkFixture, shape: Shape, n_nodes: int, n_threads: int
) -> None:
    native, oracle = native_run(shape, n_threads), oracle_run(shape)
    batch, same = (
        LevelBatch(run.level.nodes[:n_nodes], run.level.sums[:n_nodes]) for run in (native, oracle)
    )
    splits, left_sums = native.backend.find_splits(batch, native.rules)
    expected, expected_sums = oracle.backend.find_splits(same, oracle.rules)
    assert splits.size == n_nodes and splits["found"].all()
    assert np.array_equal(splits, expected) and np.array_equal(left_sums, expected_sums)
    benchmark(native.backend.find_splits, batch, native.rules)

"""Gradients of each objective, and their rounding to fixed point."""

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from kernels.both_backends import native_run, oracle_run
from kernels.staged_run import Shape

SHAPES = [
    Shape(),
    Shape("logistic", n_classes=2),
    Shape("softmax", n_features=35, n_classes=7, depth=2),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.objective)
def test_compute_gradients(benchmark: BenchmarkFixture, shape: Shape, n_threads: int) -> None:
    run, oracle = native_run(shape, n_threads), oracle_run(shape)
    assert all(map(np.array_equal, run.backend.read_gradients(), oracle.backend.read_gradients()))
    benchmark(run.backend.compute_gradients, 0)


@pytest.mark.parametrize("shape", SHAPES[:2], ids=lambda shape: shape.objective)
def test_round_gradients(benchmark: BenchmarkFixture, shape: Shape, n_threads: int) -> None:
    run, oracle = native_run(shape, n_threads), oracle_run(shape)
    assert all(
        map(np.array_equal, run.backend.read_fixed_point(), oracle.backend.read_fixed_point())
    )
    totals = benchmark(run.backend.round_gradients, run.scales)
    assert np.array_equal(totals, oracle.root.sums[0])

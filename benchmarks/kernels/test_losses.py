"""Losses of the training rows, as an evaluation computes them, and their exact sum."""

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from kernels.both_backends import native_run, oracle_run
from kernels.staged_run import Shape
from torchgbdt.core.fixed_point import loss_bits, scale_exponent
from torchgbdt.core.metrics import LogisticLoss, MeanLoss, RootMeanSquaredError, SoftmaxLoss

CASES = {
    "rmse": (RootMeanSquaredError(), Shape()),
    "logloss": (LogisticLoss(), Shape("logistic", n_classes=2)),
    "softmax": (SoftmaxLoss(), Shape("softmax", n_features=35, n_classes=7, depth=2)),
}


@pytest.mark.parametrize(("metric", "shape"), CASES.values(), ids=CASES)
def test_compute_losses(
    benchmark: BenchmarkFixture, metric: MeanLoss, shape: Shape, n_threads: int
) -> None:
    native, oracle = native_run(shape, n_threads).backend, oracle_run(shape).backend
    largest, finite = oracle.compute_losses(metric, 0)
    assert native.compute_losses(metric, 0) == (largest, finite) and finite and largest > 0
    scale = scale_exponent(largest, loss_bits(shape.n_rows))
    assert native.sum_losses(scale) == oracle.sum_losses(scale) > 0
    benchmark(native.compute_losses, metric, 0)


def test_sum_losses(benchmark: BenchmarkFixture, n_threads: int) -> None:
    metric, shape = CASES["rmse"]
    native, oracle = native_run(shape, n_threads).backend, oracle_run(shape).backend
    largest, _ = oracle.compute_losses(metric, 0)
    scale = scale_exponent(largest, loss_bits(shape.n_rows))
    native.compute_losses(metric, 0)
    assert native.sum_losses(scale) == oracle.sum_losses(scale) > 0
    benchmark(native.sum_losses, scale)

"""Binning of float32 rows, and the thresholds that come before it."""

import numpy as np
from pytest_benchmark.fixture import BenchmarkFixture

from kernels.both_backends import native_run, oracle_run
from kernels.staged_run import Shape
from torchgbdt.core.binning import fit_thresholds
from torchgbdt.core.communicator import SINGLE_RANK
from torchgbdt.core.settings import BinningSettings

SHAPE = Shape()


def test_bin_features(benchmark: BenchmarkFixture, n_threads: int) -> None:
    run = native_run(SHAPE, n_threads)
    bins = np.full(run.source.values.shape, 77, np.uint8)
    arguments = (run.source, None, run.thresholds, bins)
    run.backend.bin_features(*arguments)
    assert np.array_equal(bins, oracle_run(SHAPE).data.train.bins)
    benchmark(run.backend.bin_features, *arguments)


def test_fit_thresholds(benchmark: BenchmarkFixture) -> None:
    run = oracle_run(SHAPE)
    assert set(run.thresholds.n_value_bins) == {255}
    fullest = max(np.bincount(column).max() for column in run.data.train.bins[:, 1:].T)
    assert fullest <= 1.02 * SHAPE.n_rows / 255  # values are continuous: bins are alike
    arguments = (run.source, None, 0, None, BinningSettings(), SINGLE_RANK)
    benchmark(fit_thresholds, *arguments)

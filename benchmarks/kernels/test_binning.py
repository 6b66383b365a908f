"""Binning of float32 rows, and the thresholds that come before it."""

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from kernels.both_backends import native_run, oracle_run
from kernels.staged_run import Shape
from torchgbdt.core import columns, quantiles
from torchgbdt.core.arrays import Float64Array
from torchgbdt.core.binning import fit_thresholds
from torchgbdt.core.communicator import SINGLE_RANK
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.settings import BinningSettings

SHAPE = Shape()
FEATURES = range(SHAPE.n_features)
LIMIT = 255


def test_bin_features(benchmark: BenchmarkFixture, n_threads: int) -> None:
    run = native_run(SHAPE, n_threads)
    arguments = (run.source, None, run.thresholds)
    bins = run.backend.bin_features(*arguments)
    assert np.array_equal(bins, oracle_run(SHAPE).data.train.bins)
    benchmark(run.backend.bin_features, *arguments)


def test_fit_thresholds(benchmark: BenchmarkFixture, n_threads: int) -> None:
    """As a run does it: columns are read and sorted by the backend."""
    run = native_run(SHAPE, n_threads)
    arguments = (run.source, None, 0, None, BinningSettings(), SINGLE_RANK)
    found = fit_thresholds(*arguments, run.backend)
    expected = fit_thresholds(*arguments)
    assert np.array_equal(found.values, expected.values)
    assert np.array_equal(found.n_value_bins, expected.n_value_bins)
    assert set(found.n_value_bins) == {LIMIT}
    fullest = max(np.bincount(column).max() for column in run.data.train.bins[:, 1:].T)
    assert fullest <= 1.02 * SHAPE.n_rows / LIMIT  # values are continuous: bins are alike
    benchmark(fit_thresholds, *arguments, run.backend)


def same(found: Float64Array | None, expected: Float64Array | None) -> bool:
    if found is None or expected is None:
        return found is expected
    return np.array_equal(found, expected)


@pytest.mark.parametrize("values", ["few", "many"])
def test_distinct_values(benchmark: BenchmarkFixture, values: str, n_threads: int) -> None:
    """All rows are read where values are few; where they are many, the first rows show it."""
    backend = native_run(SHAPE, n_threads).backend
    X, _ = SHAPE.rows()
    source = HostMatrix(np.round(100 * X) if values == "few" else X)
    found = backend.distinct_values(source, None, FEATURES, LIMIT)
    expected = columns.distinct_values(source, None, FEATURES, LIMIT)
    assert all(map(same, found, expected))
    assert {one is None for one in expected} == {values == "many"}
    benchmark(backend.distinct_values, source, None, FEATURES, LIMIT)


def test_sort_columns(benchmark: BenchmarkFixture, n_threads: int) -> None:
    run = native_run(SHAPE, n_threads)
    rows = np.arange(0, SHAPE.n_rows, 2)
    expected = columns.sort_columns(run.source, rows, FEATURES)
    found = run.backend.sort_columns(run.source, rows, FEATURES)
    assert np.array_equal(found, expected, equal_nan=True)
    benchmark(run.backend.sort_columns, run.source, rows, FEATURES)


def test_cut_column(benchmark: BenchmarkFixture) -> None:
    run = native_run(SHAPE, 1)
    values = columns.sort_columns(run.source, np.arange(SHAPE.n_rows), range(1, 2))[0]
    found = run.backend.cut_column(values, LIMIT)
    assert np.array_equal(found, quantiles.cut_column(values, LIMIT))
    assert found.size == LIMIT - 1
    benchmark(run.backend.cut_column, values, LIMIT)

"""Storing rows anew, in the order of a level's nodes: once in ten trees of large data."""

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from kernels.both_backends import oracle_run
from kernels.staged_run import Shape
from torchgbdt import _native
from torchgbdt.backends.stored_rows import ROW_ID_DTYPE

SHAPE = Shape()


@pytest.mark.parametrize("what", ["bins", "labels"])
def test_gather_rows(benchmark: BenchmarkFixture, what: str, n_threads: int) -> None:
    run = oracle_run(SHAPE)
    rows = run.backend.read_row_order().astype(ROW_ID_DTYPE)
    assert not np.array_equal(rows, np.arange(rows.size))
    given = np.asarray(run.data.train.bins)
    if what == "labels":  # any 4 bytes
        given = np.ascontiguousarray(given[:, :4])
    gathered = np.full_like(given, 77)
    _native.gather_rows(given, rows, gathered, n_threads)
    assert np.array_equal(gathered, given[rows])
    benchmark(_native.gather_rows, given, rows, gathered, n_threads)


def test_transpose_bins(benchmark: BenchmarkFixture, n_threads: int) -> None:
    run = oracle_run(SHAPE)
    bins = np.asarray(run.data.train.bins)
    columns = np.full(bins.shape[::-1], 77, np.uint8)
    arguments = (bins, run.thresholds.n_value_bins, columns, n_threads)
    _native.transpose_bins(*arguments)
    assert np.array_equal(columns, bins.T)
    benchmark(_native.transpose_bins, *arguments)

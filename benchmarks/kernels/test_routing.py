"""Routing rows to the children of a level, and of the root."""

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from kernels.both_backends import native_run, oracle_run
from kernels.staged_run import Shape

ROUNDS = 50


@pytest.mark.parametrize("depth", [1, 5], ids=["root", "level"])
def test_route_rows(benchmark: BenchmarkFixture, depth: int, n_threads: int) -> None:
    shape = Shape(depth=depth)
    run, oracle = native_run(shape, n_threads), oracle_run(shape)
    nodes, splits = run.routed[-1]
    run.stand_above()
    left_rows = run.backend.route_rows(nodes, splits)
    assert np.array_equal(left_rows, oracle.level.nodes["n_rows"][::2])
    assert np.array_equal(run.backend.read_row_order(), oracle.backend.read_row_order())
    # rows move once: each round starts from where they were
    benchmark.pedantic(
        run.backend.route_rows, (nodes, splits), setup=run.stand_above, rounds=ROUNDS
    )

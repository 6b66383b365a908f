"""Histograms of the root, whose rows lie in order, and of a level of nodes, whose rows do not."""

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from kernels.both_backends import native_run, oracle_run
from kernels.staged_run import Shape, StagedRun
from torchgbdt.core.backend import LevelBatch

SHAPES = [Shape(), Shape("logistic", n_classes=2)]
NAMES = {"squared_error": "constant-hessian", "logistic": "hessians"}


def batch_of(run: StagedRun, where: str) -> LevelBatch:
    return run.root if where == "root" else run.level


@pytest.mark.parametrize("where", ["root", "level"])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: NAMES[shape.objective])
def test_build_histograms(
    benchmark: BenchmarkFixture, shape: Shape, where: str, n_threads: int
) -> None:
    run, oracle = native_run(shape, n_threads), oracle_run(shape)
    answers = []
    for one in (run, oracle):
        batch = batch_of(one, where)
        one.backend.build_histograms(batch)
        answers.append(vars(one.backend.read_histograms(batch)))
        one.backend.build_histograms(one.level)  # what the shared run must hold
    assert all(np.array_equal(answers[0][name], answers[1][name]) for name in answers[1])
    benchmark(run.backend.build_histograms, batch_of(run, where))
    run.backend.build_histograms(run.level)


def test_subtract_histograms(benchmark: BenchmarkFixture, n_threads: int) -> None:
    run = native_run(SHAPES[0], n_threads)
    nodes = run.level.nodes[:2].copy()
    nodes["build"], nodes["sibling_slot"] = (True, False), (-1, nodes["slot"][0])
    batch = LevelBatch(nodes, run.level.sums[:2])
    before = run.backend.read_histograms(batch)
    run.backend.subtract_histograms(batch)
    after = run.backend.read_histograms(batch)
    assert np.array_equal(after.counts[1], before.counts[1] - before.counts[0])
    assert np.array_equal(after.gradients[1], before.gradients[1] - before.gradients[0])
    benchmark(run.backend.subtract_histograms, batch)
    run.backend.build_histograms(run.level)

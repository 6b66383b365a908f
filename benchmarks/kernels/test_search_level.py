"""A level from rows to splits, as a fit on one rank does it: the root, or pairs of siblings.

Of two siblings the smaller one is built, and what it leaves of their parent's histogram is the
other's; so the parents' histograms are built anew before each round.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from kernels.both_backends import native_run, oracle_run
from kernels.staged_run import Shape, StagedRun
from torchgbdt.core.arrays import AnyArray
from torchgbdt.core.backend import NO_SLOT, LevelBatch
from torchgbdt.core.communicator import SINGLE_RANK

SHAPES = [Shape(), Shape("logistic", n_classes=2)]
NAMES = {"squared_error": "constant-hessian", "logistic": "hessians"}
ROUNDS = 50


def family_batches(run: StagedRun) -> tuple[LevelBatch, LevelBatch]:
    """The level's parents, to be built, and its nodes, to be built or subtracted.

    One of two siblings takes over its parent's slot, as in ``histogram_plan``.
    """
    nodes = run.level.nodes.copy()
    left, right = nodes[::2], nodes[1::2]
    parents = left.copy()
    parents["n_rows"] += right["n_rows"]
    parents["count"] += right["count"]
    left_is_built = left["count"] <= right["count"]
    for one, is_built in ((left, left_is_built), (right, ~left_is_built)):
        one["build"] = is_built
        one["slot"] = parents["slot"] + is_built
        one["sibling_slot"] = np.where(is_built, NO_SLOT, parents["slot"] + 1)
    return LevelBatch(parents, run.level.sums[::2]), LevelBatch(nodes, run.level.sums)


def staged(run: StagedRun, where: str) -> tuple[Callable[[], None], LevelBatch]:
    """What must be done before each search, and what is searched."""
    if where == "root":
        return lambda: None, run.root
    parents, nodes = family_batches(run)
    return partial(run.backend.build_histograms, parents), nodes


def answer(run: StagedRun, where: str, keep: bool) -> list[AnyArray]:
    """Splits and left sums, and the histograms where they are to be kept."""
    prepare, batch = staged(run, where)
    prepare()
    found = list(run.backend.search_level(batch, run.rules, SINGLE_RANK, keep))
    return found + (list(vars(run.backend.read_histograms(batch)).values()) if keep else [])


@pytest.mark.parametrize("keep", [True, False], ids=["keep", "last-level"])
@pytest.mark.parametrize("where", ["root", "level"])
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: NAMES[shape.objective])
def test_search_level(
    benchmark: BenchmarkFixture, shape: Shape, where: str, keep: bool, n_threads: int
) -> None:
    run, oracle = native_run(shape, n_threads), oracle_run(shape)
    all_built = oracle.backend.find_splits(oracle.level, oracle.rules)
    found, expected = answer(run, where, keep), answer(oracle, where, keep)
    assert all(map(np.array_equal, found, expected))
    assert len(found) == len(expected) == (5 if keep else 2)
    assert expected[0]["found"].all()
    if where == "level":
        assert all(map(np.array_equal, expected, all_built))
    prepare, batch = staged(run, where)
    benchmark.pedantic(
        run.backend.search_level,
        (batch, run.rules, SINGLE_RANK, keep),
        setup=prepare,
        rounds=ROUNDS,
    )
    for one in (run, oracle):
        one.backend.build_histograms(one.level)  # what the shared runs must hold

"""The promise: one model, bit for bit, whatever computes it, on however many threads and ranks.

For each objective and each kind of data there is one digest and one history, over every backend,
each number of threads, and one, two or three shards of the rows.
"""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from support.backends import BACKENDS, BackendUnderTest
from support.exact import assert_identical
from support.ranks import train_in_ranks
from support.runs import Outcome, Scenario, train
from support.scenarios import scenario

OBJECTIVES = {"squared error": "{}", "logistic": "logistic, {}", "softmax": "3 classes, {}"}
KINDS = [
    "fractional weights", "zero weights", "huge range of weights", "subnormal weights",
    "missing values", "margins", "given baseline", "continued", "ties", "gamma", "many rows",
]  # fmt: skip
MATRIX = {
    f"{objective}: {kind}": pattern.format(kind)
    for objective, pattern in OBJECTIVES.items()
    for kind in KINDS
}
MATRIX |= {
    name: name
    for name in (
        "plain", "logistic", "2 classes", "3 classes", "7 classes", "30 classes",
        "logistic, one row of a class", "3 classes, one row of a class",
        "logistic, separable", "3 classes, separable", "logistic, saturated",
        "3 classes, saturated", "logistic, labels: text", "logistic, labels: bools",
        "3 classes, labels: text", "3 classes, labels: negative", "3 classes, labels: gapped",
    )
}  # fmt: skip


def outcomes(one: Scenario, under_test: BackendUnderTest) -> Iterator[Outcome]:
    """On one shard, on two and on three, of unequal sizes."""
    n_rows = one.train.n_rows
    yield train(under_test.make(), one)
    yield from train_in_ranks(under_test.make, one, [0, n_rows // 3, n_rows])
    yield from train_in_ranks(under_test.make, one, [0, n_rows // 2, n_rows // 2 + 1, n_rows])


@pytest.mark.parametrize("cell", MATRIX)
def test_one_digest(cell: str, need_backend: Callable[[BackendUnderTest], None]) -> None:
    for one in BACKENDS:
        need_backend(one)
    found = [
        outcome for one in BACKENDS for outcome in outcomes(scenario(MATRIX[cell]), one)
    ]  # fmt: skip
    assert len(found) == 6 * len(BACKENDS)
    assert len({outcome.model.digest() for outcome in found}) == 1
    for outcome in found[1:]:
        assert_identical(outcome.history, found[0].history)


@pytest.mark.parametrize("name", ["plain", "logistic", "3 classes"])
def test_another_model_has_another_digest(name: str) -> None:
    one = scenario(name)
    y = one.train.y.copy()
    y[[0, np.flatnonzero(y != y[0])[0]]] = y[[np.flatnonzero(y != y[0])[0], 0]]  # two rows swapped
    swapped = one.with_train(type(one.train)(one.train.X, y))
    oracle = BACKENDS[0]
    digests = {train(oracle.make(), s).model.digest() for s in (one, swapped)}
    assert len(digests) == 2

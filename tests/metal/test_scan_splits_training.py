"""Whole runs with the split search of the kernels: the same splits, and how often nodes overflow.

A node that overflows costs a copy of its histograms; on ordinary data hardly any does.
"""

import numpy as np
import pytest
from metal.searching_backend import SearchingBackend
from support.runs import Rows, Scenario, train

N_ROWS = 900


def rows(kind: str) -> Rows:
    """Labels of a few features, with noise."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(N_ROWS, 6))
    signal = X[:, 0] + X[:, 1] * X[:, 2] + np.sin(3 * X[:, 3]) + 0.5 * rng.normal(size=N_ROWS)
    weights = None
    if kind == "few values":
        X = np.rint(X)
        X[:, ::2] = X[:, ::2] > 0
        signal = np.rint(signal)
    elif kind == "missing":
        X[rng.random(X.shape) < 0.1] = np.nan
    elif kind == "offset":
        signal += 1e6
    elif kind == "weights":
        weights = rng.uniform(0.5, 2, N_ROWS)
    elif kind == "copies":
        X = np.concatenate((X, X, -X), axis=1)
    return Rows(X, signal, weights)


@pytest.mark.parametrize("objective", ["squared_error", "logistic"])
@pytest.mark.parametrize("kind", ["plain", "few values", "missing", "offset", "weights", "copies"])
def test_ordinary_nodes_have_one_candidate(kind: str, objective: str) -> None:
    data = rows(kind)
    if objective == "logistic":
        data = Rows(data.X, data.y > np.median(data.y), data.weights)
    backend = SearchingBackend()
    settings = {"objective": objective, "n_estimators": 2, "max_depth": 8, "min_samples_leaf": 1}
    train(backend, Scenario(data, settings))
    overflowed, without, with_one, *more = backend.counts()
    assert with_one + without > 100
    assert overflowed == 0
    assert sum(more) <= 0.02 * with_one


def test_early_nodes_of_many_rows_have_few_candidates() -> None:
    """Neighbouring bins gain nearly the same where they differ by few rows."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(100_000, 4)).astype(np.float32)
    y = np.tanh(X[:, 0]) + 0.1 * X[:, 1]
    backend = SearchingBackend()
    train(backend, Scenario(Rows(X, y), {"n_estimators": 2, "max_depth": 5}))
    assert backend.counts()[0] == 0
    assert max(backend.n_candidates) <= 2

"""Enough work for several threads in every kernel that does not wake them for less.

The scenarios are sized for a plain-Python reference. On them `find_splits`, `sample_rows`,
`gather_rows` and mostly the histograms are the caller's work, whatever n_threads is. Here they
begin to share at 65,536 rows (`sample_rows`), 4,096 rows of a run with two trees (`gather_rows`)
and 8,192 bins of a level (`find_splits`), and 24 features make a histogram of several blocks.
"""

from functools import cache

import numpy as np
import pytest
from support.backends import BACKENDS, BackendUnderTest
from support.exact import assert_identical
from support.runs import Outcome, Rows, Scenario, train

from torchgbdt.backends.oracle import OracleBackend

N_ROWS, N_FEATURES = 70_000, 24


@cache
def much_work(objective: str) -> Scenario:
    rng = np.random.default_rng(11)
    X = rng.normal(size=(N_ROWS, N_FEATURES)).astype(np.float32)
    target = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) + rng.normal(size=N_ROWS)
    y = target if objective == "squared_error" else (target > 0).astype(np.float64)
    weights = rng.integers(1, 4, N_ROWS).astype(np.float64)
    settings = {"objective": objective, "n_estimators": 2, "max_depth": 6, "max_bins": 256}
    return Scenario(Rows(X, y, weights), settings, [Rows(X[:5000], y[:5000])])


@cache
def expected(objective: str) -> Outcome:
    return train(OracleBackend(), much_work(objective))


@pytest.mark.parametrize("objective", ["squared_error", "logistic"])
@pytest.mark.parametrize("under_test", BACKENDS[1:], indirect=True, ids=lambda one: one.id)
def test_shared_work_gives_the_model_of_the_oracle(
    under_test: BackendUnderTest, objective: str
) -> None:
    found = train(under_test.make(), much_work(objective))
    assert found.model.digest() == expected(objective).model.digest()
    assert_identical(found.history, expected(objective).history)

"""Extreme but legal: nothing overflows, nothing is lost, and every backend agrees."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.backends import ONE_OF_EACH, BackendUnderTest
from support.exact import assert_identical
from support.naive_backend import NaiveBackend
from support.random_rows import classes_of, smooth
from support.runs import Outcome, Rows, Scenario, train

from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.probabilities import predicted_codes, probabilities
from torchgbdt.core.raw_predictions import raw_float32

UNREGULARISED = {"reg_lambda": 0.0, "min_child_weight": 0.0, "min_samples_leaf": 1}
of_each_objective = pytest.mark.parametrize("objective", ["logistic", "softmax"])


def n_classes(objective: str) -> int:
    return 2 if objective == "logistic" else 3


def raw_of(outcome: Outcome, rows: Rows) -> np.ndarray:
    """Raw predictions of the rows, float32, (n_rows, n_outputs)."""
    sums = np.zeros((rows.n_rows, outcome.model.n_outputs), np.float32)
    OracleBackend().predict(outcome.model.forest, HostMatrix(rows.X), sums)
    margins = None if rows.margins is None else rows.margins.astype(np.float32)
    return raw_float32(outcome.model.baseline, sums, margins)


def assert_agree_and_finite(found: Outcome, expected: Outcome) -> None:
    assert found.model.digest() == expected.model.digest()
    assert_identical(found.history, expected.history)
    assert np.isfinite(found.model.forest.nodes.value).all()
    assert np.isfinite(found.model.forest.nodes.gain).all()


# ----------------------------------------------------------------------------- separable data


def separable(objective: str, n_rounds: int, **settings: Any) -> Scenario:
    """Four rows of each class, one class after the other."""
    n = n_classes(objective)
    rows = Rows(np.arange(4.0 * n)[:, None], np.repeat(np.arange(n), 4))
    limits = {"max_depth": n - 1, "learning_rate": 0.1, "min_samples_leaf": 1}
    run = {"objective": objective, "n_estimators": n_rounds, "eval_metric": "logloss"}
    return Scenario(rows, {**run, **limits, **settings})


@of_each_objective
def test_separable_data_for_two_thousand_rounds(
    objective: str, need_backend: Callable[[BackendUnderTest], None]
) -> None:
    # Unregularised steps would go on for ever. They stop where gradients round to 0:
    # e^-x * 2^120 < 1/2, which is x > 121 ln 2 = 83.87.
    one = separable(objective, 2000, **UNREGULARISED)
    found = train(NaiveBackend(), one)
    for backend in ONE_OF_EACH:
        need_backend(backend)
        assert_agree_and_finite(train(backend.make(), one), found)
    losses = np.array(found.history["train"]["logloss"])
    assert (np.diff(losses) <= 0).all()
    assert 0 == losses[1999] < losses[500] < losses[100] < losses[0]
    model, rows = found.model, one.train
    assert model.forest.tree(model.n_trees - 1).value.tolist() == [[0.0]]
    raw = raw_of(found, rows)
    in_order = np.sort(raw, axis=1)
    log_odds = np.abs(raw[:, 0]) if raw.shape[1] == 1 else in_order[:, -1] - in_order[:, -2]
    assert ((log_odds > 83) & (log_odds < 86)).all()
    assert predicted_codes(raw).tolist() == rows.y.tolist()
    p = probabilities(model.link, raw, np.float64)
    assert (p.max(axis=1) == 1).all() and (p > 0).all()


@of_each_objective
def test_a_regularised_loss_falls_in_every_round(
    under_test: BackendUnderTest, objective: str
) -> None:
    one = separable(objective, 60, reg_lambda=1.0)
    found, expected = (train(b(), one) for b in (under_test.make, under_test.make_reference))
    assert_agree_and_finite(found, expected)
    assert (np.diff(found.history["train"]["logloss"]) < 0).all()


# ------------------------------------------------------------------------ weights and few rows


def extreme(objective: str, kind: str) -> Scenario:
    """Noisy classes, some of them of weights or of margins that lie far apart."""
    rng, n = np.random.default_rng(1), n_classes(objective)
    X, y = smooth(rng, 40, 2)
    rows = Rows(X, classes_of(y + rng.normal(size=40), n))
    if kind == "one row of a class":
        y = np.where(rows.y == n - 1, 0, rows.y)
        y[17] = n - 1
        rows = replace(rows, y=y)
    if kind in ("weights", "weights and wrong margins"):
        rows = replace(rows, weights=10.0 ** np.linspace(-6, 6, 40)[rng.permutation(40)])
    if kind.endswith("wrong margins"):
        sizes = rng.choice([0.0, 87.0, 1000.0], 40)
        wrong = (rows.y + 1) % n
        margins = np.where(np.arange(n) == wrong[:, None], sizes[:, None], 0)
        if objective == "logistic":
            margins = sizes * (1 - 2.0 * rows.y)
        rows = replace(rows, margins=margins)
    settings = {"objective": objective, "n_estimators": 12, "max_depth": 2, "learning_rate": 0.5}
    return Scenario(rows, settings, [rows[:10]])


@of_each_objective
@pytest.mark.parametrize("settings", [UNREGULARISED, {"min_samples_leaf": 1}], ids=["free", "tame"])
@pytest.mark.parametrize(
    "kind", ["one row of a class", "weights", "wrong margins", "weights and wrong margins"]
)
def test_extreme_data(
    under_test: BackendUnderTest, objective: str, kind: str, settings: dict[str, Any]
) -> None:
    one = extreme(objective, kind).changed(**settings)
    found, expected = (train(b(), one) for b in (under_test.make, under_test.make_reference))
    assert_agree_and_finite(found, expected)
    assert np.isfinite(raw_of(found, one.train)).all()
    p = probabilities(found.model.link, raw_of(found, one.train), np.float64)
    assert ((p >= 0) & (p <= 1)).all()


@of_each_objective
def test_the_only_row_of_a_class_is_learned(under_test: BackendUnderTest, objective: str) -> None:
    one = extreme(objective, "one row of a class").changed(min_samples_leaf=1, max_depth=4)
    found = train(under_test.make(), one)
    codes = predicted_codes(raw_of(found, one.train))
    assert codes[17] == one.train.y[17]
    losses = found.history["train"]["logloss"]
    assert losses[-1] < 0.5 * losses[0]

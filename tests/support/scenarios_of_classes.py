"""Logistic and softmax: small training runs by name, each there for one thing that could go wrong.

Names begin with the objective: "logistic", or "3 classes" and the like for softmax.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from support.random_rows import LABELS, TINY, Random, classes_of, labels_of, smooth, target
from support.runs import MANY_ROWS, Rows, Scenario, train

from torchgbdt.backends.oracle import OracleBackend

Build = Callable[[Random], Scenario]

SMALL = {"max_bins": 20, "n_estimators": 3, "max_depth": 4, "min_samples_leaf": 8}
EVERY_SPLIT = {"reg_lambda": 0.0, "min_child_weight": 0.0, "min_samples_leaf": 1}


def objective_of(n_classes: int | None) -> tuple[dict[str, Any], int]:
    """Settings and number of classes; None stands for logistic, which has two."""
    if n_classes is None:
        return {"objective": "logistic"}, 2
    return {"objective": "softmax"}, n_classes


def rows_of(rng: Random, n_rows: int, n_classes: int, n_features: int = 4) -> Rows:
    X, y = smooth(rng, n_rows, n_features)
    return Rows(X, classes_of(y, n_classes))


def plain(n_classes: int | None, n_rows: int = 150, kind: str = "codes", **settings: Any) -> Build:
    def build(rng: Random) -> Scenario:
        objective, n = objective_of(n_classes)
        rows = rows_of(rng, n_rows, n)
        rows = replace(rows, y=labels_of(rows.y, kind))
        return Scenario(rows[40:], {**SMALL, **objective, **settings}, [rows[:40]])

    return build


def weighted(n_classes: int | None, kind: str, **settings: Any) -> Build:
    """Rows whose weight is no weight hold a class that does not count."""

    def build(rng: Random) -> Scenario:
        objective, n = objective_of(n_classes)
        rows = rows_of(rng, 160, n)
        w = rng.random(160) + 0.01
        if kind == "huge range":
            w = 10.0 ** rng.uniform(-6, 6, 160)
        elif kind in ("zero", "subnormal"):
            dropped = rng.random(160) < 0.3
            w[dropped] = 0 if kind == "zero" else TINY
            rows.y[dropped] = n + 5
        rows = replace(rows, weights=w)
        return Scenario(rows, {**SMALL, **objective, **settings}, [rows[:40]])

    return build


def missing_values(n_classes: int | None) -> Build:
    """As with squared error; in the third column, being missing tells much about the class."""

    def build(rng: Random) -> Scenario:
        objective, n = objective_of(n_classes)
        rows = rows_of(rng, 160, n, 5)
        rows.X[rng.random(160) < 0.1, 1] = np.nan
        rows.X[rows.y == n - 1, 2] = np.nan
        rows.X[rng.random(160) < 0.9, 3] = np.nan
        rows.X[:, 4] = np.nan
        X = rows.X[:40].copy()
        X[::3, 0] = np.nan  # missing at prediction only
        return Scenario(rows, {**SMALL, **objective}, [replace(rows[:40], X=X)])

    return build


def one_row_of_a_class(n_classes: int | None) -> Build:
    """The last class has one row, in the middle of the others."""

    def build(rng: Random) -> Scenario:
        objective, n = objective_of(n_classes)
        rows = rows_of(rng, 120, max(n - 1, 1))
        rows.y[57] = n - 1
        return Scenario(rows, {**SMALL, **objective, "min_samples_leaf": 1}, [rows[40:70]])

    return build


def margins(n_classes: int | None) -> Build:
    def build(rng: Random) -> Scenario:
        objective, n = objective_of(n_classes)
        rows = rows_of(rng, 120, n)
        given = rng.normal(size=120 if n_classes is None else (120, n))
        rows = replace(rows, weights=rng.random(120), margins=given)
        valid = replace(rows[:30], margins=given[::-1][:30])
        return Scenario(rows, {**SMALL, **objective}, [valid])

    return build


def continued(n_classes: int | None) -> Build:
    """Goes on from a model of other rows and other bins."""

    def build(rng: Random) -> Scenario:
        one = plain(n_classes)(rng)
        first = Scenario(one.train[::2], {**one.settings, "max_bins": 7})
        return replace(one, init_model=train(OracleBackend(), first).model)

    return build


def separable(n_classes: int | None) -> Build:
    """Full steps without regularisation towards predictions that have no limit."""

    def build(rng: Random) -> Scenario:
        objective, n = objective_of(n_classes)
        X = rng.normal(size=(60, 2))
        settings = {**EVERY_SPLIT, **objective, "learning_rate": 1.0, "n_estimators": 6}
        return Scenario(Rows(X, classes_of(X[:, 1], n)), settings)

    return build


def saturated(n_classes: int | None) -> Build:
    """Steps of hundreds: predictions beyond 86, many of them wrong; Hessians round to 0."""

    def build(rng: Random) -> Scenario:
        objective, n = objective_of(n_classes)
        rows = rows_of(rng, 100, n)
        rows.y[::7] = rows.y[0]
        rows = replace(rows, weights=2.0 ** rng.integers(-20, 1, 100))
        settings = {**SMALL, **objective, "learning_rate": 400.0, "min_child_weight": 0.0}
        return Scenario(rows, settings, [rows[:20]])

    return build


def ties(n_classes: int | None) -> Build:
    """Few distinct values, repeated and mirrored columns: equal gains, equal predictions."""

    def build(rng: Random) -> Scenario:
        objective, n = objective_of(n_classes)
        X = rng.integers(0, 3, (100, 2)).astype(float)
        X[rng.random(X.shape) < 0.15] = np.nan
        X = np.hstack((X, X[:, ::-1], -X))
        settings = {**SMALL, **EVERY_SPLIT, **objective}
        rows = Rows(X, rng.integers(0, n, 100), rng.integers(1, 3, 100) / 2)
        return Scenario(rows, settings, [rows[:30]])

    return build


def symmetric_classes(rng: Random) -> Scenario:
    """Each row once with the first and once with the last of four classes: theirs always tie."""
    X, y = smooth(rng, 80)
    codes = 1 + classes_of(y, 2)
    codes[:30] = 0
    twin = codes.copy()
    twin[:30] = 3
    rows = Rows(np.vstack((X, X)), np.concatenate((codes, twin)))
    return Scenario(rows, {**SMALL, "objective": "softmax"}, [rows[::4]])


def eval_set_lacks_classes(n_classes: int | None) -> Build:
    def build(rng: Random) -> Scenario:
        one = plain(n_classes)(rng)
        valid = one.valids[0]
        return replace(one, valids=[valid[valid.y == 1], valid])

    return build


def two_rows(rng: Random) -> Scenario:
    rows = Rows(np.array([[1.0], [2.0]]), np.array([1, 0]))
    return Scenario(rows, {"objective": "logistic", **EVERY_SPLIT, "reg_lambda": 1.0})


def a_row_of_each_class(rng: Random) -> Scenario:
    X = rng.permutation(6.0 * np.arange(5))[:, None]
    return Scenario(Rows(X, np.arange(5)), {"objective": "softmax", **EVERY_SPLIT})


def thirty_classes(rng: Random) -> Scenario:
    """Three rows of each class, shuffled."""
    X = rng.normal(size=(90, 2))
    y = rng.permutation(np.repeat(np.arange(30), 3))
    settings = {"objective": "softmax", "n_estimators": 2, "max_depth": 2, "max_bins": 9}
    return Scenario(Rows(X, y), settings, [Rows(X[:20], y[:20])])


def many_rows(n_classes: int | None) -> Build:
    """Several blocks for every thread of every kernel; margins tell the rows' gradients apart."""

    def build(rng: Random) -> Scenario:
        objective, n = objective_of(n_classes)
        X = rng.normal(size=(MANY_ROWS, 1))
        some = rng.normal(size=(64, n))  # few, so that a slow reference may remember them
        given = some[rng.integers(0, 64, MANY_ROWS), : 1 if n_classes is None else n]
        rows = Rows(X, classes_of(target(X, rng), n), margins=given)
        settings = {"max_bins": 5, "n_estimators": 1, "max_depth": 1}
        return Scenario(rows, {**settings, **objective})

    return build


def of_both(name: str, build: Callable[[int | None], Build]) -> dict[str, Build]:
    """The scenario for logistic and for softmax of three classes."""
    return {f"logistic, {name}": build(None), f"3 classes, {name}": build(3)}


CLASS_SCENARIOS: dict[str, Build] = {
    "logistic": plain(None, 240),
    "2 classes": plain(2),
    "3 classes": plain(3),
    "7 classes": plain(7),
    "30 classes": thirty_classes,
    "logistic, two rows": two_rows,
    "5 classes, a row of each": a_row_of_each_class,
    "4 classes, symmetric": symmetric_classes,
    **of_both("fractional weights", lambda n: weighted(n, "fractional")),
    **of_both("zero weights", lambda n: weighted(n, "zero")),
    **of_both("huge range of weights", lambda n: weighted(n, "huge range")),
    **of_both("subnormal weights", lambda n: weighted(n, "subnormal")),
    **of_both("weights and lambda 0", lambda n: weighted(n, "huge range", **EVERY_SPLIT)),
    **of_both("missing values", missing_values),
    **of_both("one row of a class", one_row_of_a_class),
    **of_both("margins", margins),
    **of_both("given baseline", lambda n: plain(n, baseline=0.75)),
    **of_both("continued", continued),
    **of_both("separable", separable),
    **of_both("saturated", saturated),
    **of_both("ties", ties),
    **of_both("eval set lacks classes", eval_set_lacks_classes),
    **of_both("gamma", lambda n: plain(n, gamma=0.75)),
    **of_both("min_child_weight", lambda n: plain(n, min_child_weight=4.0, min_samples_leaf=1)),
    **of_both("many rows", many_rows),
    **{f"logistic, labels: {kind}": plain(None, 80, kind) for kind in LABELS if kind != "codes"},
    **{f"3 classes, labels: {kind}": plain(3, 80, kind) for kind in LABELS if kind != "codes"
       and kind != "bools"},
}  # fmt: skip

"""Squared error: small training runs by name; each is there for one thing that could go wrong."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from support.random_rows import TINY, Random, smooth
from support.runs import MANY_ROWS, Rows, Scenario, train

from torchgbdt.backends.oracle import OracleBackend


def plain(rng: Random) -> Scenario:
    train, valid = smooth(rng, 240), smooth(rng, 60)
    return Scenario(Rows(*train), {"max_bins": 33}, [Rows(*valid)])


def one_row(rng: Random) -> Scenario:
    return Scenario(Rows(np.array([[1.0, np.nan]]), np.array([7.0])), {"min_samples_leaf": 1})


def two_rows(rng: Random) -> Scenario:
    rows = Rows(np.array([[1.0], [2.0]]), np.array([-1.0, 5.0]))
    return Scenario(rows, {"min_samples_leaf": 1, "max_depth": None})


def one_distinct_target(rng: Random) -> Scenario:
    X, _ = smooth(rng, 100)
    return Scenario(Rows(X, np.full(100, 0.1)), {"max_bins": 16})


def constant_features(rng: Random) -> Scenario:
    X, y = smooth(rng, 150, 6)
    X[:, 0], X[:, 2], X[:, 5] = 3.0, np.nan, -0.0
    X[::2, 5] = 0.0
    return Scenario(Rows(X, y), {"max_bins": 20})


def missing_values(rng: Random) -> Scenario:
    """None, a few, most and all of a column; in the third, being missing tells much about y."""
    X, y = smooth(rng, 240, 5)
    X[rng.random(240) < 0.1, 1] = np.nan
    X[y > 0.2, 2] = np.nan
    X[rng.random(240) < 0.9, 3] = np.nan
    X[:, 4] = np.nan
    valid = X[:50].copy()
    valid[::3, 0] = np.nan  # missing at prediction only
    return Scenario(Rows(X, y), {"max_bins": 12}, [Rows(valid, y[:50])])


def one_value_and_missing(rng: Random) -> Scenario:
    """Only (value | missing) splits exist: thresholds are +inf."""
    X = np.where(rng.random((120, 2)) < 0.5, np.nan, 1.0)
    return Scenario(Rows(X, np.isnan(X) @ [1.0, -2.0] + rng.normal(size=120)), {})


def bins(max_bins: int, n_rows: int = 300) -> Callable[[Random], Scenario]:
    def build(rng: Random) -> Scenario:
        X, y = smooth(rng, n_rows, 3)
        X[rng.random(n_rows) < 0.1, 2] = np.nan
        return Scenario(Rows(X, y), {"max_bins": max_bins, "n_estimators": 2})

    return build


def weighted(kind: str) -> Callable[[Random], Scenario]:
    def build(rng: Random) -> Scenario:
        X, y = smooth(rng, 200)
        w = rng.random(200) + 0.01
        if kind == "zero":
            w[rng.random(200) < 0.4] = 0
        elif kind == "huge range":
            w = 10.0 ** rng.uniform(-6, 6, 200)
        elif kind == "subnormal":
            w[rng.random(200) < 0.3] = TINY
        return Scenario(Rows(X, y, w), {"max_bins": 24}, [Rows(X[:40], y[:40], w[:40])])

    return build


def with_settings(n_rows: int = 160, **settings: Any) -> Callable[[Random], Scenario]:
    def build(rng: Random) -> Scenario:
        X, y = smooth(rng, n_rows)
        X[rng.random(n_rows) < 0.2, 1] = np.nan
        return Scenario(Rows(X, y), {"max_bins": 24, **settings})

    return build


def weighted_lambda_zero(rng: Random) -> Scenario:
    """No regularisation, and Hessians of 1e-6: quotients of tiny numbers decide."""
    base = weighted("huge range")(rng)
    return base.changed(reg_lambda=0.0, min_child_weight=0.0, min_samples_leaf=1)


def child_weight_border(rng: Random) -> Scenario:
    """Hessians are multiples of 1/4, and children of exactly 5 are allowed."""
    X = rng.integers(0, 12, (160, 3)).astype(float)
    w = rng.integers(1, 5, 160) / 4
    return Scenario(
        Rows(X, rng.normal(size=160), w), {"min_child_weight": 5.0, "min_samples_leaf": 1}
    )


def chain(rng: Random) -> Scenario:
    """Each split peels off one row: as deep as a tree gets."""
    x = np.arange(40.0)[:, None]
    settings = {"max_depth": None, "min_samples_leaf": 1, "reg_lambda": 0.0, "n_estimators": 2}
    return Scenario(Rows(x, 2.0 ** np.arange(40)), settings)


def ties(rng: Random) -> Scenario:
    """Few distinct values and repeated columns: bit-equal gains at every node."""
    X = rng.integers(0, 3, (120, 3)).astype(float)
    X[rng.random((120, 3)) < 0.15] = np.nan
    X = np.hstack((X, X[:, ::-1], -X))
    y = rng.integers(-1, 2, 120).astype(float)
    return Scenario(Rows(X, y), {"min_samples_leaf": 1, "reg_lambda": 0.0, "max_depth": 5})


def mirrored(rng: Random) -> Scenario:
    """y is symmetric in x: the splits at either end gain the same."""
    x = np.arange(-8.0, 9.0)
    return Scenario(Rows(x[:, None], np.abs(x)), {"min_samples_leaf": 1})


def offset(rng: Random) -> Scenario:
    X, y = smooth(rng, 150)
    return Scenario(Rows(X, y + 1e9), {"max_bins": 24}, [Rows(X[:30], y[:30] + 1e9)])


def outliers(rng: Random) -> Scenario:
    """One label whose square exceeds float32, so that the metric is infinite, and huge features."""
    X, y = smooth(rng, 150)
    y[17], X[3, 0], X[5, 1] = 1e30, 1e30, -1e300
    X[7, 2], X[8, 2] = np.inf, -np.inf
    return Scenario(Rows(X, y), {"max_bins": 24}, [Rows(X[10:40], y[10:40])])


def subnormals(rng: Random) -> Scenario:
    """Tiny numbers everywhere: labels and weights of them are 0, features are told apart."""
    X, y = smooth(rng, 150)
    X[:, 0] = np.sign(X[:, 0]) * TINY * rng.integers(0, 9, 150)
    X[:, 1] *= np.float64(5e-324)
    y[::3] = TINY
    w = np.ones(150)
    w[::5] = TINY
    return Scenario(Rows(X, y, w), {"max_bins": 24})


def vanishing(rng: Random) -> Scenario:
    """Labels of a few 2^-127: centred labels, residuals, leaf values and sums become subnormal.

    Weights of about 2^60 make what is not flushed count.
    """
    X = rng.integers(0, 6, (100, 2)).astype(float)
    y, w = rng.integers(-8, 9, 100) * 2.0**-127, 2.0**60 * rng.integers(1, 4, 100)
    settings = {"learning_rate": 1.0, "reg_lambda": 0.0, "min_samples_leaf": 1, "max_depth": 2}
    rows = Rows(X, y, w)
    return Scenario(rows, {**settings, "baseline": 2.0**-126, "n_estimators": 6}, [rows[:30]])


def margins(rng: Random) -> Scenario:
    X, y = smooth(rng, 150)
    own, other = rng.normal(size=150), rng.normal(size=30)
    valid = Rows(X[:30], y[:30], margins=other)
    return Scenario(Rows(X, y, rng.random(150), own), {"max_bins": 24}, [valid])


def continued(rng: Random) -> Scenario:
    """Goes on from a model of other rows and other bins."""
    one = plain(rng)
    first = Scenario(one.train[::2], {"max_bins": 7})
    return replace(one, init_model=train(OracleBackend(), first).model)


def more_features_than_rows(rng: Random) -> Scenario:
    X, y = smooth(rng, 25, 40)
    return Scenario(Rows(X, y), {"min_samples_leaf": 2})


def many_rows(rng: Random) -> Scenario:
    """Several blocks for every thread of every kernel, at more than one level."""
    X, y = smooth(rng, MANY_ROWS, 2)
    X[rng.random(MANY_ROWS) < 0.05, 1] = np.nan
    return Scenario(Rows(X, y), {"max_bins": 16, "n_estimators": 1, "max_depth": 3})


REGRESSION_SCENARIOS: dict[str, Callable[[Random], Scenario]] = {
    "plain": plain,
    "one row": one_row,
    "two rows": two_rows,
    "one distinct target": one_distinct_target,
    "constant features": constant_features,
    "missing values": missing_values,
    "one value and missing": one_value_and_missing,
    "3 bins": bins(3),
    "4 bins": bins(4),
    "17 bins": bins(17),
    "256 bins": bins(256, 400),
    "fractional weights": weighted("fractional"),
    "zero weights": weighted("zero"),
    "huge range of weights": weighted("huge range"),
    "subnormal weights": weighted("subnormal"),
    "lambda 0": with_settings(reg_lambda=0.0, min_child_weight=0.0),
    "lambda 0 and weights": weighted_lambda_zero,
    "large lambda": with_settings(reg_lambda=1e6),
    "gamma": with_settings(gamma=1.5, n_estimators=6),
    "leaves of one row": with_settings(80, min_samples_leaf=1, max_depth=None, n_estimators=2),
    "one level": with_settings(max_depth=1),
    "given baseline": with_settings(baseline=0.25, n_estimators=2),
    "child weight border": child_weight_border,
    "chain": chain,
    "ties": ties,
    "mirrored": mirrored,
    "offset": offset,
    "outliers": outliers,
    "subnormals": subnormals,
    "vanishing": vanishing,
    "margins": margins,
    "continued": continued,
    "more features than rows": more_features_than_rows,
    "many rows": many_rows,
}

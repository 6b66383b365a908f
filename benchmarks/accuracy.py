"""Accuracy beside scikit-learn's histogram booster, on the five data sets that ship with it.

    python benchmarks/accuracy.py            prints the table of README.md, in a minute or two

Both estimators get the same settings and the same folds. The differences are paired by fold; their
noise is the standard deviation over repetitions of the whole cross-validation, each with other
folds: what another shuffle of the same data would change.
"""

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.model_selection import KFold, StratifiedKFold, cross_validate

import torchgbdt as tg

N_FOLDS = 5
DATA: dict[str, Callable[..., Any]] = {
    "breast_cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "diabetes": datasets.load_diabetes,
}
SCORES = {"classifier": ("accuracy", "neg_log_loss"), "regressor": ("r2",)}
SIGNS = {"neg_log_loss": -1.0}
"""scikit-learn turns losses round; the table shows them as losses again."""


@dataclass(frozen=True)
class Row:
    """One score of one data set.

    Attributes
    ----------
    peer, ours : means over all folds of all repetitions.
    difference, noise : mean and standard deviation, over repetitions, of ours less the peer's.
    """

    data: str
    score: str
    peer: float
    ours: float
    difference: float
    noise: float


def estimators(kind: str, n_estimators: int) -> tuple[Any, Any]:
    """scikit-learn's booster and ours, at the same settings.

    255 is scikit-learn's limit of bins without the one for missing values, 256 ours with it.
    """
    shared: dict[str, Any] = {
        "learning_rate": 0.1,
        "max_depth": 6,
        "min_samples_leaf": 20,
        "random_state": 0,
    }
    of_peer: dict[str, Any] = {"max_iter": n_estimators, "l2_regularization": 1.0, "max_bins": 255}
    of_ours: dict[str, Any] = {"n_estimators": n_estimators, "reg_lambda": 1.0, "max_bins": 256}
    no_limits: dict[str, Any] = {"max_leaf_nodes": None, "early_stopping": False}
    if kind == "classifier":
        peer = HistGradientBoostingClassifier(**shared, **of_peer, **no_limits)
        return peer, tg.GBDTClassifier(**shared, **of_ours)
    peer = HistGradientBoostingRegressor(**shared, **of_peer, **no_limits)
    return peer, tg.GBDTRegressor(**shared, **of_ours)


def compare(name: str, n_repeats: int, n_estimators: int) -> list[Row]:
    """Cross-validate both on one data set."""
    X, y = DATA[name](return_X_y=True)
    kind = "regressor" if name == "diabetes" else "classifier"
    splitter = KFold if kind == "regressor" else StratifiedKFold
    both = estimators(kind, n_estimators)
    scores: dict[str, list[list[float]]] = {score: [[], []] for score in SCORES[kind]}
    for repeat in range(n_repeats):
        folds = list(splitter(N_FOLDS, shuffle=True, random_state=repeat).split(X, y))
        for side, estimator in enumerate(both):
            result = cross_validate(estimator, X, y, cv=folds, scoring=SCORES[kind])
            for score, of_sides in scores.items():
                of_sides[side].append(float(np.mean(result[f"test_{score}"])))
    return [_row(name, score, np.array(of_sides)) for score, of_sides in scores.items()]


def _row(name: str, score: str, means: np.ndarray) -> Row:
    """``means``: (2, n_repeats), of the peer and of ours."""
    means = SIGNS.get(score, 1.0) * means
    difference = means[1] - means[0]
    noise = float(difference.std(ddof=1)) if difference.size > 1 else math.nan
    label = score.removeprefix("neg_").replace("_", " ")
    peer, ours = means.mean(axis=1).tolist()
    return Row(name, label, peer, ours, float(difference.mean()), noise)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--n-estimators", type=int, default=100)
    options = parser.parse_args()
    print("| data | score | scikit-learn HGB | torchgbdt | difference (noise) |")
    print("|---|---|---|---|---|")
    for name in DATA:
        for row in compare(name, options.repeats, options.n_estimators):
            print(
                f"| {row.data} | {row.score} | {row.peer:.4f} | {row.ours:.4f} "
                f"| {row.difference:+.4f} ({row.noise:.4f}) |"
            )


if __name__ == "__main__":
    main()

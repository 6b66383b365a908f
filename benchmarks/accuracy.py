"""Accuracy beside scikit-learn's histogram booster, on the five data sets that ship with it.

    python benchmarks/accuracy.py            prints the table of README.md, in a minute or two

Both estimators get the same settings and the same folds. The differences are paired by fold; their
noise is the standard deviation over repetitions of the whole cross-validation, each with other
folds: what another shuffle of the same data would change.

For more than two classes the same settings are not the same step: our softmax Hessian is twice
scikit-learn's (see ``Softmax`` in torchgbdt/core/objectives.py). Twice the learning rate and twice
reg_lambda make up for it exactly, -2 lr G / (2 H + 2 lambda); the rows "same step" have both.
"""

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.base import clone
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
OF_MANY_CLASSES = ("digits", "iris", "wine")
SAME_STEP = {"learning_rate": 0.2, "reg_lambda": 2.0}
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
    """Cross-validate both on one data set; ours with the same step as well where that differs."""
    X, y = DATA[name](return_X_y=True)
    kind = "regressor" if name == "diabetes" else "classifier"
    splitter = KFold if kind == "regressor" else StratifiedKFold
    peer, ours = estimators(kind, n_estimators)
    runs = {"peer": peer, name: ours}
    if name in OF_MANY_CLASSES:
        runs[f"{name}, same step"] = clone(ours).set_params(**SAME_STEP)
    means: dict[str, dict[str, list[float]]] = {
        run: {score: [] for score in SCORES[kind]} for run in runs
    }
    for repeat in range(n_repeats):
        folds = list(splitter(N_FOLDS, shuffle=True, random_state=repeat).split(X, y))
        for run, estimator in runs.items():
            result = cross_validate(estimator, X, y, cv=folds, scoring=SCORES[kind])
            for score in SCORES[kind]:
                means[run][score].append(float(np.mean(result[f"test_{score}"])))
    return [
        _row(run, score, means["peer"][score], means[run][score])
        for run in means
        if run != "peer"
        for score in SCORES[kind]
    ]


def _row(name: str, score: str, peer: list[float], ours: list[float]) -> Row:
    """From the mean over folds of each repetition."""
    both = SIGNS.get(score, 1.0) * np.array([peer, ours])
    difference = both[1] - both[0]
    noise = float(difference.std(ddof=1)) if difference.size > 1 else math.nan
    label = score.removeprefix("neg_").replace("_", " ")
    means = both.mean(axis=1).tolist()
    return Row(name, label, means[0], means[1], float(difference.mean()), noise)


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

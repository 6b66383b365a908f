"""The accuracy benchmark measures what it says: checked on one small data set, with few rounds."""

import accuracy
import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold, cross_val_score
from support import tolerances

import torchgbdt as tg


def test_rows_are_the_scores_of_both_and_their_difference() -> None:
    rows = accuracy.compare("iris", n_repeats=2, n_estimators=3)
    names = ["iris", "iris", "iris, same step", "iris, same step"]
    assert [(row.data, row.score) for row in rows] == list(
        zip(names, ["accuracy", "log loss"] * 2, strict=True)
    )
    X, y = load_iris(return_X_y=True)
    peer, ours = accuracy.estimators("classifier", 3)
    assert isinstance(ours, tg.GBDTClassifier)
    for row, settings in zip(rows[1::2], ({}, accuracy.SAME_STEP), strict=True):
        means = np.zeros((2, 2))
        for repeat in range(2):
            folds = StratifiedKFold(5, shuffle=True, random_state=repeat)
            for side, estimator in enumerate((peer, ours.set_params(**settings))):
                scores = cross_val_score(estimator, X, y, cv=folds, scoring="neg_log_loss")
                means[side, repeat] = -scores.mean()
        assert [row.peer, row.ours] == means.mean(axis=1).tolist()
        assert row.difference == (means[1] - means[0]).mean()
        assert row.noise == (means[1] - means[0]).std(ddof=1)


@pytest.mark.parametrize("kind", ["classifier", "regressor"])
def test_both_sides_have_the_same_settings(kind: str) -> None:
    peer, ours = (one.get_params() for one in accuracy.estimators(kind, 7))
    pairs = {"max_iter": "n_estimators", "l2_regularization": "reg_lambda"}
    for name in ("learning_rate", "max_depth", "min_samples_leaf", *pairs):
        assert peer[name] == ours[pairs.get(name, name)]
    assert peer["max_bins"] == ours["max_bins"] - 1  # ours counts the one for missing values
    assert peer["max_leaf_nodes"] is ours["max_leaves"] is None


def test_the_same_step_is_scikit_learns() -> None:
    X, y = load_iris(return_X_y=True)
    peer, ours = accuracy.estimators("classifier", 1)
    expected = peer.fit(X, y).predict_proba(X)
    distances = [
        np.abs(ours.set_params(**settings).fit(X, y).predict_proba(X) - expected).max()
        for settings in ({}, accuracy.SAME_STEP)
    ]
    assert distances[1] < tolerances.SAME_STEP < 0.01 < distances[0]

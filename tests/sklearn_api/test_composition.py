"""Estimators inside scikit-learn's own machinery: pipelines, searches, folds, copies, routing."""

import pickle
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pytest
import torch
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.model_selection import GridSearchCV, check_cv, cross_val_predict, cross_val_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags
from sklearn_api.small_tables import QUICK, classification, digest, regression, weights
from support.exact import assert_identical

import torchgbdt as tg

X, Y = regression()
_, Y3 = classification(3)
W = weights()
REGRESSOR = tg.GBDTRegressor(**QUICK)
CLASSIFIER = tg.GBDTClassifier(class_weight={0: 2.0}, **QUICK)
BOTH = [(REGRESSOR, Y), (CLASSIFIER, Y3)]


def test_kinds() -> None:
    assert is_regressor(REGRESSOR)
    assert not is_classifier(REGRESSOR)
    assert is_classifier(CLASSIFIER)
    assert get_tags(REGRESSOR).input_tags.allow_nan


@pytest.mark.parametrize(("estimator", "y"), BOTH)
def test_pipeline(estimator: Any, y: np.ndarray) -> None:
    pipeline = make_pipeline(StandardScaler(), clone(estimator)).fit(X, y)
    scaled = StandardScaler().fit_transform(X)
    alone = clone(estimator).fit(scaled, y)
    assert digest(pipeline[-1]) == digest(alone)
    assert pipeline.score(X, y) == alone.score(scaled, y)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_between_the_steps_of_a_pipeline(library: str) -> None:
    pipeline = make_pipeline(StandardScaler(), clone(REGRESSOR)).set_output(transform=library)
    pipeline.fit(X, Y)
    assert pipeline[-1].feature_names_in_.tolist() == ["x0", "x1", "x2", "x3"]
    assert pipeline[-1].model_.feature_names == ("x0", "x1", "x2", "x3")
    plain = make_pipeline(StandardScaler(), clone(REGRESSOR)).fit(X, Y)
    assert digest(pipeline[-1]) == digest(plain[-1])
    assert_identical(pipeline.predict(X), plain.predict(X))


def test_grid_search_in_two_processes() -> None:
    grid = {"max_depth": [1, 3], "learning_rate": [0.1, 0.5]}
    search = GridSearchCV(REGRESSOR, grid, cv=3, n_jobs=2).fit(X, Y)
    alone = GridSearchCV(REGRESSOR, grid, cv=3).fit(X, Y)
    assert search.best_params_ == alone.best_params_
    assert_identical(search.cv_results_["mean_test_score"], alone.cv_results_["mean_test_score"])
    assert digest(search.best_estimator_) == digest(alone.best_estimator_)


@pytest.mark.parametrize(("estimator", "y"), BOTH)
def test_folds(estimator: Any, y: np.ndarray) -> None:
    scores = cross_val_score(estimator, X, y, cv=3)
    folds = check_cv(3, y, classifier=is_classifier(estimator)).split(X, y)
    by_hand = [clone(estimator).fit(X[i], y[i]).score(X[j], y[j]) for i, j in folds]
    assert scores.tolist() == by_hand


@pytest.mark.parametrize(("estimator", "y"), BOTH)
def test_folds_of_tensors(estimator: Any, y: np.ndarray) -> None:
    wide = X.astype(np.float64)
    tensors = cross_val_score(estimator, torch.from_numpy(wide), torch.from_numpy(y), cv=3)
    assert_identical(tensors, cross_val_score(estimator, wide, y, cv=3))


def test_probabilities_of_folds() -> None:
    shares = cross_val_predict(CLASSIFIER, X, Y3, cv=3, method="predict_proba")
    assert shares.shape == (240, 3)


def test_meta_estimators() -> None:
    one = tg.GBDTClassifier(**QUICK)
    for several in (
        VotingClassifier([("a", one), ("b", one)], voting="soft"),
        BaggingClassifier(one, 2, random_state=0),
        CalibratedClassifierCV(one, cv=2),
    ):
        assert several.fit(X, Y3).score(X, Y3) > 0.5
    assert MultiOutputRegressor(REGRESSOR).fit(X, np.stack([Y, -Y], 1)).predict(X).shape == (240, 2)


@pytest.mark.parametrize("kind", [tg.GBDTRegressor, tg.GBDTClassifier])
def test_clone_is_the_same_and_not_fitted(kind: Any) -> None:
    callbacks = [tg.callbacks.ProgressBar(show=False)]
    estimator = kind(callbacks=callbacks, device=torch.device("cpu"), **QUICK).fit(X, Y > 0)
    copy = clone(estimator)
    assert not hasattr(copy, "model_")
    assert digest(copy.fit(X, Y > 0)) == digest(estimator)
    assert copy.callbacks[0] is not callbacks[0]


@pytest.mark.parametrize(("estimator", "y"), BOTH)
def test_pickled_estimator_keeps_its_model(estimator: Any, y: np.ndarray, tmp_path: Path) -> None:
    fitted = clone(estimator).fit(X, y, eval_set=[(X, y)])
    joblib.dump(fitted, tmp_path / "estimator.joblib")
    for copy in (pickle.loads(pickle.dumps(fitted)), joblib.load(tmp_path / "estimator.joblib")):
        assert digest(copy) == digest(fitted)
        assert copy.get_params() == fitted.get_params()
        assert copy.history_ == fitted.history_
        assert_identical(copy.predict(X), fitted.predict(X))
        more = copy.set_params(warm_start=True, n_estimators=6).fit(X, y)
        assert more.n_iter_ == 6


def test_weights_are_routed() -> None:
    with config_context(enable_metadata_routing=True):
        member = clone(REGRESSOR).set_fit_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), member)
        pipeline.fit(X, Y, sample_weight=W)
        scaled = StandardScaler().fit_transform(X)
        assert digest(pipeline[-1]) == digest(clone(REGRESSOR).fit(scaled, Y, W))
        scored = member.set_score_request(sample_weight=True)
        routed = cross_val_score(scored, X, Y, cv=3, params={"sample_weight": W})
    by_hand = []
    for fold in np.split(np.arange(240), 3):
        rest = np.setdiff1d(np.arange(240), fold)
        model = clone(REGRESSOR).fit(X[rest], Y[rest], W[rest])
        by_hand.append(model.score(X[fold], Y[fold], W[fold]))
    assert routed.tolist() == by_hand

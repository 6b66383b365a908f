"""tg.GBDTRegressor: the Trainer's model, scikit-learn's names."""

import numpy as np
import pytest
import torch
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.metrics import r2_score
from sklearn_api.small_tables import QUICK, digest, features, regression, weights
from support.exact import assert_identical

import torchgbdt as tg

X, Y = regression()
W = weights()
FITTED = tg.GBDTRegressor(**QUICK).fit(X, Y)


def test_model_is_that_of_the_trainer() -> None:
    estimator = tg.GBDTRegressor(**QUICK).fit(X, Y, sample_weight=W)
    assert digest(estimator) == tg.train(X, Y, sample_weight=W, **QUICK).digest()


def test_predictions_are_those_of_the_model() -> None:
    assert_identical(FITTED.predict(X), FITTED.model_.predict(X))


def test_fitted_attributes() -> None:
    assert isinstance(FITTED.model_, tg.Model)
    assert FITTED.n_features_in_ == 4
    assert FITTED.n_iter_ == 4
    assert FITTED.best_iteration_ is None
    assert FITTED.history_ == {}
    assert not hasattr(FITTED, "feature_names_in_")


@pytest.mark.parametrize("name", ["n_iter_", "best_iteration_", "feature_importances_"])
def test_properties_need_a_fit(name: str) -> None:
    with pytest.raises(NotFittedError, match="GBDTRegressor instance is not fitted yet"):
        getattr(tg.GBDTRegressor(), name)


@pytest.mark.parametrize("name", ["model_", "history_", "n_features_in_"])
def test_attributes_are_missing_before_fit(name: str) -> None:
    assert not hasattr(tg.GBDTRegressor(), name)


def test_predict_before_fit() -> None:
    for method in (tg.GBDTRegressor().predict, tg.GBDTRegressor().staged_predict):
        with pytest.raises(NotFittedError, match="GBDTRegressor instance is not fitted yet"):
            method(X)


def test_margins_and_evaluation_sets_reach_the_trainer() -> None:
    margin = np.sin(Y)
    arguments = {
        "sample_weight": W,
        "eval_set": [(X[:50], Y[:50]), (X[50:], Y[50:])],
        "eval_sample_weight": [W[:50], None],
        "base_margin": margin,
        "eval_base_margin": [margin[:50], margin[50:]],
    }
    trainer = tg.Trainer(**QUICK)
    model = trainer.fit(X, Y, **arguments)
    estimator = tg.GBDTRegressor(**QUICK).fit(X, Y, **arguments)
    assert digest(estimator) == model.digest()
    assert estimator.history_ == trainer.history
    expected = model.predict(X, base_margin=margin)
    assert_identical(estimator.predict(X, base_margin=margin), expected)
    *_, last = estimator.staged_predict(X, base_margin=margin)
    assert_identical(last, expected)


def test_importances_are_shares_of_the_gain() -> None:
    gain = FITTED.model_.feature_importance("gain")
    assert_identical(FITTED.feature_importances_, gain / gain.sum())


def test_importances_without_a_split_are_zero() -> None:
    stump = tg.GBDTRegressor(n_estimators=2, min_samples_leaf=1000).fit(X, Y)
    assert_identical(stump.feature_importances_, np.zeros(4))


def test_stages_are_the_models_of_fewer_rounds() -> None:
    stages = list(FITTED.staged_predict(X))
    assert len(stages) == 4
    for n_rounds, stage in enumerate(stages, 1):
        shorter = tg.GBDTRegressor(**{**QUICK, "n_estimators": n_rounds}).fit(X, Y)
        assert_identical(stage, shorter.predict(X))


def test_score_is_r_squared() -> None:
    predicted = FITTED.predict(X)
    assert FITTED.score(X, Y) == r2_score(Y, predicted)
    assert FITTED.score(X, Y, W) == r2_score(Y, predicted, sample_weight=W)
    lists = FITTED.score(X.tolist(), Y.tolist(), W.tolist())
    assert lists == r2_score(Y.astype(np.float64), predicted, sample_weight=W)


def test_tensors_in_tensors_out() -> None:
    Xt, Yt, Wt = torch.from_numpy(X), torch.from_numpy(Y), torch.from_numpy(W)
    estimator = tg.GBDTRegressor(**QUICK).fit(Xt, Yt, Wt)
    assert digest(estimator) == digest(tg.GBDTRegressor(**QUICK).fit(X, Y, W))
    assert estimator.n_features_in_ == 4
    predicted = estimator.predict(Xt)
    assert isinstance(predicted, torch.Tensor)
    assert (predicted.dtype, predicted.shape, predicted.device) == (Yt.dtype, Yt.shape, Xt.device)
    assert all(isinstance(stage, torch.Tensor) for stage in estimator.staged_predict(Xt))
    assert estimator.score(Xt, Yt, Wt) == r2_score(Y, predicted, sample_weight=W)


def test_score_is_computed_from_arrays_wherever_tensors_lie(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kinds = []

    def spy(*values: object, sample_weight: object) -> float:
        kinds.extend(type(one) for one in (*values, sample_weight))
        return 0.0

    for module, metric in (("regressor", "r2_score"), ("classifier", "accuracy_score")):
        monkeypatch.setattr(f"torchgbdt.sklearn_api.{module}.{metric}", spy)
    Xt, Wt = torch.from_numpy(X), torch.from_numpy(W)
    for kind in (tg.GBDTRegressor, tg.GBDTClassifier):
        kind(**QUICK).fit(Xt, Xt[:, 0] > 0).score(Xt, Xt[:, 0] > 0, Wt)
    assert kinds == [np.ndarray] * 6


def test_column_of_targets() -> None:
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        estimator = tg.GBDTRegressor(**QUICK).fit(X, Y[:, None])
    assert digest(estimator) == digest(FITTED)
    column = torch.from_numpy(Y)[:, None]  # what a module returns
    assert digest(tg.GBDTRegressor(**QUICK).fit(X, column)) == digest(FITTED)


@pytest.mark.parametrize("targets", [Y.astype(object), list(Y), (Y * 8).round().astype(np.int8)])
def test_targets_of_any_numeric_kind(targets: object) -> None:
    expected = tg.train(X, np.asarray(targets, np.float64), **QUICK)
    assert digest(tg.GBDTRegressor(**QUICK).fit(X, targets)) == expected.digest()


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.stack([Y, Y], 1), "y should be a 1d array"),
        (
            torch.zeros(240, 2),
            r"y has shape \(240, 2\); one target per row, \(n_rows,\), is expected. Train an "
            r"estimator for each column.",
        ),
        (torch.zeros(240, 1, 1), r"y has shape \(240, 1, 1\); one target per row"),
        (np.where(Y > 0, np.nan, Y), "y has nan in row 0; every "),
        (np.full(240, "a"), "dtype='numeric' is not compatible with arrays of bytes/strings"),
        (None, "requires y to be passed"),
    ],
)
def test_targets_that_are_refused(y: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tg.GBDTRegressor(**QUICK).fit(X, y)


def test_missing_and_infinite_features() -> None:
    Xi = features()
    Xi[3, 0], Xi[4, 0] = np.inf, -np.inf
    estimator = tg.GBDTRegressor(**QUICK).fit(Xi, Y)
    assert digest(estimator) == tg.train(Xi, Y, **QUICK).digest()
    assert np.isfinite(estimator.predict(Xi)).all()

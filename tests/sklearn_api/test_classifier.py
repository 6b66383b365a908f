"""tg.GBDTClassifier: classes of any kind, probabilities, decisions."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.metrics import accuracy_score
from sklearn_api.small_tables import QUICK, classification, digest, weights
from support.exact import assert_identical

import torchgbdt as tg
from torchgbdt.core.errors import InvalidDataError

X, Y2 = classification(2)
_, Y3 = classification(3)
W = weights()
BINARY = tg.GBDTClassifier(**QUICK).fit(X, Y2)
TERNARY = tg.GBDTClassifier(**QUICK).fit(X, Y3)


@pytest.mark.parametrize(("y", "objective"), [(Y2, "logistic"), (Y3, "softmax")])
def test_number_of_classes_decides_the_objective(y: np.ndarray, objective: str) -> None:
    estimator = tg.GBDTClassifier(**QUICK).fit(X, y, sample_weight=W)
    expected = tg.train(X, y, sample_weight=W, objective=objective, **QUICK)
    assert digest(estimator) == expected.digest()


def test_classes_without_a_row_that_counts_are_none() -> None:
    estimator = tg.GBDTClassifier(**QUICK).fit(X, Y3, sample_weight=(Y3 != 1) * 1.0)
    assert estimator.model_.objective == "logistic"
    assert estimator.classes_.tolist() == [0, 2]


def test_named_objective_is_taken() -> None:
    estimator = tg.GBDTClassifier(objective="softmax", **QUICK).fit(X, Y2)
    assert digest(estimator) == tg.train(X, Y2, objective="softmax", **QUICK).digest()


TEXTS = np.array(["one", "three", "two"])
KINDS = [
    TEXTS[Y3],
    TEXTS[Y3].astype(object),
    TEXTS[Y3].tolist(),
    Y3 * 2.0 - 1,
    (Y3 - 1).astype(np.int8),
    Y3 > 0,
]


@pytest.mark.parametrize("y", KINDS, ids=lambda y: str(np.asarray(y).dtype))
def test_labels_of_any_kind(y: Any) -> None:
    estimator = tg.GBDTClassifier(**QUICK).fit(X, y)
    assert estimator.classes_.tolist() == sorted(set(np.asarray(y).tolist()))
    assert estimator.n_classes_ == len(estimator.classes_)
    predicted = estimator.predict(X)
    assert predicted.dtype == estimator.classes_.dtype
    assert estimator.score(X, y) == accuracy_score(y, predicted) > 0.6


@pytest.mark.parametrize("name", ["classes_", "n_classes_"])
def test_properties_need_a_fit(name: str) -> None:
    with pytest.raises(NotFittedError, match="GBDTClassifier instance is not fitted yet"):
        getattr(tg.GBDTClassifier(), name)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function"])
def test_predictions_need_a_fit(method: str) -> None:
    with pytest.raises(NotFittedError, match="GBDTClassifier instance is not fitted yet"):
        getattr(tg.GBDTClassifier(), method)(X)


@pytest.mark.parametrize("estimator", [BINARY, TERNARY], ids=["2 classes", "3 classes"])
def test_predictions_are_those_of_the_model(estimator: tg.GBDTClassifier) -> None:
    assert_identical(estimator.predict(X), estimator.model_.predict(X))
    assert_identical(estimator.predict_proba(X), estimator.model_.predict_proba(X))
    assert_identical(estimator.decision_function(X), estimator.model_.predict_raw(X))


def test_decision_of_two_classes_is_one_number_whatever_the_objective() -> None:
    softmax = tg.GBDTClassifier(objective="softmax", **QUICK).fit(X, Y2)
    for estimator in (BINARY, softmax):
        decision = estimator.decision_function(X)
        assert decision.shape == (240,)
        assert_identical(estimator.classes_[(decision > 0).astype(int)], estimator.predict(X))


def test_decision_of_three_classes_has_a_column_per_class() -> None:
    decision = TERNARY.decision_function(X)
    assert decision.shape == (240, 3)
    assert_identical(TERNARY.classes_[decision.argmax(1)], TERNARY.predict(X))


@pytest.mark.parametrize("method", ["predict", "predict_proba"])
@pytest.mark.parametrize(("estimator", "y"), [(BINARY, Y2), (TERNARY, Y3)], ids=["2", "3"])
def test_stages_are_the_models_of_fewer_rounds(
    estimator: tg.GBDTClassifier, y: np.ndarray, method: str
) -> None:
    stages = list(getattr(estimator, f"staged_{method}")(X))
    assert len(stages) == 4
    for n_rounds, stage in enumerate(stages, 1):
        shorter = tg.GBDTClassifier(**{**QUICK, "n_estimators": n_rounds}).fit(X, y)
        assert_identical(stage, getattr(shorter, method)(X))


def test_margins_reach_the_trainer_and_the_model() -> None:
    margin = np.sin(np.arange(720.0)).reshape(240, 3)
    estimator = tg.GBDTClassifier(**QUICK).fit(X, Y3, base_margin=margin)
    model = tg.train(X, Y3, base_margin=margin, objective="softmax", **QUICK)
    assert digest(estimator) == model.digest()
    for method in ("predict", "predict_proba"):
        expected = getattr(model, method)(X, base_margin=margin)
        assert_identical(getattr(estimator, method)(X, base_margin=margin), expected)
        *_, last = getattr(estimator, f"staged_{method}")(X, base_margin=margin)
        assert_identical(last, expected)
    raw = model.predict_raw(X, base_margin=margin)
    assert_identical(estimator.decision_function(X, base_margin=margin), raw)


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool, torch.float32])
def test_tensors_in_tensors_out(dtype: torch.dtype) -> None:
    Xt, yt = torch.from_numpy(X), torch.from_numpy(Y2).to(dtype)
    estimator = tg.GBDTClassifier(**QUICK).fit(Xt, yt)
    assert estimator.classes_.tolist() == [0, 1]
    predicted, shares = estimator.predict(Xt), estimator.predict_proba(Xt)
    assert isinstance(predicted, torch.Tensor)
    assert isinstance(shares, torch.Tensor)
    assert shares.dtype == torch.float32
    assert_identical(predicted.numpy().astype(np.int64), BINARY.predict(X))
    assert estimator.decision_function(Xt).shape == (240,)
    assert estimator.score(Xt, yt) == BINARY.score(X, Y2)


def test_texts_are_predicted_as_an_array_for_tensors_too() -> None:
    Xt = torch.from_numpy(X)
    estimator = tg.GBDTClassifier(**QUICK).fit(Xt, TEXTS[Y3])
    predicted = estimator.predict(Xt)
    assert isinstance(predicted, np.ndarray)
    assert predicted.tolist() == estimator.predict(X).tolist()
    assert estimator.score(Xt, TEXTS[Y3]) > 0.6


def test_score_is_weighted_accuracy() -> None:
    predicted = TERNARY.predict(X)
    assert TERNARY.score(X, Y3, W) == accuracy_score(Y3, predicted, sample_weight=W)
    Wt = torch.from_numpy(W)
    assert TERNARY.score(X, torch.from_numpy(Y3), Wt) == TERNARY.score(X, Y3, W)


def test_column_of_labels() -> None:
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        estimator = tg.GBDTClassifier(**QUICK).fit(X, Y2[:, None])
    assert digest(estimator) == digest(BINARY)
    column = torch.from_numpy(Y2)[:, None]
    assert digest(tg.GBDTClassifier(**QUICK).fit(X, column)) == digest(BINARY)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (Y2 + 0.5 * (X[:, 0] > 0), "Unknown label type: continuous"),
        (torch.from_numpy(X[:, 0]), "Unknown label type: continuous"),
        (np.stack([Y2, Y2], 1), "y should be a 1d array"),
        (torch.from_numpy(np.stack([Y2, Y2], 1)), "one target per row"),
        (np.where(Y2 > 0, np.nan, 0), "Input y contains NaN"),
        (np.where(Y2 > 0, np.inf, 0), "Input y contains infinity"),
        (np.zeros(240), "y has one class only"),
        (None, "requires y to be passed"),
        (Y2[1:], "inconsistent numbers of samples"),
    ],
)
def test_labels_that_are_refused(y: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tg.GBDTClassifier(**QUICK).fit(X, y)


def test_labels_of_rows_that_do_not_count_are_not_looked_at() -> None:
    y = np.where(W == 0, np.nan, Y2)
    estimator = tg.GBDTClassifier(**QUICK).fit(X, y, sample_weight=W)
    expected = tg.GBDTClassifier(**QUICK).fit(X, Y2 * 1.0, sample_weight=W)
    assert digest(estimator) == digest(expected)


def test_logistic_with_three_classes() -> None:
    with pytest.raises(InvalidDataError, match="y has 3 classes; objective='logistic' takes two"):
        tg.GBDTClassifier(objective="logistic", **QUICK).fit(X, Y3)

"""warm_start: fit goes on from the model that there is."""

from typing import Any

import numpy as np
import pytest
from sklearn_api.small_tables import QUICK, classification, digest, features, regression

import torchgbdt as tg
from torchgbdt.core.errors import InvalidDataError, InvalidParameterError

X, Y = regression()
_, Y2 = classification(2)
_, Y3 = classification(3)
CASES = [
    (tg.GBDTRegressor(**QUICK), Y),
    (tg.GBDTClassifier(**QUICK), Y2),
    (tg.GBDTClassifier(**QUICK), Y3),
]
IDS = ["regression", "2 classes", "3 classes"]


def grown(estimator: Any, y: np.ndarray, *n_estimators: int, **parameters: Any) -> Any:
    """A new estimator of that kind, fitted with each number of rounds in turn."""
    estimator = type(estimator)(**{**estimator.get_params(), "warm_start": True, **parameters})
    for n_rounds in n_estimators:
        estimator.set_params(n_estimators=n_rounds).fit(X, y)
    return estimator


@pytest.mark.parametrize(("estimator", "y"), CASES, ids=IDS)
def test_rounds_in_steps_are_the_model_of_all_rounds(estimator: Any, y: np.ndarray) -> None:
    whole = grown(estimator, y, 7)
    assert digest(grown(estimator, y, 1, 4, 7)) == digest(whole)
    assert whole.n_iter_ == 7


def test_first_fit_is_like_any_other() -> None:
    assert digest(grown(*CASES[0], 4)) == digest(tg.GBDTRegressor(**QUICK).fit(X, Y))


@pytest.mark.parametrize(("estimator", "y"), CASES, ids=IDS)
def test_same_number_of_rounds_changes_nothing(estimator: Any, y: np.ndarray) -> None:
    warm = grown(estimator, y, 4, eval_metric="rmse" if y is Y else "logloss")
    model, history = warm.model_, warm.history_
    assert warm.fit(X, y) is warm
    assert warm.model_ is model
    assert warm.history_ == history


def test_fewer_rounds_are_refused() -> None:
    warm = grown(*CASES[0], 4)
    with pytest.raises(InvalidParameterError) as error:
        warm.set_params(n_estimators=3).fit(X, Y)
    assert str(error.value) == (
        "n_estimators must be at least 4 with warm_start=True, the rounds that the model has; "
        "found 3. Raise it, or train anew with warm_start=False."
    )
    assert warm.n_iter_ == 4
    assert warm.set_params(warm_start=False).fit(X, Y).n_iter_ == 3


def test_other_settings_hold_for_the_rounds_added() -> None:
    warm = grown(*CASES[0], 3)
    warm.set_params(n_estimators=5, learning_rate=0.5, max_depth=1).fit(X, Y)
    first = tg.train(X, Y, **{**QUICK, "n_estimators": 3})
    settings = {**QUICK, "n_estimators": 2, "learning_rate": 0.5, "max_depth": 1}
    assert digest(warm) == tg.train(X, Y, init_model=first, **settings).digest()


def test_other_data_go_on_from_the_model() -> None:
    other = regression(seed=1)
    warm = grown(*CASES[0], 3).set_params(n_estimators=5).fit(*other)
    first = tg.train(X, Y, **{**QUICK, "n_estimators": 3})
    settings = {**QUICK, "n_estimators": 2}
    assert digest(warm) == tg.train(*other, init_model=first, **settings).digest()


def test_given_baseline_is_kept() -> None:
    assert digest(grown(*CASES[0], 2, 4, baseline=1.0)) == digest(grown(*CASES[0], 4, baseline=1.0))


def test_history_has_one_value_per_round_of_the_model() -> None:
    steps = grown(*CASES[0], 3, 5, eval_metric=["rmse", "mae"]).history_
    assert steps == grown(*CASES[0], 5, eval_metric=["rmse", "mae"]).history_


def test_history_has_nan_where_a_round_was_not_evaluated() -> None:
    warm = grown(*CASES[0], 2)
    warm.set_params(n_estimators=4, eval_metric="rmse").fit(X, Y)
    values = warm.history_["train"]["rmse"]
    assert np.isnan(values).tolist() == [True, True, False, False]


@pytest.mark.parametrize("source", [None, "RandomState"])
def test_drawn_key_is_kept(monkeypatch: pytest.MonkeyPatch, source: Any) -> None:
    keys = []

    class Spy(tg.Trainer):
        def __init__(self, **settings: Any) -> None:
            keys.append(settings["random_state"])
            super().__init__(**settings)

    monkeypatch.setattr("torchgbdt.sklearn_api.estimator.Trainer", Spy)
    random_state = None if source is None else np.random.RandomState(3)
    warm = grown(*CASES[0], 2, 4, random_state=random_state)
    assert keys[0] == keys[1]
    warm.set_params(random_state=11, n_estimators=6).fit(X, Y)
    assert keys[2] == 11


def test_label_that_the_model_does_not_know() -> None:
    warm = grown(*CASES[1], 2)
    with pytest.raises(InvalidDataError, match="y has the label 2 in row 2, which is no class of"):
        warm.set_params(n_estimators=4).fit(X, np.where(np.arange(240) == 2, 2, Y2))


def test_class_that_the_new_rows_lack() -> None:
    rows = Y3 != 1
    warm = grown(*CASES[2], 2, class_weight={1: 2.0, 2: 3.0})
    warm.set_params(n_estimators=4).fit(X[rows], Y3[rows])
    assert warm.classes_.tolist() == [0, 1, 2]
    assert warm.n_iter_ == 4


def test_other_number_of_features() -> None:
    warm = grown(*CASES[0], 2).set_params(n_estimators=4)
    with pytest.raises(ValueError, match="X has 3 features, but GBDTRegressor is expecting 4"):
        warm.fit(features()[:, :3], Y)


def test_other_objective() -> None:
    warm = grown(*CASES[1], 2).set_params(n_estimators=4, objective="softmax")
    with pytest.raises(InvalidParameterError, match="was trained with objective='logistic'"):
        warm.fit(X, Y2)


def test_bad_settings_are_refused_also_where_no_round_is_added() -> None:
    warm = grown(*CASES[0], 2)
    with pytest.raises(InvalidParameterError, match="learning_rate must be"):
        warm.set_params(learning_rate=-1).fit(X, Y)

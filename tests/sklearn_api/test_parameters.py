"""Parameters: the Trainer's names and defaults, checked in fit only, with their messages."""

import inspect
from dataclasses import fields
from typing import Any

import numpy as np
import pytest
from sklearn_api.small_tables import QUICK, classification, digest, regression

import torchgbdt as tg
from torchgbdt.core.errors import InvalidParameterError
from torchgbdt.core.settings import TrainerSettings

X, Y = regression()
ESTIMATORS = [tg.GBDTRegressor, tg.GBDTClassifier]
OWN = {
    "warm_start": False,
    "early_stopping": False,
    "validation_fraction": 0.1,
    "n_iter_no_change": 10,
    "tol": 1e-7,
    "callbacks": None,
}


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_parameters_are_the_settings_of_the_trainer_and_a_few_more(kind: Any) -> None:
    settings = {field.name: field.default for field in fields(TrainerSettings)}
    more = {}
    if kind is tg.GBDTClassifier:
        more = {"objective": None, "class_weight": None}
    parameters = inspect.signature(kind.__init__).parameters
    defaults = {name: one.default for name, one in parameters.items() if name != "self"}
    assert defaults == {**settings, **OWN, **more}
    assert {one.kind for one in list(parameters.values())[1:]} == {inspect.Parameter.KEYWORD_ONLY}
    assert kind().get_params() == defaults


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_docstring_names_every_parameter(kind: Any) -> None:
    assert [name for name in kind().get_params() if name not in kind.__doc__] == []


SETTINGS = {
    "learning_rate": 0.5,
    "max_depth": 2,
    "max_bins": 8,
    "min_samples_leaf": 30,
    "min_child_weight": 50.0,
    "reg_lambda": 9.0,
    "gamma": 2.0,
    "baseline": 3.0,
}


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_reaches_the_trainer(name: str) -> None:
    settings = {**QUICK, name: SETTINGS[name]}
    assert digest(tg.GBDTRegressor(**settings).fit(X, Y)) == tg.train(X, Y, **settings).digest()
    assert digest(tg.GBDTRegressor(**settings).fit(X, Y)) != tg.train(X, Y, **QUICK).digest()


BAD = [
    ("n_estimators", 0, "n_estimators must be an integer >= 1; found 0"),
    ("warm_start", "yes", "warm_start must be True or False; found 'yes'"),
    ("early_stopping", "auto", "early_stopping must be True or False; found 'auto'"),
    ("n_iter_no_change", 0, "n_iter_no_change must be an integer >= 1; found 0"),
    ("tol", -1.0, "tol must be a finite number >= 0; found -1.0"),
    ("callbacks", 3, "callbacks must be a list of callbacks; found 3"),
    ("random_state", -1, "random_state must be an integer from 0"),
    ("random_state", "seed", "random_state must be an integer from 0"),
    ("device", "abacus", "device must be 'auto', a torch.device or its name"),
    *(
        (
            "validation_fraction",
            value,
            f"validation_fraction must be a share between 0 and 1, or a number of rows >= 1; "
            f"found {value}",
        )
        for value in (0, 0.0, 1.0, -0.1, True, None)
    ),
]


@pytest.mark.parametrize(("name", "value", "message"), BAD)
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_bad_parameter_is_refused_in_fit_and_not_before(
    kind: Any, name: str, value: Any, message: str
) -> None:
    estimator = kind(**{name: value})
    with pytest.raises(InvalidParameterError) as error:
        estimator.fit(X, Y > 0)
    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (
            tg.GBDTRegressor(objective="softmax"),
            "objective must be 'squared_error' for a GBDTRegressor; found 'softmax'.",
        ),
        (
            tg.GBDTClassifier(objective="squared_error"),
            "objective must be 'logistic' or 'softmax' for a GBDTClassifier; found "
            "'squared_error'.",
        ),
    ],
)
def test_objective_of_the_other_estimator(estimator: Any, message: str) -> None:
    with pytest.raises(InvalidParameterError) as error:
        estimator.fit(X, Y > 0)
    assert str(error.value) == message


@pytest.mark.parametrize("objective", ["hinge", ["logistic"]])
@pytest.mark.parametrize("kind", ESTIMATORS)
def test_unknown_objective(kind: Any, objective: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"^objective must be"):
        kind(objective=objective).fit(X, Y > 0)


def test_number_as_random_state_is_the_key_of_the_trainer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert keys_of(monkeypatch, 7) == [7, 7]
    assert keys_of(monkeypatch, 2**64 - 1) == [2**64 - 1] * 2


def test_random_state_draws_a_key_for_each_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = keys_of(monkeypatch, np.random.RandomState(5))
    assert first != second
    assert [first, second] == keys_of(monkeypatch, np.random.RandomState(5))


def test_none_draws_a_key_for_each_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = keys_of(monkeypatch, None)
    assert first != second


def keys_of(monkeypatch: pytest.MonkeyPatch, random_state: Any) -> list[int]:
    """What two fits pass to their Trainers."""
    keys = []

    class Spy(tg.Trainer):
        def __init__(self, **settings: Any) -> None:
            keys.append(settings["random_state"])
            super().__init__(**settings)

    monkeypatch.setattr("torchgbdt.sklearn_api.estimator.Trainer", Spy)
    estimator = tg.GBDTRegressor(random_state=random_state, **QUICK)
    estimator.fit(X, Y).fit(X, Y)
    return keys


def test_callbacks_are_called() -> None:
    rounds = []

    class Recorder(tg.callbacks.Callback):
        def on_round_end(self, context: Any) -> None:
            rounds.append(context.round)

    tg.GBDTClassifier(callbacks=[Recorder()], **QUICK).fit(*classification(2))
    assert rounds == [0, 1, 2, 3]

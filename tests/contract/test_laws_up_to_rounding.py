"""Laws that hold only up to rounding; the tolerances and their reasons are in support/."""

from dataclasses import replace

import numpy as np
import pytest
from support.backends import BackendUnderTest
from support.exact import assert_identical
from support.random_rows import classes_of
from support.runs import Rows, Scenario, train
from support.scenarios import scenario
from support.tolerances import LOSS_RISE, OFFSET_ADDED, REPEATED_ROWS

from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.raw_predictions import raw_float64

pytestmark = pytest.mark.core_laws


def predictions(under_test: BackendUnderTest, one: Scenario, X: np.ndarray) -> np.ndarray:
    """float64(baseline) + float64(sum) of each row."""
    return all_outputs(under_test, one, X)[1][:, 0]


def all_outputs(
    under_test: BackendUnderTest, one: Scenario, X: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The baseline, (n_outputs,), and raw predictions, (n_rows, n_outputs); float64."""
    backend = under_test.make()
    model = train(backend, one).model
    sums = np.zeros((len(X), model.n_outputs), np.float32)
    backend.predict(model.forest, HostMatrix(X), sums)
    return model.baseline, raw_float64(model.baseline, sums, None)


def spread(y: np.ndarray) -> float:
    return float(np.abs(y - y.mean()).max())


@pytest.mark.parametrize("reg_lambda", [0.0, 1.0])
def test_integer_weights_are_repeated_rows(under_test: BackendUnderTest, reg_lambda: float) -> None:
    rng = np.random.default_rng(6)
    X = rng.integers(0, 30, (150, 3)).astype(np.float64)  # one bin per value on both sides
    y = X @ [0.1, -0.2, 0.05] + rng.normal(size=150)
    weights = rng.integers(1, 5, 150)
    settings = {"min_samples_leaf": 1, "n_estimators": 10, "reg_lambda": reg_lambda}
    weighted = Scenario(Rows(X, y, weights.astype(np.float64)), settings)
    repeated = Scenario(Rows(np.repeat(X, weights, axis=0), np.repeat(y, weights)), settings)
    difference = predictions(under_test, weighted, X) - predictions(under_test, repeated, X)
    assert np.abs(difference).max() <= REPEATED_ROWS * spread(y)


@pytest.mark.parametrize("reg_lambda", [0.0, 1.0])
@pytest.mark.parametrize(("objective", "n_classes"), [("logistic", 2), ("softmax", 4)])
def test_integer_weights_of_classes_are_repeated_rows(
    under_test: BackendUnderTest, objective: str, n_classes: int, reg_lambda: float
) -> None:
    rng = np.random.default_rng(6)
    X = rng.integers(0, 30, (150, 3)).astype(np.float64)
    y = classes_of(X @ [0.1, -0.2, 0.05] + rng.normal(size=150), n_classes)
    weights = rng.integers(1, 5, 150)
    settings = {"min_samples_leaf": 1, "n_estimators": 10, "objective": objective}
    settings["reg_lambda"] = reg_lambda
    weighted = Scenario(Rows(X, y, weights.astype(np.float64)), settings)
    repeated = Scenario(Rows(np.repeat(X, weights, axis=0), np.repeat(y, weights)), settings)
    baseline, found = all_outputs(under_test, weighted, X)
    expected_baseline, expected = all_outputs(under_test, repeated, X)
    assert_identical(baseline, expected_baseline)  # sums of weights are exact
    difference = np.abs(found - expected).max()
    assert difference <= REPEATED_ROWS * np.abs(expected - baseline).max()


@pytest.mark.parametrize("offset", [-3.0, 1e3, 1e6, 1e9])
def test_an_offset_added_to_y_is_added_to_predictions(
    under_test: BackendUnderTest, offset: float
) -> None:
    one = scenario("plain").changed(n_estimators=10)
    X, y = one.train.X, one.train.y
    shifted = one.with_train(Rows(X, y + offset))
    difference = (predictions(under_test, shifted, X) - offset) - predictions(under_test, one, X)
    assert np.abs(difference).max() <= OFFSET_ADDED * spread(y)


@pytest.mark.parametrize(
    "name",
    ["plain", "missing values", "huge range of weights", "lambda 0", "offset", "margins"],
)
@pytest.mark.parametrize("learning_rate", [0.1, 1.0])
def test_training_loss_never_rises(
    under_test: BackendUnderTest, name: str, learning_rate: float
) -> None:
    one = scenario(name).changed(n_estimators=12, learning_rate=learning_rate)
    losses = np.array(train(under_test.make(), one).history["train"]["rmse"])
    assert np.diff(losses).max() <= LOSS_RISE * spread(one.train.y)
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("name", ["leaves of one row", "chain"])
def test_a_loss_at_its_floor_stays_there(under_test: BackendUnderTest, name: str) -> None:
    # Each leaf holds one row, so the first round already predicts y up to rounding.
    one = scenario(name).changed(n_estimators=12, learning_rate=1.0, reg_lambda=0.0)
    losses = np.array(train(under_test.make(), one).history["train"]["rmse"])
    assert losses.max() <= LOSS_RISE * spread(one.train.y)


def test_learning_does_not_stop_at_an_offset_of_1e9(under_test: BackendUnderTest) -> None:
    one = scenario("offset").changed(n_estimators=40)
    centred = one.with_train(replace(one.train, y=one.train.y - 1e9))
    found, expected = (
        train(under_test.make(), s).history["train"]["rmse"][-1]
        for s in (one, Scenario(centred.train, one.settings))
    )
    assert abs(found - expected) <= OFFSET_ADDED * spread(one.train.y)

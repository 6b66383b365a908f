"""Errors that a run finds in its data, its settings or its backend: named, and FAILED for good."""

from typing import Any

import numpy as np
import pytest
from support.runs import Rows, Scenario, make_session, training_data
from support.small_run import assert_given_up, small

from torchgbdt.core.backend import ComputeBackend
from torchgbdt.core.errors import (
    BackendError,
    InvalidDataError,
    InvalidParameterError,
    StateError,
)
from torchgbdt.core.trainer import TrainingSession


def run_patched(backend: ComputeBackend, one: Scenario, **methods: Any) -> TrainingSession:
    for name, method in methods.items():
        setattr(backend, name, method)
    session = make_session(backend, one)
    session.run(training_data(one))
    return session


def test_gradients_beyond_float32_are_an_error_of_the_data(backend: ComputeBackend) -> None:
    rows = Rows(np.arange(20.0)[:, None], np.full(20, 1e38), np.full(20, 1e10))
    session = make_session(backend, Scenario(rows, {"baseline": 0.0}))
    with pytest.raises(InvalidDataError, match="NaN or infinite"):
        session.run(training_data(Scenario(rows)))
    assert_given_up(session, backend)


@pytest.mark.parametrize(
    ("g", "h", "message"),
    [(np.nan, 1.0, "NaN or infinite"), (0.0, np.inf, "NaN or infinite"), (0.0, -1.0, "negative")],
    ids=["NaN gradient", "infinite Hessian", "negative Hessian"],
)
def test_bad_gradients_from_elsewhere_are_an_error_of_the_data(
    backend: ComputeBackend, g: float, h: float, message: str
) -> None:
    gradients, hessians = np.ones((40, 1), np.float32), np.ones((40, 1), np.float32)
    gradients[7], hessians[7] = g, h
    weighted = Scenario(Rows(small().train.X, small().train.y, np.ones(40)))
    with pytest.raises(InvalidDataError, match=message):
        run_patched(
            backend,
            weighted,
            compute_gradients=lambda output: backend.load_gradients(gradients, hessians),
        )


def test_rows_that_get_lost_are_an_error_of_the_backend(backend: ComputeBackend) -> None:
    route_rows = backend.route_rows
    with pytest.raises(BackendError, match="routed other numbers of rows"):
        run_patched(backend, small(), route_rows=lambda *args: route_rows(*args) + 1)
    with pytest.raises(StateError):
        backend.run_settings()


def test_leaf_values_beyond_float32_are_an_error_of_the_settings(backend: ComputeBackend) -> None:
    one = small().changed(learning_rate=1e38, reg_lambda=0.0)
    rows = Rows(one.train.X, one.train.y * 1e3)
    session = make_session(backend, one.with_train(rows))
    with pytest.raises(InvalidParameterError, match="leaf value exceeds float32"):
        session.run(training_data(one.with_train(rows)))
    assert_given_up(session, backend)

"""A run small enough to be started once for each of its calls, and what its failure must leave."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from support.random_rows import classes_of
from support.runs import Rows, Scenario, make_session, train, training_data

from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.core.backend import ComputeBackend
from torchgbdt.core.errors import StateError
from torchgbdt.core.states import TrainerState
from torchgbdt.core.trainer import TrainingSession


@cache
def small(objective: str = "squared_error") -> Scenario:
    """Two rounds of two levels, a validation set, all metrics: every call of the interface.

    Logistic goes on from a model, which is predicted with first.
    """
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    settings = {"objective": objective, "n_estimators": 2, "max_depth": 2, "max_bins": 8}
    if objective != "squared_error":
        y = classes_of(y, 2 if objective == "logistic" else 3)
    one = Scenario(Rows(X, y), settings, [Rows(X[:9], y[:9])])
    if objective == "softmax":  # three trees a round: two rounds would be many calls
        one = one.changed(n_estimators=1)
    if objective == "logistic":
        one = replace(one, init_model=train(OracleBackend(), one).model)
    return one


def failed_run(
    backend: ComputeBackend, error: BaseException, observers: Any = (), one: Scenario | None = None
) -> TrainingSession:
    """The session of a run that must end with exactly this error."""
    one = one or small()
    session = make_session(backend, one, observers)
    with pytest.raises(type(error)) as caught:
        session.run(training_data(one))
    assert caught.value is error
    return session


def assert_given_up(session: TrainingSession, backend: ComputeBackend) -> None:
    """The session is FAILED for good and the backend holds no run."""
    assert session.state is TrainerState.FAILED
    with pytest.raises(StateError, match="failed"):
        session.run(training_data(small()))
    with pytest.raises(StateError):
        backend.run_settings()

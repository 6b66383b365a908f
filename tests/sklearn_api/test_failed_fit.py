"""A failed fit leaves an estimator as it was; fits at the same time do not meet."""

import threading
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn_api.small_tables import QUICK, classification, digest, features, regression, weights

import torchgbdt as tg

X, Y = regression()
_, Y3 = classification(3)


class Failing(tg.callbacks.Callback):
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def on_round_end(self, context: Any) -> None:
        raise self.error


def state_of(estimator: Any) -> dict[str, Any]:
    return dict(vars(estimator))


@pytest.mark.parametrize("error", [RuntimeError("mine"), KeyboardInterrupt()])
@pytest.mark.parametrize("warm_start", [False, True])
def test_failing_callback_changes_nothing(error: BaseException, warm_start: bool) -> None:
    estimator = tg.GBDTRegressor(**QUICK).fit(X, Y)
    estimator.set_params(callbacks=[Failing(error)], warm_start=warm_start, n_estimators=9)
    before = state_of(estimator)
    with pytest.raises(type(error)):
        estimator.fit(X + 1, Y)
    assert state_of(estimator) == before


@pytest.mark.parametrize(
    "bad",
    [
        (X[:, :2], Y[1:]),  # another width, refused only afterwards
        (X, np.where(Y > 0, np.nan, Y)),
        (X[0], Y),
        (X.astype(str), Y),
    ],
)
def test_bad_data_change_nothing(bad: Any) -> None:
    estimator = tg.GBDTRegressor(**QUICK).fit(X, Y)
    before = state_of(estimator)
    with pytest.raises(ValueError):
        estimator.fit(*bad)
    assert state_of(estimator) == before
    assert estimator.n_features_in_ == 4
    estimator.predict(X)


def test_names_of_an_earlier_fit_stay_after_a_failure_and_go_after_a_success() -> None:
    estimator = tg.GBDTRegressor(**QUICK).fit(pd.DataFrame(X, columns=list("abcd")), Y)
    with pytest.raises(ValueError, match="y has "):
        estimator.fit(X, np.where(Y > 0, np.nan, Y))
    assert estimator.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    estimator.fit(X, Y)
    assert not hasattr(estimator, "feature_names_in_")


def test_failed_first_fit_leaves_no_model() -> None:
    estimator = tg.GBDTClassifier(callbacks=[Failing(RuntimeError("mine"))], **QUICK)
    with pytest.raises(RuntimeError, match="mine"):
        estimator.fit(X, Y3)
    assert not hasattr(estimator, "n_features_in_")
    assert not hasattr(estimator, "classes_")


def test_refit_replaces_everything() -> None:
    estimator = tg.GBDTClassifier(eval_metric="logloss", **QUICK).fit(X, Y3)
    again = tg.GBDTClassifier(eval_metric="logloss", **QUICK).fit(X[:, :3], Y3 > 0)
    estimator.fit(X[:, :3], Y3 > 0)
    assert digest(estimator) == digest(again)
    assert estimator.history_ == again.history_
    assert (estimator.n_features_in_, estimator.n_classes_) == (3, 2)


def test_fits_in_two_threads_are_those_alone() -> None:
    jobs = [
        (tg.GBDTRegressor(n_estimators=30, early_stopping=True), (features(), Y, weights())),
        (tg.GBDTClassifier(n_estimators=10, class_weight="balanced"), (X, Y3, weights(seed=2))),
    ]
    alone = [digest(estimator.fit(*data)) for estimator, data in jobs]
    barrier = threading.Barrier(len(jobs))
    together: dict[int, list[str]] = {}

    def run(index: int) -> None:
        estimator, data = jobs[index]
        barrier.wait()
        together[index] = [digest(estimator.fit(*data)) for _ in range(3)]

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert together == {0: [alone[0]] * 3, 1: [alone[1]] * 3}


def test_one_estimator_in_two_threads_is_one_of_both() -> None:
    shared = tg.GBDTRegressor(**QUICK)
    data = [(X, Y), (X[:, :3], -Y)]
    expected = [digest(tg.GBDTRegressor(**QUICK).fit(*one)) for one in data]
    threads = [threading.Thread(target=shared.fit, args=one) for one in data]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert shared.n_features_in_ == (4, 3)[expected.index(digest(shared))]


def test_what_a_callback_does_to_the_estimator_stays() -> None:
    class Note(tg.callbacks.Callback):
        def on_train_end(self, context: Any) -> None:
            estimator.seen = context.round
            estimator.set_params(learning_rate=0.77)

    estimator = tg.GBDTRegressor(n_estimators=2, callbacks=[Note()])
    estimator.fit(*regression())
    assert (estimator.seen, estimator.learning_rate, estimator.n_iter_) == (1, 0.77, 2)

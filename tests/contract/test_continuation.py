"""Training that goes on: the rounds of two runs are those of one, by digest and by history."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from support.backends import BackendUnderTest
from support.exact import assert_identical
from support.lockstep import in_lockstep
from support.ranks import train_in_ranks
from support.runs import Outcome, Rows, Scenario, make_session, train, training_data
from support.scenarios import scenario

from torchgbdt.core.backend import ComputeBackend
from torchgbdt.core.communicator import SINGLE_RANK
from torchgbdt.core.errors import InvalidDataError
from torchgbdt.core.model import Model
from torchgbdt.core.observer import TrainingContext
from torchgbdt.core.run_data import TrainingData
from torchgbdt.core.settings import BinningSettings

pytestmark = pytest.mark.core_laws

KINDS = [
    "fractional weights", "zero weights", "missing values", "margins", "given baseline", "gamma",
]  # fmt: skip
NAMES = [
    *(f"{objective}{kind}" for objective in ("", "logistic, ", "3 classes, ") for kind in KINDS),
    "plain", "offset", "vanishing", "leaves of one row", "one value and missing",
    "logistic", "logistic, labels: text", "logistic, saturated",
    "7 classes", "4 classes, symmetric", "3 classes, eval set lacks classes",
    "3 classes, labels: negative",
]  # fmt: skip
every_name = pytest.mark.parametrize("name", NAMES)
of_each_objective = pytest.mark.parametrize("name", ["plain", "logistic", "3 classes"])


def rounds(name: str, n_rounds: int) -> Scenario:
    return scenario(name).changed(n_estimators=n_rounds)


def going_on(one: Scenario, model: Model) -> Scenario:
    """The scenario from the model on; what the model knows is not set again."""
    settings = {key: value for key, value in one.settings.items() if key != "baseline"}
    return replace(one, settings=settings, init_model=model)


def in_two_runs(backend: Any, name: str, first: int, then: int) -> Outcome:
    """Rounds of two runs; the history of the second."""
    start = train(backend(), rounds(name, first)).model
    return train(backend(), going_on(rounds(name, then), start))


def tail(history: dict[str, dict[str, list[float]]], first: int) -> dict[str, Any]:
    return {
        name: {metric: values[first:] for metric, values in metrics.items()}
        for name, metrics in history.items()
    }


@every_name
def test_five_rounds_and_five_are_ten(under_test: BackendUnderTest, name: str) -> None:
    whole = train(under_test.make(), rounds(name, 10))
    found = in_two_runs(under_test.make, name, 5, 5)
    assert found.model.digest() == whole.model.digest()
    assert_identical(found.model.forest, whole.model.forest)
    assert_identical(found.history, tail(whole.history, 5))


@pytest.mark.parametrize(("first", "then"), [(1, 3), (3, 1)])
@of_each_objective
def test_wherever_training_is_cut(
    under_test: BackendUnderTest, name: str, first: int, then: int
) -> None:
    whole = train(under_test.make(), rounds(name, 4)).model.digest()
    assert in_two_runs(under_test.make, name, first, then).model.digest() == whole


@of_each_objective
def test_a_round_at_a_time(under_test: BackendUnderTest, name: str) -> None:
    one = rounds(name, 1)
    model = train(under_test.make(), one).model
    for _ in range(3):
        model = train(under_test.make(), going_on(one, model)).model
    assert model.digest() == train(under_test.make(), rounds(name, 4)).model.digest()


@of_each_objective
def test_a_model_that_was_cut_back_goes_on(under_test: BackendUnderTest, name: str) -> None:
    whole = train(under_test.make(), rounds(name, 5)).model
    found = train(under_test.make(), going_on(rounds(name, 3), whole.truncate(2))).model
    assert found.digest() == whole.digest()


@pytest.mark.parametrize("name", ["zero weights", "logistic, margins", "3 classes, missing values"])
def test_every_call_of_a_continued_run_equals_the_reference(
    under_test: BackendUnderTest, name: str
) -> None:
    lockstep = in_lockstep(under_test)
    in_two_runs(lambda: lockstep, name, 2, 2)
    assert lockstep.compared["predict"] == 1 + len(scenario(name).valids)


@pytest.mark.parametrize(
    "name", ["plain", "margins", "logistic, zero weights", "logistic, margins",
             "3 classes, zero weights", "3 classes, margins", "3 classes, labels: text"],
)  # fmt: skip
def test_on_several_ranks(under_test: BackendUnderTest, name: str) -> None:
    whole = train(under_test.make(), rounds(name, 6))
    one = rounds(name, 3)
    n_rows = one.train.n_rows
    start = train_in_ranks(under_test.make, one, [0, n_rows // 3, n_rows])[0].model
    borders = [0, 5, n_rows - 9, n_rows]
    for found in train_in_ranks(under_test.make, going_on(one, start), borders):
        assert found.model.digest() == whole.model.digest()
        assert_identical(found.history, tail(whole.history, 3))


# ----------------------------------------------------------------------------------- a Dataset


def binned(one: Scenario, backend: ComputeBackend) -> TrainingData:
    """The scenario's data, its rows as Datasets."""
    data = training_data(one)
    settings = BinningSettings(one.settings.get("max_bins", 256))
    train = data.train.check().quantize(settings, backend, SINGLE_RANK)
    valids = [
        valid.check().quantize(settings, backend, SINGLE_RANK, train.thresholds)
        for valid in data.valids
    ]
    return replace(data, train=train, valids=valids)


def train_binned(under_test: BackendUnderTest, one: Scenario) -> Outcome:
    session = make_session(under_test.make(), one)
    model = session.run(binned(one, under_test.make()))
    return Outcome(model, session.history, session)


@every_name
def test_on_a_data_set_that_is_binned(under_test: BackendUnderTest, name: str) -> None:
    whole = train(under_test.make(), rounds(name, 4))
    start = train_binned(under_test, rounds(name, 2)).model
    found = train_binned(under_test, going_on(rounds(name, 2), start))
    assert found.model.digest() == whole.model.digest()
    assert_identical(found.history, tail(whole.history, 2))


@pytest.mark.parametrize("name", ["continued", "logistic, continued", "3 classes, continued"])
def test_a_data_set_with_other_thresholds_is_refused(
    under_test: BackendUnderTest, name: str
) -> None:
    one = going_on(scenario(name), scenario(name).init_model)
    with pytest.raises(InvalidDataError, match="where this Dataset's bins are not cut"):
        train_binned(under_test, one)
    train(under_test.make(), one)  # X and y themselves may be cut anywhere


# -------------------------------------------------------------------------- what the model knows


@pytest.mark.parametrize("name", ["logistic", "3 classes, labels: text"])
def test_classes_that_the_new_rows_lack_are_kept(under_test: BackendUnderTest, name: str) -> None:
    one = rounds(name, 2)
    start = train(under_test.make(), one).model
    rows = one.train[one.train.y != start.classes[0]]
    found = train(under_test.make(), going_on(one.with_train(rows), start)).model
    assert_identical(found.classes, start.classes)
    assert_identical(found.baseline, start.baseline)
    assert found.n_rounds == 4


@pytest.mark.parametrize("name", ["logistic", "3 classes"])
def test_classes_that_the_model_lacks_are_refused(under_test: BackendUnderTest, name: str) -> None:
    one = rounds(name, 2)
    start = train(under_test.make(), one).model
    y = one.train.y.copy()
    y[9] = 77
    other = one.with_train(Rows(one.train.X, y))
    with pytest.raises(InvalidDataError, match="y has the label 77 in row 9"):
        train(under_test.make(), going_on(other, start))


# -------------------------------------------------------------------------------- early stopping


class StopAt:
    """Stops after a round, by its number in the whole model, and may keep fewer."""

    def __init__(self, last: int, best: int | None) -> None:
        self._last, self._best = last, best
        self.seen: list[int] = []

    def on_train_begin(self, context: TrainingContext) -> None: ...
    def on_round_begin(self, context: TrainingContext) -> None: ...
    def on_train_end(self, context: TrainingContext) -> None: ...

    def on_round_end(self, context: TrainingContext) -> None:
        self.seen.append(context.round)
        if context.round == self._last:
            context.request_stop()
            if self._best is not None:
                context.keep_best(self._best)


@pytest.mark.parametrize(("last", "best", "n_rounds"), [(6, 4, 5), (6, None, 7), (3, 3, 4)])
@of_each_objective
def test_rounds_are_numbered_on_and_may_be_cut_back(
    under_test: BackendUnderTest, name: str, last: int, best: int | None, n_rounds: int
) -> None:
    start = train(under_test.make(), rounds(name, 3)).model
    stop = StopAt(last, best)
    found = train(under_test.make(), going_on(rounds(name, 9), start), [stop])
    whole = train(under_test.make(), rounds(name, 12))
    assert stop.seen == list(range(3, last + 1))
    assert found.model.digest() == whole.model.truncate(n_rounds).digest()
    assert found.model.best_iteration == best
    for metric, values in found.history["train"].items():
        assert_identical(values, whole.history["train"][metric][3 : last + 1])


def test_predictions_begin_where_the_model_ended(under_test: BackendUnderTest) -> None:
    """A callback of the first new round sees the old rounds as well."""
    seen: list[np.ndarray] = []

    class Witness(StopAt):
        def on_round_end(self, context: TrainingContext) -> None:
            seen.append(context.raw_predictions("valid_0"))

    for name in ("plain", "logistic", "3 classes"):
        train(under_test.make(), rounds(name, 4), [Witness(0, None)])
        start = train(under_test.make(), rounds(name, 2)).model
        train(under_test.make(), going_on(rounds(name, 2), start), [Witness(0, None)])
        assert_identical(seen[4:], seen[2:4])
        seen.clear()

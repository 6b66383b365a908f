"""Rows on several ranks: every rank ends with the model of a single one."""

import numpy as np
import pytest
from support.backends import BackendUnderTest
from support.exact import assert_identical
from support.lockstep import in_lockstep
from support.ranks import run_ranks, shards, train_in_ranks
from support.reference import reference_outcome
from support.runs import (
    Rows,
    Scenario,
    grow_tree,
    make_session,
    prepare,
    train,
    training_data,
)
from support.scenarios import scenario

from torchgbdt.core.communicator import SINGLE_RANK, Communicator
from torchgbdt.core.errors import BackendError, InvalidDataError
from torchgbdt.core.states import TrainerState
from torchgbdt.core.tree import Tree

pytestmark = pytest.mark.core_laws

NAMES = [
    "plain",
    "missing values",
    "constant features",
    "256 bins",
    "huge range of weights",
    "zero weights",
    "leaves of one row",
    "ties",
    "offset",
    "outliers",
    "subnormals",
    "margins",
    "continued",
    "logistic",
    "logistic, one row of a class",
    "logistic, zero weights",
    "logistic, huge range of weights",
    "logistic, margins",
    "logistic, ties",
    "logistic, saturated",
    "logistic, eval set lacks classes",
    "logistic, labels: bools",
    "3 classes",
    "3 classes, one row of a class",
    "3 classes, missing values",
    "3 classes, margins",
    "3 classes, continued",
    "3 classes, labels: text",
    "3 classes, labels: beyond int64",
    "5 classes, a row of each",
    "30 classes",
]


def borders_of(kind: str, n_rows: int) -> list[int]:
    return {
        "halves": [0, n_rows // 2, n_rows],
        "one row and the rest": [0, 1, n_rows],
        "nothing and all": [0, 0, n_rows],
        "three": [0, min(7, n_rows // 2), n_rows - min(3, n_rows // 2), n_rows],
    }[kind]


@pytest.mark.parametrize("kind", ["halves", "one row and the rest", "nothing and all", "three"])
@pytest.mark.parametrize("name", NAMES)
def test_every_rank_has_the_model_and_history_of_one_rank(
    under_test: BackendUnderTest, name: str, kind: str
) -> None:
    borders = borders_of(kind, scenario(name).train.n_rows)
    expected = reference_outcome(under_test, name)
    for found in train_in_ranks(under_test.make, scenario(name), borders):
        assert found.model.digest() == expected.model.digest()
        assert_identical(found.history, expected.history)


@pytest.mark.parametrize("name", ["missing values", "logistic", "3 classes, margins"])
@pytest.mark.parametrize("n_slots_mb", [1e-9, 512.0], ids=["one slot", "many slots"])
def test_every_call_on_two_ranks_equals_the_reference(
    under_test: BackendUnderTest, n_slots_mb: float, name: str
) -> None:
    one = scenario(name).changed(histogram_budget_mb=n_slots_mb)
    expected = reference_outcome(under_test, name).model.digest()
    borders = [0, 60, one.train.n_rows]
    for found in train_in_ranks(lambda: in_lockstep(under_test), one, borders):
        assert found.model.digest() == expected


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("border", [0, 1, 40])
def test_trees_of_loaded_gradients(
    under_test: BackendUnderTest, n_outputs: int, border: int
) -> None:
    rng = np.random.default_rng(n_outputs)
    bins = rng.integers(0, 5, (90, 3))
    g = rng.normal(size=(90, n_outputs)).astype(np.float32)
    h = np.where(rng.random(g.shape) < 0.3, 0, np.abs(g)).astype(np.float32)

    def grow(rows: slice, communicator: Communicator) -> Tree:
        backend = in_lockstep(under_test)
        thresholds = prepare(backend, bins[rows], [4, 4, 4], n_outputs)
        backend.given = (g[rows], h[rows])
        return grow_tree(backend, thresholds, communicator=communicator, max_depth=4)

    expected = grow(slice(0, 90), SINGLE_RANK)
    shares = [slice(0, border), slice(border, 90)]
    for found in run_ranks(2, lambda communicator: grow(shares[communicator.rank], communicator)):
        assert_identical(found, expected)


def test_weights_on_one_rank_only_count_as_weights_of_one_elsewhere(
    under_test: BackendUnderTest,
) -> None:
    one = scenario("fractional weights")
    rows = one.train
    weights = np.concatenate((rows.weights[:80], np.ones(120)))
    expected = train(under_test.make(), one.with_train(Rows(rows.X, rows.y, weights)))
    first, second = shards(one.with_train(Rows(rows.X, rows.y, weights)), [0, 80, 200])
    second = second.with_train(Rows(second.train.X, second.train.y))
    parts = (first, second)

    def work(communicator: Communicator) -> str:
        part = parts[communicator.rank]
        return train(under_test.make(), part, communicator=communicator).model.digest()

    assert run_ranks(2, work) == [expected.model.digest()] * 2


def by_class(name: str) -> Scenario:
    """The scenario with its rows sorted by their labels, and no other data set."""
    one = scenario(name)
    return Scenario(one.train[np.argsort(one.train.y, kind="stable")], one.settings)


@pytest.mark.parametrize(
    "name",
    [
        "logistic", "logistic, labels: text", "3 classes, one row of a class",
        "3 classes, labels: text", "7 classes", "30 classes",
    ],
)  # fmt: skip
def test_classes_that_only_one_rank_has(under_test: BackendUnderTest, name: str) -> None:
    one = by_class(name)
    codes = np.unique(one.train.y, return_inverse=True)[1]
    middle = codes.max() // 2  # each rank but the last begins with a class of its own
    borders = [0, *np.searchsorted(codes, [1, middle + 1]).tolist(), one.train.n_rows]
    expected = train(under_test.make(), one)
    for found in train_in_ranks(under_test.make, one, borders):
        assert found.model.digest() == expected.model.digest()
        assert_identical(found.history, expected.history)


def test_ranks_with_labels_of_different_kinds_fail_together(under_test: BackendUnderTest) -> None:
    rows = scenario("logistic").train
    first, second = shards(Scenario(rows, {"objective": "logistic"}), [0, 100, rows.n_rows])
    second = second.with_train(Rows(second.train.X, second.train.y.astype(str)))
    errors = [None, None]

    def work(communicator: Communicator) -> None:
        try:
            train(under_test.make(), (first, second)[communicator.rank], communicator=communicator)
        except InvalidDataError as error:
            errors[communicator.rank] = str(error)

    run_ranks(2, work)
    assert errors[0] == errors[1] and "integers on one rank and texts on another" in errors[0]


def test_a_nan_label_on_one_rank_fails_all_of_them(under_test: BackendUnderTest) -> None:
    rows = scenario("plain").train
    y = np.where(np.arange(240) == 200, np.nan, rows.y)
    parts = shards(Scenario(Rows(rows.X, y)), [0, 120, 240])
    sessions = [None, None]

    def work(communicator: Communicator) -> None:
        rank = communicator.rank
        sessions[rank] = make_session(under_test.make(), parts[rank], (), communicator)
        sessions[rank].run(training_data(parts[rank]))

    with pytest.raises(InvalidDataError, match="nan"):
        run_ranks(2, work)
    assert [session.state for session in sessions] == [TrainerState.FAILED] * 2


def test_a_gradient_that_overflows_on_one_rank_is_an_error_of_both(
    under_test: BackendUnderTest,
) -> None:
    weights, y = np.full(40, 1e10), np.zeros(40)
    y[33] = 1e38  # w * (0 - y) exceeds float32, on the second rank
    one = Scenario(Rows(np.arange(40.0)[:, None], y, weights), {"baseline": 0.0})
    errors = [None, None]

    def work(communicator: Communicator) -> None:
        part = shards(one, [0, 20, 40])[communicator.rank]
        try:
            train(under_test.make(), part, communicator=communicator)
        except InvalidDataError as error:
            errors[communicator.rank] = str(error)

    run_ranks(2, work)
    assert errors[0] == errors[1] and "NaN or infinite" in errors[0]


def test_a_rank_that_fails_wakes_the_others(under_test: BackendUnderTest) -> None:
    caught = []

    def work(communicator: Communicator) -> None:
        if communicator.rank == 0:
            raise ZeroDivisionError
        try:
            train(under_test.make(), scenario("plain"), communicator=communicator)
        except BackendError as error:
            caught.append(error)
            raise

    with pytest.raises(ZeroDivisionError):
        run_ranks(2, work)
    assert "another rank" in str(caught[0])


def test_weights_that_are_zero_on_every_rank_are_an_error_of_all(
    under_test: BackendUnderTest,
) -> None:
    rows = scenario("plain").train
    one = Scenario(Rows(rows.X, rows.y, np.zeros(240)))
    with pytest.raises(InvalidDataError, match="no row has a positive weight"):
        train_in_ranks(under_test.make, one, [0, 100, 240])


def test_an_eval_set_that_is_empty_on_every_rank_is_an_error_of_all(
    under_test: BackendUnderTest,
) -> None:
    rows = scenario("plain").train
    one = Scenario(rows, {}, [Rows(rows.X, rows.y, np.zeros(240))])
    with pytest.raises(InvalidDataError, match=r"eval_set\[0\] has no row"):
        train_in_ranks(under_test.make, one, [0, 100, 240])

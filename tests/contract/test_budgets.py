"""The histogram budget decides what is built and what is subtracted, and nothing else."""

import numpy as np
import pytest
from support.backends import BackendUnderTest
from support.exact import assert_identical
from support.lockstep import in_lockstep
from support.reference import reference_outcome
from support.runs import Scenario, settings_of, train, training_data
from support.scenarios import scenario

from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.core.communicator import SINGLE_RANK
from torchgbdt.core.histogram_plan import histogram_bytes

NAMES = [
    "plain", "missing values", "fractional weights", "leaves of one row", "chain", "ties",
    "logistic", "logistic, missing values", "3 classes", "7 classes",
]  # fmt: skip
every_budget = pytest.mark.parametrize("n_slots", [1, 2, 3, 5])
every_name = pytest.mark.parametrize("name", NAMES)


def slot_bytes(one: Scenario) -> int:
    settings = settings_of(one)
    data = training_data(one).check(settings).quantize(settings, OracleBackend(), SINGLE_RANK)
    return histogram_bytes(data.train.thresholds.total_bins, 1)


def with_slots(one: Scenario, n_slots: int, *, spare_bytes: int = 0) -> Scenario:
    n_bytes = n_slots * slot_bytes(one) + spare_bytes
    return one.changed(histogram_budget_mb=n_bytes / 2**20)


@every_budget
@every_name
def test_model_does_not_depend_on_the_budget(
    under_test: BackendUnderTest, name: str, n_slots: int
) -> None:
    found = train(under_test.make(), with_slots(scenario(name), n_slots))
    assert found.session.diagnostics()["histogram_slots"] == n_slots
    assert found.model.digest() == reference_outcome(under_test, name).model.digest()
    assert_identical(found.history, reference_outcome(under_test, name).history)


@every_budget
def test_every_call_equals_the_reference_under_a_small_budget(
    under_test: BackendUnderTest, n_slots: int
) -> None:
    lockstep = in_lockstep(under_test)
    train(lockstep, with_slots(scenario("leaves of one row"), n_slots))
    # With one slot every histogram is built; with two, siblings share them.
    assert lockstep.compared["built histograms"] > 10


@pytest.mark.parametrize(("spare_bytes", "expected"), [(-1, 3), (0, 4), (1, 4)])
def test_a_budget_that_fits_exactly_is_used_up(
    under_test: BackendUnderTest, spare_bytes: int, expected: int
) -> None:
    one = with_slots(scenario("plain"), 4, spare_bytes=spare_bytes)
    outcome = train(under_test.make(), one)
    assert outcome.session.diagnostics()["histogram_slots"] == expected


def test_a_budget_below_one_histogram_still_trains(under_test: BackendUnderTest) -> None:
    outcome = train(under_test.make(), scenario("plain").changed(histogram_budget_mb=1e-9))
    assert outcome.session.diagnostics()["histogram_slots"] == 1
    assert outcome.model.digest() == reference_outcome(under_test, "plain").model.digest()


@pytest.mark.parametrize("n_slots", [1, 2, 3, 4, 7])
def test_random_trees_under_any_budget(under_test: BackendUnderTest, n_slots: int) -> None:
    rng = np.random.default_rng(n_slots)
    base = scenario("plain")
    for _ in range(3):
        rows = rng.integers(0, base.train.n_rows, 90)
        one = Scenario(base.train[rows], {"max_depth": None, "min_samples_leaf": 2})
        expected = train(under_test.make_reference(), one).model.digest()
        assert train(under_test.make(), with_slots(one, n_slots)).model.digest() == expected

"""Whole training runs: whatever a run makes a backend do equals the reference, call by call."""

import hypothesis
import pytest
from support.backends import BackendUnderTest
from support.exact import assert_identical
from support.invariants import check_trees
from support.lockstep import in_lockstep
from support.reference import outcome_of, reference_outcome
from support.runs import DEFAULTS, Scenario, train
from support.scenarios import SCENARIOS, scenario
from support.strategies import scenarios

every_scenario = pytest.mark.parametrize("name", SCENARIOS)


@every_scenario
def test_every_call_of_a_run_equals_the_reference(under_test: BackendUnderTest, name: str) -> None:
    lockstep = in_lockstep(under_test)
    train(lockstep, scenario(name))
    always = {"bins", "extremes", "gradients", "totals", "fixed point", "predictions", "metric"}
    assert lockstep.compared.keys() >= always


@pytest.mark.parametrize("name", [name for name in SCENARIOS if "many rows" not in name])
def test_model_and_history_equal_the_reference(under_test: BackendUnderTest, name: str) -> None:
    # many rows are in the digest matrix, which spares the slowest reference
    found, expected = outcome_of(under_test, name), reference_outcome(under_test, name)
    assert found.model.digest() == expected.model.digest()
    assert_identical(found.history, expected.history)
    for index in range(found.model.n_trees):
        assert_identical(found.model.forest.tree(index), expected.model.forest.tree(index))


@every_scenario
def test_trees_of_a_run_are_sound(under_test: BackendUnderTest, name: str) -> None:
    settings = {**DEFAULTS, **scenario(name).settings}
    model = outcome_of(under_test, name).model
    check_trees(model, settings["min_samples_leaf"], settings["max_depth"])


def test_scenarios_reach_every_kind_of_call(under_test: BackendUnderTest) -> None:
    lockstep = in_lockstep(under_test)
    train(lockstep, scenario("plain"))
    levels = {"built histograms", "subtracted histograms", "splits", "left rows", "row order"}
    assert lockstep.compared.keys() >= levels


@pytest.mark.parametrize("budget", [512.0, 0.01], ids=["many slots", "few slots"])
@pytest.mark.parametrize(
    "name", ["plain", "missing values", "fractional weights", "chain", "logistic", "3 classes"]
)
def test_levels_searched_in_one_pass_equal_those_of_the_reference(
    under_test: BackendUnderTest, name: str, budget: float
) -> None:
    lockstep = in_lockstep(under_test)
    lockstep.in_one_pass = True
    train(lockstep, scenario(name).changed(histogram_budget_mb=budget))
    assert lockstep.compared.keys() >= {"search", "searched histograms"}


@pytest.mark.parametrize("in_one_pass", [False, True], ids=["in steps", "in one pass"])
@hypothesis.given(one=scenarios())
def test_any_small_run_equals_the_reference(
    under_test: BackendUnderTest, in_one_pass: bool, one: Scenario
) -> None:
    lockstep = in_lockstep(under_test)
    lockstep.in_one_pass = in_one_pass
    train(lockstep, one)


@hypothesis.given(one=scenarios())
def test_any_small_run_is_the_model_of_the_reference(
    under_test: BackendUnderTest, one: Scenario
) -> None:
    found, expected = (train(b(), one) for b in (under_test.make, under_test.make_reference))
    assert found.model.digest() == expected.model.digest()
    assert_identical(found.history, expected.history)

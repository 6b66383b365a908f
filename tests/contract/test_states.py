"""The state machine of a session: the table, and the states that a run goes through."""

import itertools
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from support.backends import BackendUnderTest
from support.faults import watch
from support.runs import make_session, training_data
from support.scenarios import scenario

from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.core.errors import StateError
from torchgbdt.core.states import TRANSITIONS, TrainerState

S = TrainerState
PATH = [
    S.CREATED,
    S.VALIDATED,
    S.QUANTIZED,
    S.BACKEND_READY,
    S.ITERATING,
    S.MODEL_FINALIZED,
    S.COMPLETED,
]


def test_one_path_leads_to_a_model_and_every_state_on_it_may_fail() -> None:
    legal = {(state, after) for state, rule in TRANSITIONS.items() for after in rule.follows}
    on_the_way = PATH[:-1]
    assert legal == {*itertools.pairwise(PATH), *((state, S.FAILED) for state in on_the_way)}


def test_a_model_exists_only_at_the_end_and_nothing_after_a_failure() -> None:
    with_model = {state for state, rule in TRANSITIONS.items() if "model" in rule.exists}
    assert with_model == {S.MODEL_FINALIZED, S.COMPLETED}
    assert TRANSITIONS[S.COMPLETED].exists == {"model"}
    assert TRANSITIONS[S.FAILED].exists == frozenset()


@pytest.mark.parametrize("state", S)
def test_a_session_refuses_every_transition_that_is_not_in_the_table(state: TrainerState) -> None:
    for after in set(S) - TRANSITIONS[state].follows:
        session = make_session(OracleBackend(), scenario("plain"))
        session.state = state
        with pytest.raises(StateError, match=after.value):
            session._enter(after, **dict.fromkeys(TRANSITIONS[after].exists, object()))
        assert session.state is state


@pytest.mark.parametrize("state", PATH[1:])
def test_a_session_refuses_a_state_whose_preconditions_are_missing(state: TrainerState) -> None:
    session = make_session(OracleBackend(), scenario("plain"))
    session.state = PATH[PATH.index(state) - 1]
    with pytest.raises(StateError, match="do not exist"):
        session._enter(state)


def test_each_call_comes_in_its_state(under_test: BackendUnderTest) -> None:
    backend = under_test.make()
    session = make_session(backend, scenario("plain"))
    seen: dict[str, set[TrainerState]] = defaultdict(set)

    def note(name: str, call: Callable[[], Any]) -> Any:
        seen[name].add(session.state)
        return call()

    watch(backend, note)
    session.run(training_data(scenario("plain")))
    outside = {
        "bin_features": S.VALIDATED,
        "prepare": S.QUANTIZED,
        "diagnostics": S.ITERATING,
        "release": S.MODEL_FINALIZED,
    }
    expected = {name: {outside.get(name, S.ITERATING)} for name in seen}
    assert dict(seen) == expected and seen.keys() >= outside.keys()


def test_a_session_runs_once(under_test: BackendUnderTest) -> None:
    backend = under_test.make()
    session = make_session(backend, scenario("plain"))
    session.run(training_data(scenario("plain")))
    assert session.state is S.COMPLETED
    with pytest.raises(StateError, match="start a new one"):
        session.run(training_data(scenario("plain")))
    assert session.state is S.COMPLETED

"""The table of states: a straight path, failure from anywhere on it, no way back. Sessions obey."""

import pytest
from support.runs import make_session
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


def test_every_state_has_a_rule() -> None:
    assert set(TRANSITIONS) == set(TrainerState) == {*PATH, S.FAILED}


def test_states_keep_their_public_names() -> None:
    assert [state.value for state in TrainerState] == [state.name.lower() for state in TrainerState]


@pytest.mark.parametrize("position", range(len(PATH) - 1))
def test_each_state_is_followed_by_the_next_or_by_failure(position: int) -> None:
    assert TRANSITIONS[PATH[position]].follows == {PATH[position + 1], S.FAILED}


@pytest.mark.parametrize("state", [S.COMPLETED, S.FAILED])
def test_nothing_follows_the_end(state: TrainerState) -> None:
    assert TRANSITIONS[state].follows == set()


def test_every_state_can_be_reached() -> None:
    reached, waiting = set(), [S.CREATED]
    while waiting:
        state = waiting.pop()
        reached.add(state)
        waiting += TRANSITIONS[state].follows - reached
    assert reached == set(TrainerState)


@pytest.mark.parametrize("state", TrainerState)
def test_a_model_exists_only_once_it_is_made(state: TrainerState) -> None:
    has_model = "model" in TRANSITIONS[state].exists
    assert has_model is (state in (S.MODEL_FINALIZED, S.COMPLETED))


@pytest.mark.parametrize("state", TrainerState)
def test_a_prepared_backend_exists_only_while_it_is_needed(state: TrainerState) -> None:
    needed = (S.BACKEND_READY, S.ITERATING, S.MODEL_FINALIZED)
    assert ("run" in TRANSITIONS[state].exists) is (state in needed)


@pytest.mark.parametrize(
    ("state", "exists"),
    [
        (S.CREATED, set()),
        (S.VALIDATED, {"input"}),
        (S.QUANTIZED, {"data"}),
        (S.BACKEND_READY, {"data", "run"}),
        (S.ITERATING, {"data", "run", "trees"}),
        (S.MODEL_FINALIZED, {"data", "run", "model"}),
        (S.COMPLETED, {"model"}),
        (S.FAILED, set()),
    ],
)
def test_what_exists_in_each_state(state: TrainerState, exists: set[str]) -> None:
    assert TRANSITIONS[state].exists == exists


@pytest.mark.parametrize("state", TrainerState)
def test_a_session_refuses_every_transition_that_is_not_in_the_table(state: TrainerState) -> None:
    for after in set(TrainerState) - TRANSITIONS[state].follows:
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

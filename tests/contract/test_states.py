"""The states that a run goes through; tests/core/test_states.py has the table of them."""

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest
from support.backends import BackendUnderTest
from support.faults import watch
from support.runs import make_session, training_data
from support.scenarios import scenario

from torchgbdt.core.errors import StateError
from torchgbdt.core.states import TrainerState

S = TrainerState


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
        "distinct_values": S.VALIDATED,
        "sort_columns": S.VALIDATED,
        "cut_column": S.VALIDATED,
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

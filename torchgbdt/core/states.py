"""The states of a training session: one table of what exists in each and what may follow."""

from dataclasses import dataclass
from enum import Enum


class TrainerState(Enum):
    """Where a session stands."""

    CREATED = "created"
    VALIDATED = "validated"
    QUANTIZED = "quantized"
    BACKEND_READY = "backend_ready"
    ITERATING = "iterating"
    MODEL_FINALIZED = "model_finalized"
    COMPLETED = "completed"
    FAILED = "failed"


@dataclass(frozen=True)
class StateRule:
    """What exists in a state, and which states may follow.

    Attributes
    ----------
    exists : resources that are present; all others are absent. "input": checked user data;
        "data": binned data; "run": a prepared backend; "trees": finished trees; "model".
    """

    exists: frozenset[str]
    follows: frozenset[TrainerState]


S = TrainerState


def _rule(exists: str, *follows: TrainerState) -> StateRule:
    return StateRule(frozenset(exists.split()), frozenset(follows))


TRANSITIONS: dict[TrainerState, StateRule] = {
    S.CREATED: _rule("", S.VALIDATED, S.FAILED),
    S.VALIDATED: _rule("input", S.QUANTIZED, S.FAILED),
    S.QUANTIZED: _rule("data", S.BACKEND_READY, S.FAILED),
    S.BACKEND_READY: _rule("data run", S.ITERATING, S.FAILED),
    S.ITERATING: _rule("data run trees", S.MODEL_FINALIZED, S.FAILED),
    S.MODEL_FINALIZED: _rule("data run model", S.COMPLETED, S.FAILED),
    S.COMPLETED: _rule("model"),
    S.FAILED: _rule(""),
}

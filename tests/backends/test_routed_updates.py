"""Predictions of training rows, updated from where routing left the rows, in whole runs."""

from typing import Any

import pytest
from support.lockstep import LockstepBackend
from support.runs import train
from support.scenarios import scenario

from torchgbdt import _native
from torchgbdt.backends import native
from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.backends.stored_rows import LARGE_DATA, Grouping


@pytest.mark.parametrize(
    "grouping", [LARGE_DATA, Grouping(trees=1, min_bytes=0)], ids=["as given", "grouped"]
)
@pytest.mark.parametrize(
    ("name", "answers"),
    [
        ("plain", {True}),
        ("missing values", {True}),
        ("logistic", {True}),
        ("3 classes", {True, False}),  # rows lie where the last tree of the round left them
    ],
)
def test_predictions_of_routed_rows_equal_the_reference(
    monkeypatch: pytest.MonkeyPatch, name: str, answers: set[bool], grouping: Grouping
) -> None:
    update_routed = _native.update_routed
    given: list[bool] = []

    def remember(*arguments: Any) -> bool:
        given.append(update_routed(*arguments))
        return given[-1]

    monkeypatch.setattr(native, "_FEW_NODES", 0)
    monkeypatch.setattr(_native, "update_routed", remember)
    train(LockstepBackend(OracleBackend(), native.NativeBackend(2, grouping)), scenario(name))
    assert set(given) == answers

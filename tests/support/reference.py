"""Outcomes of the scenarios on a backend and on its reference, computed once per process."""

from collections.abc import Callable
from functools import cache

from support.backends import BackendUnderTest
from support.runs import Outcome, train
from support.scenarios import scenario

from torchgbdt.core.backend import ComputeBackend


def reference_outcome(under_test: BackendUnderTest, name: str) -> Outcome:
    return _outcome(under_test.make_reference, name)


def outcome_of(under_test: BackendUnderTest, name: str) -> Outcome:
    """For tests that only look at it, and need no backend of their own."""
    return _outcome(under_test.make, name)


@cache
def _outcome(make_backend: Callable[[], ComputeBackend], name: str) -> Outcome:
    return train(make_backend(), scenario(name))

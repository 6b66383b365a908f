"""Outcomes of the scenarios on a backend's reference, computed once per process."""

from functools import cache

from support.backends import BackendUnderTest
from support.runs import Outcome, train
from support.scenarios import scenario

from torchgbdt.core.backend import ComputeBackend


def reference_outcome(under_test: BackendUnderTest, name: str) -> Outcome:
    return _outcome(under_test.make_reference, name)


@cache
def _outcome(make_backend: type[ComputeBackend], name: str) -> Outcome:
    return train(make_backend(), scenario(name))

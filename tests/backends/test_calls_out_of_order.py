"""Calls that the core never makes: refused by every backend that trains, never computed with."""

from collections.abc import Callable

import numpy as np
import pytest
from support.backends import BACKENDS, BackendUnderTest
from support.runs import prepare

from torchgbdt.core.backend import ComputeBackend
from torchgbdt.core.errors import BackendError, StateError

BINS = np.array([[0], [1], [0], [1]], np.uint8)
SCALES = np.zeros((1, 2), np.int64)
ONE = np.ones((4, 1), np.float32)

THOSE_THAT_TRAIN = [one for one in BACKENDS if one.name != "oracle"]  # it is read, not guarded
every_backend = pytest.mark.parametrize("one", THOSE_THAT_TRAIN, ids=lambda one: one.id)


def prepared(one: BackendUnderTest) -> ComputeBackend:
    backend = one.make()
    prepare(backend, BINS, [2])
    return backend


@every_backend
def test_nothing_is_rounded_before_there_are_gradients(one: BackendUnderTest) -> None:
    with pytest.raises(StateError, match="compute_gradients first"):
        prepared(one).round_gradients(SCALES)


@every_backend
@pytest.mark.parametrize("scale", [31, 40, 500])
def test_gradients_must_fit_their_scales(one: BackendUnderTest, scale: int) -> None:
    backend = prepared(one)
    backend.load_gradients(ONE, ONE)
    with pytest.raises(BackendError, match="do not fit the scales"):
        backend.round_gradients(np.full((1, 2), scale, np.int64))


@every_backend
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_gradients_that_are_not_finite_are_not_rounded(one: BackendUnderTest, value: float) -> None:
    backend = prepared(one)
    backend.load_gradients(ONE * np.float32(value), ONE)
    with pytest.raises(BackendError, match="finite"):
        backend.round_gradients(SCALES)


@every_backend
@pytest.mark.parametrize(
    "spoil", [lambda a: a[:3], lambda a: np.repeat(a, 2, axis=1), lambda a: a[:, 0]]
)
def test_gradients_of_other_shapes_are_refused(
    one: BackendUnderTest, spoil: Callable[[np.ndarray], np.ndarray]
) -> None:
    for given in ((spoil(ONE), ONE), (ONE, spoil(ONE))):
        with pytest.raises((BackendError, ValueError, TypeError)):
            prepared(one).load_gradients(*given)

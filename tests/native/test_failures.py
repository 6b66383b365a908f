"""After an error, whatever it was, a native backend can be prepared and used again."""

import numpy as np
import pytest
from support.runs import integer_thresholds, prepare, run_rows, run_settings, train
from support.scenarios import scenario

from torchgbdt.backends.native import NativeBackend
from torchgbdt.core.errors import BackendError, StateError
from torchgbdt.core.metrics import MeanAbsoluteError

BINS = np.array([[0], [1], [2], [3]], np.uint8)


@pytest.fixture
def backend() -> NativeBackend:
    return NativeBackend(2)


def test_release_may_come_at_any_time_and_twice(backend: NativeBackend) -> None:
    backend.release()
    prepare(backend, BINS, [4])
    backend.release()
    backend.release()
    with pytest.raises(StateError, match="prepare"):
        backend.compute_gradients(0)


def test_bins_beyond_the_missing_code_are_refused(backend: NativeBackend) -> None:
    settings = run_settings(integer_thresholds([2]))
    with pytest.raises(ValueError, match="missing code"):
        backend.prepare(run_rows(BINS), [], settings)
    with pytest.raises(StateError, match="prepare"):
        backend.sample_rows(0)
    train(backend, scenario("plain"))


def test_gradients_must_be_there_and_finite_before_they_are_rounded(
    backend: NativeBackend,
) -> None:
    prepare(backend, BINS, [4])
    scales = np.zeros((1, 2), np.int64)
    with pytest.raises(StateError, match="no gradients"):
        backend.round_gradients(scales)
    for bad in (np.nan, np.inf):
        ones = np.ones((4, 1), np.float32)
        assert not backend.load_gradients(ones * np.float32(bad), ones).finite
        with pytest.raises(BackendError, match="finite"):
            backend.round_gradients(scales)


@pytest.mark.parametrize(("g", "h", "scale"), [(1.0, 1.0, 31), (1.0, 2.0, 29), (1.0, -1.0, 0)])
def test_scales_must_fit_the_gradients(
    backend: NativeBackend, g: float, h: float, scale: int
) -> None:
    prepare(backend, BINS, [4])
    backend.load_gradients(np.full((4, 1), g, np.float32), np.full((4, 1), h, np.float32))
    with pytest.raises(BackendError):
        backend.round_gradients(np.full((1, 2), scale, np.int64))


def test_constant_hessians_must_be_ones(backend: NativeBackend) -> None:
    prepare(backend, BINS, [4], constant=True)
    ones = np.ones((4, 1), np.float32)
    backend.load_gradients(ones, ones)
    with pytest.raises(BackendError, match="Hessians of 1"):
        backend.load_gradients(ones, 2 * ones)


def test_losses_are_summed_only_if_finite_and_at_a_scale_that_fits(
    backend: NativeBackend,
) -> None:
    labels = np.array([1, 2, 3, 4], np.float32)
    settings = run_settings(integer_thresholds([4]))
    backend.prepare(run_rows(BINS, labels), [], settings)
    with pytest.raises(StateError, match="compute_losses"):
        backend.sum_losses(0)
    assert backend.compute_losses(MeanAbsoluteError(), 0) == (4.0, True)
    assert backend.sum_losses(1) == 20
    with pytest.raises(BackendError, match="int64"):
        backend.sum_losses(60)


def test_failed_run_leaves_the_backend_usable(backend: NativeBackend) -> None:
    expected = train(NativeBackend(1), scenario("plain")).model.digest()

    class Failing:
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    with pytest.raises(BaseException):  # noqa: B017 - whatever it is
        train(backend, scenario("plain"), observers=[Failing()])
    assert train(backend, scenario("plain")).model.digest() == expected

"""Kernels that do not compile, threads that share them, runs that are broken off in a kernel."""

import gc
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch
from backends.test_mps_faults import DEVICE, healthy, make_backend, some_calls
from backends.test_mps_faults import small as small_with
from metal.emulator.device import EmulatedDevice
from metal.faulty_device import Dispatch, FaultyDevice
from metal.shipped_variants import shipped_files
from support.backends import emulated_library
from support.runs import make_session, train, training_data
from support.small_run import assert_given_up, small

from torchgbdt.backends.metal_library import MetalLibrary
from torchgbdt.backends.mps import MPSBackend
from torchgbdt.core.errors import BackendError
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.states import TrainerState

# ------------------------------------------------------------------------------------ compilation

OF_TRAINING = sorted(set(shipped_files()) - {"conformance_probe", "predict"})
OBJECTIVE_OF = {"compute_softmax_terms": "softmax"}


class Rounds:
    """Counts rounds that ended."""

    def __init__(self) -> None:
        self.ended = 0

    def on_round_end(self, context: Any) -> None:
        self.ended += 1

    def __getattr__(self, name: str) -> Callable[[Any], None]:
        return lambda context: None


class Broken:
    """Compiles everything but one file: the error is raised, or its kernels are not there."""

    def __init__(self, file: str, error: Exception | None) -> None:
        self._error = error
        self._function = {"route_rows": "route_count"}.get(file, file)

    def compile_shader(self, source: str) -> Any:
        if f"kernel void {self._function}(" not in source:
            return EmulatedDevice().compile_shader(source)
        if self._error is not None:
            raise self._error
        return EmulatedDevice().compile_shader(f"kernel void another_{self._function}() {{}}")


@pytest.mark.parametrize(
    "error",
    [SyntaxError("program_source:3:1: error: nonsense"), RuntimeError("no pipeline"), None],
    ids=["SyntaxError", "RuntimeError", "no such function"],
)
@pytest.mark.parametrize("file", OF_TRAINING)
def test_a_kernel_that_does_not_compile_ends_the_first_round(
    file: str, error: Exception | None
) -> None:
    one = small(OBJECTIVE_OF.get(file, "squared_error"))
    backend, rounds = MPSBackend(MetalLibrary(Broken(file, error).compile_shader), "cpu"), Rounds()
    session = make_session(backend, one, [rounds])
    with pytest.raises(BackendError, match="does not compile here") as caught:
        session.run(training_data(one))
    assert (str(error) if error else "Failed to create function state object") in str(caught.value)
    assert "backend='cpu' trains the same model" in str(caught.value)
    assert rounds.ended == 0
    assert_given_up(session, backend)


def test_a_kernel_of_prediction_that_does_not_compile() -> None:
    library = MetalLibrary(Broken("predict", SyntaxError("nonsense")).compile_shader)
    model = train(MPSBackend(library, "cpu"), small()).model
    sums = np.zeros((40, 1), np.float32)
    with pytest.raises(BackendError, match="'predict' does not compile here: nonsense"):
        MPSBackend(library, "cpu").predict(model.forest, HostMatrix(small().train.X), sums)
    assert not sums.any()


# ---------------------------------------------------------------------------------------- threads


class Crowded:
    """Counts texts that are compiled, and calls into the library while another is in progress."""

    def __init__(self) -> None:
        self.compiled: Counter[str] = Counter()
        self.n_calls = 0
        self.inside = 0
        self.overlaps = 0

    def compile_shader(self, source: str) -> Any:
        self.compiled[source] += 1
        library = self._alone(EmulatedDevice().compile_shader)(source)
        crowd = self

        class Library:
            def __getattr__(self, name: str) -> Any:
                return crowd._alone(getattr(library, name))

        return Library()

    def _alone(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def guarded(*args: Any, **kwargs: Any) -> Any:
            self.inside += 1
            self.n_calls += 1
            self.overlaps += self.inside > 1
            time.sleep(1e-4)  # others may come
            try:
                return call(*args, **kwargs)
            finally:
                self.inside -= 1

        return guarded


def test_threads_train_on_one_library() -> None:
    crowd = Crowded()
    library = MetalLibrary(crowd.compile_shader)
    objectives = ["squared_error", "logistic", "squared_error", "softmax"]
    expected = [train(MPSBackend(emulated_library(), "cpu"), small(o)).model for o in objectives]
    start = threading.Barrier(len(objectives))

    def work(objective: str) -> str:
        start.wait()
        return train(MPSBackend(library, "cpu"), small(objective)).model.digest()

    with ThreadPoolExecutor(len(objectives)) as threads:
        digests = list(threads.map(work, objectives))
    assert digests == [model.digest() for model in expected]
    assert crowd.n_calls > 100 and crowd.overlaps == 0
    assert set(crowd.compiled.values()) == {1}


def test_runs_on_one_library_take_turns_of_their_own() -> None:
    """Two runs by turns, call by call."""
    library = emulated_library()
    first, second = MPSBackend(library, "cpu"), MPSBackend(library, "cpu")
    expected = train(first, small()).model.digest()
    alone = train(MPSBackend(library, "cpu"), small()).session.diagnostics()["launches"]

    class TrainsAnother(Rounds):
        def on_round_end(self, context: Any) -> None:
            super().on_round_end(context)
            assert train(second, small()).model.digest() == expected

    rounds = TrainsAnother()
    outcome = train(first, small(), [rounds])
    assert outcome.model.digest() == expected and rounds.ended == 2
    assert outcome.session.diagnostics()["launches"] == alone


# ------------------------------------------------------------------------------------ broken off


@pytest.mark.parametrize("kind", [KeyboardInterrupt, RuntimeError, MemoryError])
def test_a_run_that_is_broken_off_in_any_kernel_holds_nothing(
    kind: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, calls = healthy("logistic")
    one, seen = small_with("logistic"), []
    dispatch = FaultyDevice.dispatch

    def remember(self: FaultyDevice, name: str, run: Dispatch, tensors: list[torch.Tensor]) -> None:
        seen.extend(weakref.ref(tensor) for tensor in tensors)
        dispatch(self, name, run, tensors)

    monkeypatch.setattr(FaultyDevice, "dispatch", remember)
    alive = []
    for place in some_calls(calls):

        def break_off(device: FaultyDevice, run: Dispatch, tensors: list[torch.Tensor]) -> None:
            raise kind("planted")

        backend = make_backend()
        DEVICE.restart({place: break_off})
        session = make_session(backend, one)
        expected = kind if kind is KeyboardInterrupt else BackendError
        with pytest.raises(expected, match="planted") as caught:
            session.run(training_data(one))
        caught.value.__traceback__ = None
        del caught
        assert session.state is TrainerState.FAILED
        alive.append((backend, session))
    DEVICE.restart({})
    gc.collect()
    assert len(seen) > 1000
    assert [one() for one in seen if one() is not None] == []
    for backend, _ in alive[:: len(alive) // 3]:
        assert train(backend, one).model.digest() == model.digest()

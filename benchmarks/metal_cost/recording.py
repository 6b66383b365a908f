"""What each dispatch of an emulated run does: counters of the emulator, tree by tree."""

import sys
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from machine import ROOT
from synthetic import Float32Array

from torchgbdt.backends.metal_library import MetalLibrary
from torchgbdt.backends.metal_run import MetalTuning
from torchgbdt.backends.mps import MPSBackend
from torchgbdt.core.backend import ComputeBackend
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.model import Model
from torchgbdt.core.run_data import RawData, TrainingData
from torchgbdt.core.settings import TrainerSettings
from torchgbdt.core.trainer import TrainingSession

COUNTERS = (
    *("groups", "barriers", "device_bytes_read", "device_bytes_written", "device_atomics"),
    *("threadgroup_atomics", "threadgroup_updates", "returning_threadgroup_atomics"),
)


class CountingDevice(Protocol):
    """As tests/metal/emulator/device.py has it."""

    def compile_shader(self, source: str) -> Any: ...
    def counters(self) -> dict[str, int]: ...
    def traffic(self) -> list[dict[str, tuple[int, int]]]: ...


@dataclass(frozen=True)
class Dispatch:
    """One call of a kernel.

    Attributes
    ----------
    counters : by name; those of COUNTERS, and ``group_lines i`` and ``dispatch_lines i``: lines of
        128 bytes that were read, plus those that were written, of argument i.
    """

    kernel: str
    counters: dict[str, int]


@dataclass(frozen=True)
class RecordedTree:
    """What growing one tree took.

    Attributes
    ----------
    synchronizations, bytes_to_host, uploads : of the host.
    """

    dispatches: list[Dispatch]
    synchronizations: int
    bytes_to_host: int
    uploads: int


class Recorder:
    """Stands between a backend and an emulated device.

    Attributes
    ----------
    dispatches : all so far.
    """

    def __init__(self, device: CountingDevice) -> None:
        self.dispatches: list[Dispatch] = []
        self._device = device
        self._before = self._now()

    def compile_shader(self, source: str) -> Any:
        """As the device's."""
        return _RecordedLibrary(self._device.compile_shader(source), self)

    def call(self, name: str, kernel: Any, *args: Any, **kwargs: Any) -> None:
        """Run a kernel and note what the counters say of it."""
        kernel(*args, **kwargs)
        now = self._now()
        counted = {key: now[key] - self._before[key] for key in now}
        self._before = now
        self.dispatches.append(Dispatch(name, counted))

    def _now(self) -> dict[str, int]:
        counters = self._device.counters()
        result = {name: counters[name] for name in COUNTERS}
        for i, argument in enumerate(self._device.traffic()):
            for kind in ("group_lines", "dispatch_lines"):
                result[f"{kind} {i}"] = sum(argument[kind])
        return result


class _RecordedLibrary:
    def __init__(self, library: Any, recorder: Recorder) -> None:
        self._library = library
        self._recorder = recorder

    def __getattr__(self, name: str) -> Any:
        return partial(self._recorder.call, name, getattr(self._library, name))


def emulated_device() -> CountingDevice:
    """The emulator of the tests, counting."""
    tests = str(ROOT / "tests")
    if tests not in sys.path:
        sys.path.append(tests)
    module = import_module("metal.emulator.device")
    device: CountingDevice = module.EmulatedDevice(
        module.EmulatorOptions(counting=True, max_seconds=1_000.0)
    )
    return device


def train(
    backend: ComputeBackend, settings: TrainerSettings, X: Float32Array, y: Float32Array
) -> Model:
    """Train on a backend, without torch's part in it."""
    data = TrainingData(RawData(HostMatrix(X), y), [], None, [], None)
    return TrainingSession(settings, backend).run(data)


def record(
    settings: TrainerSettings, X: Float32Array, y: Float32Array, tuning: MetalTuning
) -> tuple[list[RecordedTree], Model]:
    """Train on the emulator; all trees but the last, whose end nothing marks.

    Returns
    -------
    The trees and the model.
    """
    recorder = Recorder(emulated_device())
    marks: list[tuple[int, np.ndarray]] = []

    class Marked(MPSBackend):
        def compute_gradients(self, output: int) -> Any:
            moved = self.transfers
            counts = (moved.synchronizations, moved.bytes_to_host, moved.uploads)
            marks.append((len(recorder.dispatches), np.array(counts)))
            return super().compute_gradients(output)

    backend = Marked(MetalLibrary(recorder.compile_shader), "cpu", tuning=tuning)
    model = train(backend, settings, X, y)
    trees = []
    for (begin, before), (end, after) in pairwise(marks):
        moved = [int(count) for count in after - before]
        trees.append(RecordedTree(recorder.dispatches[begin:end], *moved))
    return trees, model

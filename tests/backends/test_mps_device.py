"""Asking torch for an Apple GPU: a torch that says it has one, and the emulator in its place."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from metal.emulator.device import EmulatedDevice
from support.runs import train
from support.small_run import small

from torchgbdt.backends import available, mps_device
from torchgbdt.backends.mps import MPSBackend
from torchgbdt.backends.mps_device import make_mps_backend
from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.backends.registry import make_backend
from torchgbdt.core.errors import BackendError, BackendUnavailableError, DeviceMemoryError

GIB = 1 << 30


class Probes:
    """Counts compilations of the probe; ``change`` is done to its text."""

    def __init__(self) -> None:
        self.count = 0
        self.change: Callable[[str], str] = lambda source: source

    def compile_shader(self, source: str) -> Any:
        if "kernel void conformance_probe" in source:
            self.count += 1
            source = self.change(source)
        return EmulatedDevice().compile_shader(source)


@pytest.fixture
def probes(monkeypatch: pytest.MonkeyPatch) -> Iterator[Probes]:
    """A torch with an Apple GPU of 8 GiB, of which tensors have 1."""
    found = Probes()
    monkeypatch.delenv("PYTORCH_MPS_FAST_MATH", raising=False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(torch.mps, "compile_shader", found.compile_shader)
    monkeypatch.setattr(torch.mps, "recommended_max_memory", lambda: 8 * GIB)
    monkeypatch.setattr(torch.mps, "current_allocated_memory", lambda: GIB)
    monkeypatch.setattr(torch._C, "_mps_maxBufferLength", lambda: 2 * GIB, raising=False)
    mps_device._probed_library.cache_clear()
    yield found
    mps_device._probed_library.cache_clear()


@pytest.fixture
def on_the_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors of device "mps" lie on the host."""

    def make(library: Any, device: str, memory: Any) -> MPSBackend:
        assert device == "mps"
        return MPSBackend(library, "cpu", memory)

    check = mps_device.check_conformance
    cpu = torch.device("cpu")
    monkeypatch.setattr(mps_device, "check_conformance", lambda library, _: check(library, cpu))
    monkeypatch.setattr(mps_device, "MPSBackend", make)


def test_it_trains(probes: Probes) -> None:
    expected = train(OracleBackend(), small()).model.digest()
    assert train(make_mps_backend("cpu"), small()).model.digest() == expected


def test_the_device_is_probed_once(probes: Probes) -> None:
    for _ in range(3):
        make_mps_backend("cpu")
    assert probes.count == 1


def test_a_device_that_computes_other_bits_is_refused_each_time(probes: Probes) -> None:
    probes.change = lambda source: source.replace("add_float(x / y)", "add_float(x * (1.0f / y))")
    for _ in range(2):
        with pytest.raises(
            BackendUnavailableError, match=r"cpu computes float division other.*cpu"
        ):
            make_mps_backend("cpu")


@pytest.mark.parametrize("value", ["1", "2", "yes", ""])
def test_fast_math_is_refused(probes: Probes, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTORCH_MPS_FAST_MATH", value)
    with pytest.raises(BackendError, match=r"PYTORCH_MPS_FAST_MATH is set.*Unset it"):
        make_mps_backend("cpu")
    assert probes.count == 0
    monkeypatch.setenv("PYTORCH_MPS_FAST_MATH", "0")
    make_mps_backend("cpu")


def test_memory_is_what_torch_says(probes: Probes, monkeypatch: pytest.MonkeyPatch) -> None:
    train(make_mps_backend("cpu"), small())
    monkeypatch.setattr(torch.mps, "current_allocated_memory", lambda: 8 * GIB)
    with pytest.raises(DeviceMemoryError, match="where 0 MiB are free"):
        train(make_mps_backend("cpu"), small())
    monkeypatch.setattr(torch.mps, "current_allocated_memory", lambda: 0)
    monkeypatch.setattr(torch._C, "_mps_maxBufferLength", lambda: 10)
    with pytest.raises(DeviceMemoryError, match="in one piece"):
        train(make_mps_backend("cpu"), small())


@pytest.mark.parametrize(
    ("system", "is_built", "reason"),
    [
        ("Linux", False, "found on macOS, and this is Linux"),
        ("Darwin", False, "built without MPS; install the one for Apple silicon"),
        ("Darwin", True, "needs Apple silicon and macOS 14"),
    ],
)
def test_why_there_is_none(
    probes: Probes, system: str, is_built: bool, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_built", lambda: is_built)
    monkeypatch.setattr("platform.system", lambda: system)
    for make in (lambda: make_mps_backend(), lambda: make_backend("auto", "mps", 1)):
        with pytest.raises(BackendUnavailableError, match=f"{reason}.*backend='torch' or 'cpu'"):
            make()
    assert reason in str(available()["mps"])
    assert probes.count == 0


# ------------------------------------------------------------------------------------ the registry


@pytest.mark.usefixtures("on_the_host")
@pytest.mark.parametrize("name", ["auto", "mps"])
def test_tensors_of_the_gpu_train_there(probes: Probes, name: str) -> None:
    assert make_backend(name, "mps", 1).name == "mps"
    assert available()["mps"] is None


@pytest.mark.usefixtures("on_the_host")
@pytest.mark.parametrize("name", ["auto", "mps"])
def test_nothing_else_steps_in(probes: Probes, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTORCH_MPS_FAST_MATH", "1")
    with pytest.raises(BackendError, match="FAST_MATH"):
        make_backend(name, "mps", 1)
    monkeypatch.delenv("PYTORCH_MPS_FAST_MATH")
    probes.change = lambda source: source.replace("add_float(x / y)", "add_float(y / x)")
    with pytest.raises(BackendUnavailableError, match="float division"):
        make_backend(name, "mps", 1)
    assert "float division" in str(available()["mps"])
    probes.change = lambda source: source + "nonsense"
    with pytest.raises(BackendError, match="does not compile here"):
        make_backend(name, "mps", 1)

"""The registry: which backends there are, and which one a run gets."""

import platform
import subprocess
import sys

import pytest
import torch
from support.second_device import SECOND_DEVICE, start_second_device

from torchgbdt.backends import available, mps_device
from torchgbdt.backends.registry import make_backend
from torchgbdt.core.errors import BackendError, BackendUnavailableError, InvalidParameterError


@pytest.fixture
def broken_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    """``from torchgbdt import _native`` fails, as after a broken installation."""
    monkeypatch.delitem(sys.modules, "torchgbdt.backends.native", raising=False)
    monkeypatch.delattr("torchgbdt.backends.native", raising=False)
    monkeypatch.setitem(sys.modules, "torchgbdt._native", None)
    monkeypatch.delattr("torchgbdt._native", raising=False)


@pytest.fixture
def no_apple_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)


@pytest.mark.usefixtures("no_apple_gpu")
def test_available_names_every_backend_and_why_some_cannot_run() -> None:
    found = available()
    assert list(found) == ["oracle", "cpu", "torch", "mps"]
    assert found["oracle"] is None
    assert found["cpu"] is None
    assert found["torch"] is None
    assert found["mps"] is None or "backend 'mps' cannot run here" in found["mps"]


@pytest.mark.parametrize("device", ["cpu", "cpu:0"])
def test_auto_on_the_host_is_the_native_backend_never_the_oracle(device: str) -> None:
    assert make_backend("auto", device, 2).name == "cpu"


@pytest.mark.parametrize("device", ["cuda:9", "xpu"])
def test_auto_elsewhere_says_what_to_do(device: str) -> None:
    with pytest.raises(BackendUnavailableError, match=rf"{device}.*\.cpu\(\).*device='cpu'"):
        make_backend("auto", device, 2)


@pytest.mark.usefixtures("no_apple_gpu")
@pytest.mark.parametrize("backend", ["auto", "mps"])
@pytest.mark.parametrize(
    ("system", "built", "reason"),
    [
        ("Linux", True, "found on macOS, and this is Linux"),
        ("Darwin", False, "built without MPS"),
        ("Darwin", True, "needs Apple silicon and macOS 14"),
    ],
)
def test_mps_where_it_is_missing_says_why_and_what_to_do(
    backend: str, system: str, built: bool, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "system", lambda: system)
    monkeypatch.setattr(torch.backends.mps, "is_built", lambda: built)
    with pytest.raises(BackendUnavailableError, match=f"{reason}.*backend='torch' or 'cpu'"):
        make_backend(backend, "mps:0", 2)


@pytest.mark.parametrize(("setting", "reason"), [("0", "no kernels"), ("1", "rounds? otherwise")])
def test_kernels_that_round_otherwise_are_refused(
    setting: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An Apple GPU is feigned: what asks it for kernels shows that it came so far."""

    def no_kernels(device: str) -> None:
        raise BackendUnavailableError("no kernels")

    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    monkeypatch.setattr(mps_device, "_largest_buffer", lambda: 1)
    monkeypatch.setattr(mps_device, "_probed_library", no_kernels)
    monkeypatch.setenv("PYTORCH_MPS_FAST_MATH", setting)
    with pytest.raises((BackendError, BackendUnavailableError), match=reason):
        make_backend("mps", "mps", 1)


def test_auto_on_another_device_is_the_torch_backend() -> None:
    start_second_device()
    backend = make_backend("auto", "lazy", 2)
    assert backend.name == "torch"
    assert backend.diagnostics()["device"] == SECOND_DEVICE


@pytest.mark.parametrize("name", ["oracle", "cpu"])
def test_backend_by_name(name: str) -> None:
    assert make_backend(name, "cpu", 3).name == name
    with pytest.raises(InvalidParameterError, match="cuda:0"):
        make_backend(name, "cuda:0", 3)


@pytest.mark.parametrize("device", ["cpu", "cuda:0"])
def test_mps_runs_on_apple_gpus_alone(device: str) -> None:
    with pytest.raises(InvalidParameterError, match=rf"runs on device 'mps'; found.*{device}"):
        make_backend("mps", device, 1)


@pytest.mark.parametrize("device", ["cpu", "cpu:0", "auto"])
def test_torch_runs_on_the_device_that_is_named(device: str) -> None:
    backend = make_backend("torch", device, 3)
    assert backend.name == "torch"
    assert backend.diagnostics()["device"] == "cpu"


@pytest.mark.parametrize("device", ["cuda:9", "mps", "xpu"])
def test_torch_on_a_device_that_is_not_here_says_what_to_do(device: str) -> None:
    with pytest.raises(BackendUnavailableError, match=rf"{device}.*\.cpu\(\).*device='cpu'"):
        make_backend("torch", device, 1)


@pytest.mark.parametrize(("device", "reason"), [("graphics", "torch device"), ("meta", "numbers")])
def test_torch_on_what_is_no_device(device: str, reason: str) -> None:
    with pytest.raises(InvalidParameterError, match=reason):
        make_backend("torch", device, 1)


def test_backends_are_imported_when_they_are_asked_for() -> None:
    code = "import sys, torchgbdt.backends.registry; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_unknown_backend_lists_the_allowed() -> None:
    with pytest.raises(InvalidParameterError, match=r"'auto', 'oracle', 'cpu'.*found 'gpu'"):
        make_backend("gpu", "cpu", 1)


@pytest.mark.usefixtures("broken_extension")
def test_broken_extension_is_reported_and_the_oracle_still_works() -> None:
    assert "does not load" in str(available()["cpu"])
    for backend in ("cpu", "auto"):
        with pytest.raises(BackendUnavailableError, match="reinstall"):
            make_backend(backend, "cpu", 1)
    assert make_backend("oracle", "cpu", 1).name == "oracle"

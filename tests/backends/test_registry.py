"""The registry: which backends there are, and which one a run gets."""

import sys

import pytest

from torchgbdt.backends import available
from torchgbdt.backends.registry import make_backend
from torchgbdt.core.errors import BackendUnavailableError, InvalidParameterError


@pytest.fixture
def broken_extension(monkeypatch: pytest.MonkeyPatch) -> None:
    """``from torchgbdt import _native`` fails, as after a broken installation."""
    monkeypatch.delitem(sys.modules, "torchgbdt.backends.native", raising=False)
    monkeypatch.delattr("torchgbdt.backends.native", raising=False)
    monkeypatch.setitem(sys.modules, "torchgbdt._native", None)
    monkeypatch.delattr("torchgbdt._native", raising=False)


def test_available_names_every_backend_and_why_some_cannot_run() -> None:
    found = available()
    assert list(found) == ["oracle", "cpu", "torch", "mps"]
    assert found["oracle"] is None
    assert found["cpu"] is None
    assert "not built yet" in str(found["torch"])
    assert "not built yet" in str(found["mps"])


@pytest.mark.parametrize("device", ["cpu", "cpu:0"])
def test_auto_on_the_host_is_the_native_backend_never_the_oracle(device: str) -> None:
    assert make_backend("auto", device, 2).name == "cpu"


@pytest.mark.parametrize("device", ["cuda:0", "mps", "xpu"])
def test_auto_elsewhere_says_what_to_do(device: str) -> None:
    with pytest.raises(BackendUnavailableError, match=rf"{device}.*\.cpu\(\).*device='cpu'"):
        make_backend("auto", device, 2)


@pytest.mark.parametrize("name", ["oracle", "cpu"])
def test_backend_by_name(name: str) -> None:
    assert make_backend(name, "cpu", 3).name == name
    with pytest.raises(InvalidParameterError, match="cuda:0"):
        make_backend(name, "cuda:0", 3)


@pytest.mark.parametrize("name", ["torch", "mps"])
def test_planned_backend_is_unavailable(name: str) -> None:
    with pytest.raises(BackendUnavailableError, match=f"{name}.*not built yet"):
        make_backend(name, "cpu", 1)


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

"""A device that computes other bits than the host is found before anything is trained on it."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch

from torchgbdt.backends import torch_data
from torchgbdt.backends.metal_library import MetalLibrary
from torchgbdt.backends.mps import MPSBackend
from torchgbdt.backends.torch_conformance import check_arithmetic
from torchgbdt.backends.torch_operations import TORCH
from torchgbdt.backends.torch_scatter import TorchBackend
from torchgbdt.core.errors import BackendUnavailableError

CPU = torch.device("cpu")


class Inexact(torch.Tensor):
    """Its division, or its multiplication, is off by one ulp."""

    broken: str

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = super().__torch_function__(func, types, args, kwargs or {})
        if func.__name__ in cls.broken.split():
            result = torch.nextafter(result, torch.full_like(result, torch.inf))
        return result


def inexact(operations: str) -> Callable[[torch.Tensor], Any]:
    kind = type("Inexact", (Inexact,), {"broken": operations})
    return lambda tensor: tensor.as_subclass(kind)


def test_the_host_computes_its_own_bits() -> None:
    check_arithmetic(CPU)


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("rounding", {"round_half_even": lambda tensor: torch.floor(tensor + 0.5)}),
        ("bits", {"where": lambda condition, a, b: b}),
    ],
)
def test_an_operation_that_differs_is_named(name: str, changed: dict[str, Any]) -> None:
    with pytest.raises(BackendUnavailableError, match=rf"'cpu' computes other bits.*{name}"):
        check_arithmetic(CPU, replace(TORCH, **changed))


@pytest.mark.parametrize(
    ("name", "operations"),
    [
        ("multiplication", "mul __mul__ __rmul__"),
        ("division", "div __truediv__ true_divide"),
        ("reciprocal", "reciprocal __rdiv__ __rtruediv__"),
    ],
)
def test_arithmetic_that_is_off_by_an_ulp_is_named(
    name: str, operations: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from torchgbdt.backends import torch_conformance

    make, move = inexact(operations), torch_conformance.to_device
    monkeypatch.setattr(torch_conformance, "to_device", lambda x, device: make(move(x, device)))
    check_arithmetic.cache_clear()
    with pytest.raises(BackendUnavailableError, match=name):
        check_arithmetic(CPU)
    check_arithmetic.cache_clear()


def mps_backend() -> MPSBackend:
    """auc and probabilities are torch operations on Apple GPUs, too."""
    return MPSBackend(MetalLibrary(lambda source: None), "cpu")


@pytest.mark.parametrize("make", [lambda: TorchBackend("cpu"), mps_backend], ids=["torch", "mps"])
def test_a_backend_asks_its_device_first(
    make: Callable[[], TorchBackend], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[torch.device] = []
    monkeypatch.setattr(torch_data, "check_arithmetic", asked.append)
    make()
    assert asked == [CPU]

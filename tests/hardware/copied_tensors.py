"""Kernels of a device called with CPU tensors, as the emulator's are: copied there and back.

So the tests of tests/metal, which know the emulator only, run on hardware as they are.
"""

from collections.abc import Callable
from typing import Any

import torch


class CopyingDevice:
    """Stands in for the emulator's device.

    Parameters
    ----------
    compile_shader : ``torch.mps.compile_shader``.
    device : where its kernels find their tensors.
    """

    def __init__(self, compile_shader: Callable[[str], Any], device: str) -> None:
        self._compile_shader = compile_shader
        self._device = device

    def compile_shader(self, source: str) -> "CopyingLibrary":
        return CopyingLibrary(self._compile_shader(source), self._device)


class CopyingLibrary:
    """Its kernels are attributes."""

    def __init__(self, library: Any, device: str) -> None:
        self._library = library
        self._device = device

    def __getattr__(self, name: str) -> Callable[..., None]:
        kernel = getattr(self._library, name)

        def call(*arguments: Any, **options: Any) -> None:
            call_with_copies(kernel, self._device, arguments, options)

        return call


def call_with_copies(
    kernel: Callable[..., None], device: str, arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    """Call with copies of whole storages, so that strides and shared storages stay what they are.

    What the kernel has written is copied back.
    """
    copies: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
    passed = []
    for one in arguments:
        if isinstance(one, torch.Tensor):
            storage = one.untyped_storage()
            if storage.data_ptr() not in copies:
                here = torch.empty(0, dtype=torch.uint8).set_(storage)
                copies[storage.data_ptr()] = here, here.to(device, copy=True)
            there = copies[storage.data_ptr()][1].view(one.dtype)
            passed.append(there.as_strided(one.shape, one.stride(), one.storage_offset()))
        else:
            passed.append(one)
    kernel(*passed, **options)
    for here, there in copies.values():
        here.copy_(there)  # waits for the kernel

"""The Apple GPU of this machine: whether it can run the kernels, and the memory it has.

Only this file asks torch for hardware; ``mps`` is told what it needs to know.
"""

import os
import platform
from functools import cache

import torch

from torchgbdt.backends.conformance import check_conformance
from torchgbdt.backends.metal_library import MetalLibrary
from torchgbdt.backends.mps import DeviceMemory, MPSBackend
from torchgbdt.core.errors import BackendError, BackendUnavailableError

DEVICE = "mps"

_FAST_MATH = "PYTORCH_MPS_FAST_MATH"


def make_mps_backend(device: str = DEVICE) -> MPSBackend:
    """A backend on the Apple GPU.

    Raises
    ------
    BackendUnavailableError : there is none that torch can use, or it computes other bits.
    BackendError : torch was told to compile kernels with fast math.
    """
    if not torch.backends.mps.is_available():
        raise BackendUnavailableError(
            f"backend 'mps' cannot run here: {_why_not()} Pass backend='torch' or 'cpu' with "
            f"tensors elsewhere; they train the same model."
        )
    if os.environ.get(_FAST_MATH, "0") != "0":
        raise BackendError(
            f"the environment variable {_FAST_MATH} is set, so torch compiles kernels that round "
            f"otherwise, and models would differ from those of other devices. Unset it and start "
            f"Python again."
        )
    memory = DeviceMemory(_free_memory, _largest_buffer())
    return MPSBackend(_probed_library(device), device, memory)


@cache
def _probed_library(device: str) -> MetalLibrary:
    """One for all runs, once the device has shown that its bits are those of others."""
    library = MetalLibrary(torch.mps.compile_shader)
    check_conformance(library, torch.device(device))
    return library


def _why_not() -> str:
    """Why torch has no MPS device."""
    if platform.system() != "Darwin":
        return f"Apple GPUs are found on macOS, and this is {platform.system()}."
    if not torch.backends.mps.is_built():
        return "this torch was built without MPS; install the one for Apple silicon."
    return "torch finds no Apple GPU that it can use; it needs Apple silicon and macOS 14 or newer."


def _largest_buffer() -> int:
    """Bytes of the largest tensor that Metal gives memory to; torch has no public name for it."""
    n_bytes: int = getattr(torch._C, "_mps_maxBufferLength")()  # noqa: B009 - not in its stubs
    return n_bytes


def _free_memory() -> int:
    return torch.mps.recommended_max_memory() - torch.mps.current_allocated_memory()

"""Buffers of row kernels as tensors, and the libraries that tests of them run on."""

import numpy as np
import torch
from metal.emulator.device import EmulatedDevice, EmulatorOptions

from torchgbdt.backends.metal_library import MetalLibrary

GROUP = 256
"""Threads of a group in kernels with barriers."""

NONCE = 0x12345678

LIBRARIES = {
    "ascending": EmulatorOptions(),
    "shuffled-1": EmulatorOptions(shuffle_seed=1),
    "shuffled-2-flushed": EmulatorOptions(shuffle_seed=2, flush_subnormals=True),
}
CHECKED = EmulatorOptions(shuffle_seed=3, checked=True)

ROW_COUNTS = (1, 255, 256, 257)


def library_of(options: EmulatorOptions) -> MetalLibrary:
    return MetalLibrary(EmulatedDevice(options).compile_shader)


def tensor(array: np.ndarray) -> torch.Tensor:
    """A contiguous copy."""
    return torch.from_numpy(np.ascontiguousarray(array).copy())


def whole_groups(n_rows: int, at_most: int = 256) -> int:
    """Threads of a grid that is whole groups."""
    return GROUP * min(-(-n_rows // GROUP), at_most)


def two_words(number: int) -> list[int]:
    """A 64-bit number as the host passes it: low word first."""
    return [number & 0xFFFFFFFF, number >> 32]


def strides(x: torch.Tensor) -> list[int]:
    """Row and column stride of X."""
    return [word for step in x.stride() for word in two_words(step)]


def float_of_word(word: int) -> float:
    """The float32 of a word's bits."""
    return float(np.array([word], np.int32).view(np.float32)[0])


def smallest_of_word(word: int) -> float:
    """Turns back smallness_word of csrc/metal/extremes.h."""
    ordered = ~word & 0xFFFFFFFF
    bits = ordered ^ 0x80000000 if ordered & 0x80000000 else ~ordered & 0xFFFFFFFF
    return float(np.array([bits], np.uint32).view(np.float32)[0])


def device_matrix(values: np.ndarray, dtype: str) -> torch.Tensor:
    """Float64 values that the dtype holds exactly, as a tensor of it."""
    if dtype == "bfloat16":
        return tensor(values.astype(np.float32)).to(torch.bfloat16)
    return tensor(values.astype(dtype))

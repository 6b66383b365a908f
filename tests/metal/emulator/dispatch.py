"""One call of a kernel: arguments bound, sizes checked, run, failures raised."""

import ctypes
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .arguments import MAX_BYTES, cast_of, pack
from .build import BuiltLibrary
from .lines import SourceLines
from .token_pass import MAX_BUFFERS, KernelSignature

COUNTERS = (
    *("dispatches", "groups", "threads", "barriers"),
    *("device_bytes_read", "device_bytes_written"),
    *("threadgroup_bytes_read", "threadgroup_bytes_written"),
    *("device_atomics", "threadgroup_atomics", "returning_threadgroup_atomics"),
    "threadgroup_updates",
)

TRAFFIC = ("bytes", "group_lines", "dispatch_lines")
"""Of each argument."""

SIMD_WIDTH = 32

# emu_dispatch of dispatch.h: kernel, buffers, counters, extents, seed, seconds, threads, group,
# shuffle, flush_subnormals, n_extents, checked.
_DISPATCH = struct.Struct(f"=Q{MAX_BUFFERS}QQQQd3I3IIIII")

# emu_extent of dispatch.h: address, size, argument, flags.
_EXTENT = struct.Struct("=QQII")
_MAY_WRITE = 1
_BY_VALUE = 2


_READ_AND_WRITTEN = ctypes.c_ulonglong * 2


class TrafficRecord(ctypes.Structure):
    """emu_traffic of dispatch.h."""

    _fields_ = [(name, _READ_AND_WRITTEN) for name in TRAFFIC]


class CountersRecord(ctypes.Structure):
    """emu_counters of dispatch.h."""

    _fields_ = [
        *((name, ctypes.c_ulonglong) for name in COUNTERS),
        ("arguments", TrafficRecord * MAX_BUFFERS),
    ]


class _Failure(ctypes.Structure):
    """emu_failure of dispatch.h."""

    _fields_ = [
        ("where", ctypes.c_int),
        ("other", ctypes.c_int),
        ("group", ctypes.c_uint * 3),
        ("thread", ctypes.c_uint * 3),
        ("message", ctypes.c_char * 256),
    ]


class _KernelRecord(ctypes.Structure):
    """emu_kernel of runtime.h."""

    _fields_ = [
        ("run", ctypes.c_void_p),
        ("threadgroup_bytes", ctypes.c_uint),
        ("max_threads", ctypes.c_uint),
        ("n_arrays", ctypes.c_uint),
        ("arrays", ctypes.c_void_p),
    ]


@dataclass(frozen=True)
class Modes:
    """How dispatches run; see EmulatorOptions."""

    shuffle_seed: int | None
    flush_subnormals: bool
    checked: bool
    counting: bool
    max_seconds: float


class Launcher:
    """What the kernels of a library share: the runtime, and memory for numbers by value."""

    def __init__(
        self, built: BuiltLibrary, source: str, modes: Modes, counters: CountersRecord
    ) -> None:
        self._lines = SourceLines(source, built.path)
        self._failure = _Failure.in_dll(built.runtime, "emu_last_failure")
        self._run = built.runtime.emu_run
        self._run.argtypes = [ctypes.c_void_p]
        self._run.restype = ctypes.c_int
        self._dispatch = ctypes.create_string_buffer(_DISPATCH.size)
        self._dispatch_address = ctypes.addressof(self._dispatch)
        self._extents = ctypes.create_string_buffer(MAX_BUFFERS * _EXTENT.size)
        self._extents_address = ctypes.addressof(self._extents)
        # A page per argument, and one more: pages align lists for every type.
        self._values = ctypes.create_string_buffer((MAX_BUFFERS + 1) * MAX_BYTES)
        start = ctypes.addressof(self._values)
        self._values_offset = -start % MAX_BYTES
        self._values_address = start + self._values_offset
        self._values_view = memoryview(self._values).cast("B")
        self._counters = counters  # which the runtime writes: it must live on
        self._counters_address = ctypes.addressof(counters)
        self._seconds = modes.max_seconds
        self._seed = modes.shuffle_seed or 0
        self._shuffle = int(modes.shuffle_seed is not None)
        self._flush = int(modes.flush_subnormals)
        self._checked = int(modes.checked)
        self.needs_extents = modes.checked or modes.counting

    def bind_value(self, index: int, data: bytes) -> int:
        """Copy numbers by value; return their address."""
        offset = index * MAX_BYTES
        begin = self._values_offset + offset
        self._values_view[begin : begin + len(data)] = data
        return self._values_address + offset

    def bind_extent(self, place: int, address: int, size: int, index: int, flags: int) -> None:
        """Say how many bytes argument ``index`` binds."""
        _EXTENT.pack_into(self._extents, place * _EXTENT.size, address, size, index, flags)

    def run(
        self,
        name: str,
        kernel: int,
        buffers: list[int],
        n_extents: int,
        threads: list[int],
        group: list[int],
    ) -> None:
        """Run a dispatch to its end; RuntimeError if it fails."""
        addresses = (kernel, *buffers, self._counters_address, self._extents_address)
        modes = (self._shuffle, self._flush, n_extents, self._checked)
        words = (self._seed, self._seconds, *threads, *group, *modes)
        _DISPATCH.pack_into(self._dispatch, 0, *addresses, *words)
        self._seed = (self._seed + 1) % 2**64  # no two dispatches in the same order
        if self._run(self._dispatch_address) != 0:
            raise RuntimeError(self._describe(name))

    def _describe(self, name: str) -> str:
        failure = self._failure
        message = failure.message.decode("ascii", "replace")
        text = (
            f"kernel {name!r}: {message}; in group {tuple(failure.group)}, "
            f"thread {tuple(failure.thread)}{self._lines.describe(failure.where)}"
        )
        if failure.other != 0:
            text += f"; the other access{self._lines.describe(failure.other)}"
        return text


class EmulatedKernel:
    """A kernel of a library, called as torch's are."""

    thread_execution_width = SIMD_WIDTH

    def __init__(
        self, library: ctypes.CDLL, signature: KernelSignature, launcher: Launcher, max_threads: int
    ) -> None:
        symbol = signature.name.replace("::", "__")
        self._record = _KernelRecord.in_dll(library, f"emu_kernel_{symbol}")
        self._address = ctypes.addressof(self._record)
        self._signature = signature
        self._launcher = launcher
        own = self._record.max_threads
        self.max_threads_per_threadgroup = min(own, max_threads) if own else max_threads
        self.static_thread_group_memory_length = self._record.threadgroup_bytes
        self._indices = {one.index for one in signature.buffers}
        self._written = {one.index for one in signature.buffers if one.is_written}
        self._constants = {one.index for one in signature.buffers if one.space == "constant"}

    def __call__(
        self,
        *args: Any,
        threads: int | Sequence[int] | None = None,
        group_size: int | Sequence[int] | None = None,
        arg_casts: str | dict[int, str] | None = None,
        error_buf_idx: int | None = None,
    ) -> None:
        """Run a dispatch to its end; test_emulator_arguments.py shows how arguments are bound.

        Raises
        ------
        RuntimeError : the call makes no sense, or the kernel failed.
        ValueError : the group is larger than the kernel takes.
        """
        if error_buf_idx is not None:
            raise RuntimeError("the emulator has no error buffers: a failure is raised at once")
        launcher = self._launcher
        buffers = [0] * MAX_BUFFERS
        if len(args) > MAX_BUFFERS:
            raise RuntimeError(f"{len(args)} arguments: Metal has {MAX_BUFFERS} buffers")
        grid = None if threads is None else _sizes(threads, "threads")
        for i, value in enumerate(args):
            if isinstance(value, torch.Tensor):
                self._check_tensor(i, value)
                buffers[i] = value.data_ptr()
                if grid is None:
                    grid = [value.numel()]
                if launcher.needs_extents:
                    flags = _MAY_WRITE if i in self._written else 0
                    launcher.bind_extent(i, buffers[i], _extent(value), i, flags)
            else:
                data = pack(value, cast_of(arg_casts, i))
                buffers[i] = launcher.bind_value(i, data)
                if launcher.needs_extents:
                    launcher.bind_extent(i, buffers[i], len(data), i, _BY_VALUE)
        if self._indices != set(range(len(args))):
            raise RuntimeError(self._misfit(len(args)))
        if grid is None or not 1 <= len(grid) <= 3:
            raise RuntimeError("Number of threads is undefined or has wrong dimension")
        group = self._group(grid, group_size)
        if min(grid) < 1 or min(group) < 1:
            raise RuntimeError(f"threads {grid} and group_size {group} must be positive")
        ones = [1] * (3 - len(grid))
        name = self._signature.name
        launcher.run(name, self._address, buffers, len(args), grid + ones, group + ones)

    def _check_tensor(self, index: int, tensor: torch.Tensor) -> None:
        if tensor.device.type != "cpu":
            raise RuntimeError("CPU tensors stand in for MPS tensors")
        if tensor.dtype == torch.float64:
            raise RuntimeError("the MPS framework doesn't support float64")
        if index in self._constants:
            raise RuntimeError(
                f"argument {index} is a tensor: bind tensors as device pointers, since the "
                f"constant address space may want their offset aligned to 256 bytes"
            )

    def _group(self, grid: list[int], group_size: int | Sequence[int] | None) -> list[int]:
        limit = self.max_threads_per_threadgroup
        if group_size is None:
            return [min(grid[0], limit)] if len(grid) == 1 else [limit, 1, 1][: len(grid)]
        group = _sizes(group_size, "group_size")
        if len(group) != len(grid):
            raise RuntimeError("threads and group_size must have the same length")
        total = 1
        for size in group:
            total *= size
        if total > limit:
            raise ValueError(f"Threadgroup size exceeds {limit} limit")
        return group

    def _misfit(self, n_arguments: int) -> str:
        wanted = ", ".join(f"{one.index}: {one.name}" for one in self._signature.buffers)
        return (
            f"kernel {self._signature.name!r} takes buffers {{{wanted}}}; "
            f"{n_arguments} arguments were passed"
        )


def _extent(tensor: torch.Tensor) -> int:
    """Bytes from the first element of a view to the end of its last."""
    if tensor.numel() == 0:
        return 0
    last = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride(), strict=True))
    return (last + 1) * tensor.element_size()


def _sizes(value: int | Sequence[int], name: str) -> list[int]:
    if isinstance(value, int):
        return [value]
    sizes = list(value)
    if not all(isinstance(size, int) for size in sizes):
        raise RuntimeError(f"{name} must be an int or a sequence of ints")
    return sizes

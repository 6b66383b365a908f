"""One call of a kernel: arguments bound, sizes checked, run, failures raised."""

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

import torch

from .arguments import MAX_BYTES, cast_of, pack
from .token_pass import KernelSignature

MAX_BUFFERS = 31
SIMD_WIDTH = 32

# emu_dispatch of dispatch.h: kernel, buffers, counters, seed, threads, group, shuffle, flush.
_DISPATCH = struct.Struct(f"=Q{MAX_BUFFERS}QQQ3I3III")


class CountersRecord(ctypes.Structure):
    """emu_counters of dispatch.h."""

    _fields_ = [
        (name, ctypes.c_ulonglong) for name in ("dispatches", "groups", "threads", "barriers")
    ]


class _Failure(ctypes.Structure):
    """emu_failure of dispatch.h."""

    _fields_ = [
        ("line", ctypes.c_int),
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


class Launcher:
    """What the kernels of a library share: the runtime, and memory for numbers by value."""

    def __init__(
        self,
        runtime: ctypes.CDLL,
        lines: list[str],
        counters: CountersRecord,
        shuffle_seed: int | None,
        flush_subnormals: bool,
    ) -> None:
        self._lines = lines
        self._failure = _Failure.in_dll(runtime, "emu_last_failure")
        self._run = runtime.emu_run
        self._run.argtypes = [ctypes.c_void_p]
        self._run.restype = ctypes.c_int
        self._dispatch = ctypes.create_string_buffer(_DISPATCH.size)
        self._dispatch_address = ctypes.addressof(self._dispatch)
        # One page per argument, and one more: pages keep lists aligned for every type.
        self._values = ctypes.create_string_buffer((MAX_BUFFERS + 1) * MAX_BYTES)
        start = ctypes.addressof(self._values)
        self._values_offset = -start % MAX_BYTES
        self._values_address = start + self._values_offset
        self._values_view = memoryview(self._values).cast("B")
        self._counters = counters  # which the runtime writes: it must live on
        self._counters_address = ctypes.addressof(counters)
        self._seed = shuffle_seed or 0
        self._modes = (int(shuffle_seed is not None), int(flush_subnormals))

    def bind_value(self, index: int, data: bytes) -> int:
        """Copy numbers by value; return their address."""
        offset = index * MAX_BYTES
        begin = self._values_offset + offset
        self._values_view[begin : begin + len(data)] = data
        return self._values_address + offset

    def run(
        self, name: str, kernel: int, buffers: list[int], threads: list[int], group: list[int]
    ) -> None:
        """Run a dispatch to its end; RuntimeError if it fails."""
        words = (kernel, *buffers, self._counters_address, self._seed, *threads, *group)
        _DISPATCH.pack_into(self._dispatch, 0, *words, *self._modes)
        self._seed = (self._seed + 1) % 2**64  # no two dispatches in the same order
        if self._run(self._dispatch_address) != 0:
            raise RuntimeError(self._describe(name))

    def _describe(self, name: str) -> str:
        failure = self._failure
        message = failure.message.decode("ascii", "replace")
        where = f"group {tuple(failure.group)}, thread {tuple(failure.thread)}"
        line = failure.line
        code = ""
        if 0 < line <= len(self._lines):
            code = f", line {line}: {self._lines[line - 1].strip()}"
        return f"kernel {name!r}: {message} ({where}{code})"


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
        self._constants = {one.index for one in signature.buffers if one.space == "constant"}

    def __call__(
        self,
        *args: Any,
        threads: int | Sequence[int] | None = None,
        group_size: int | Sequence[int] | None = None,
        arg_casts: str | dict[int, str] | None = None,
    ) -> None:
        """Run a dispatch to its end; see metal's calling convention in the tests of this file."""
        buffers = [0] * MAX_BUFFERS
        if len(args) > MAX_BUFFERS:
            raise RuntimeError(f"{len(args)} arguments: Metal has {MAX_BUFFERS} buffers")
        grid = None if threads is None else _sizes(threads, "threads")
        for i, value in enumerate(args):
            if isinstance(value, torch.Tensor):
                buffers[i] = self._bind_tensor(i, value)
                if grid is None:
                    grid = [value.numel()]
            else:
                data = pack(value, cast_of(arg_casts, i))
                buffers[i] = self._launcher.bind_value(i, data)
        if self._indices != set(range(len(args))):
            raise RuntimeError(self._misfit(len(args)))
        if grid is None or not 1 <= len(grid) <= 3:
            raise RuntimeError("Number of threads is undefined or has wrong dimension")
        group = self._group(grid, group_size)
        if min(grid) < 1 or min(group) < 1:
            raise RuntimeError(f"threads {grid} and group_size {group} must be positive")
        ones = [1] * (3 - len(grid))
        name = self._signature.name
        self._launcher.run(name, self._address, buffers, grid + ones, group + ones)

    def _bind_tensor(self, index: int, tensor: torch.Tensor) -> int:
        if tensor.device.type != "cpu":
            raise RuntimeError("CPU tensors stand in for MPS tensors")
        if tensor.dtype == torch.float64:
            raise RuntimeError("the MPS framework doesn't support float64")
        if index in self._constants:
            raise RuntimeError(
                f"argument {index} is a tensor: bind tensors as device pointers, since the "
                f"constant address space may want their offset aligned to 256 bytes"
            )
        return tensor.data_ptr()

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


def _sizes(value: int | Sequence[int], name: str) -> list[int]:
    if isinstance(value, int):
        return [value]
    sizes = list(value)
    if not all(isinstance(size, int) for size in sizes):
        raise RuntimeError(f"{name} must be an int or a sequence of ints")
    return sizes

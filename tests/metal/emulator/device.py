"""A Metal device on the CPU, behind the calls of ``torch.mps``.

    device = EmulatedDevice(EmulatorOptions(shuffle_seed=1))
    library = device.compile_shader(text)      # as torch.mps.compile_shader
    library.kernel_name(tensor, 3, threads=256, group_size=256, arg_casts="int32")

CPU tensors stand in for MPS tensors. A dispatch has ended when its call returns; a failure is a
RuntimeError that names the kernel, the group, the thread and the line.

    text --build: preprocessor, token_pass, C++ compiler--> library --dispatch, arguments--> emu_run

    metal_*.h    the shim of Metal's standard library
    entry.h      what surrounds a kernel in the compiled text
    runtime.cpp  groups, threads as fibres, barriers, simdgroups; switch.cpp and faults.cpp help
    checks.cpp   what an instrumented kernel asks about each access; shadow.h and memory.h help

What it cannot do: kernel templates, function constants, half, textures, quadgroups, swizzles, and
sizes of threadgroup arrays by constants of a function (those of the file are known). Stricter than
Metal: all live lanes must call a simd function together. Address spaces are checked elsewhere. The
uninstrumented build works in the tensors themselves, and sees no access out of bounds that does
not fault.
"""

from dataclasses import dataclass

from .build import BuildOptions, BuiltLibrary, build
from .dispatch import COUNTERS, TRAFFIC, CountersRecord, EmulatedKernel, Launcher, Modes


@dataclass(frozen=True)
class EmulatorOptions:
    """What a test chooses.

    Parameters
    ----------
    shuffle_seed : orders groups, and the threads of a group between barriers; None: ascending.
    flush_subnormals : float32 numbers below 2^-126 are 0, as inputs and as results.
    checked : find races, uninitialised threadgroup memory and accesses out of bounds; about a
        million accesses per second.
    counting : count bytes and atomics, too; implied by checked.
    max_total_threads : the largest group a kernel takes, unless it asks for less.
    max_seconds : of processor time; a kernel that takes longer fails.
    standard : of C++, "c++14" or "c++17".
    ucontext : switch fibres the portable way.
    """

    shuffle_seed: int | None = None
    flush_subnormals: bool = False
    checked: bool = False
    counting: bool = False
    max_total_threads: int = 1024
    max_seconds: float = 60.0
    standard: str = "c++14"
    ucontext: bool = False


class EmulatedDevice:
    """Compiles and runs kernels; counts what they do."""

    def __init__(self, options: EmulatorOptions | None = None) -> None:
        self.options = options or EmulatorOptions()
        self._counters = CountersRecord()

    def compile_shader(self, source: str) -> "EmulatedLibrary":
        """As ``torch.mps.compile_shader``; SyntaxError with the compiler's message."""
        options = self.options
        instrumented = options.checked or options.counting
        built = build(source, BuildOptions(instrumented, options.standard, options.ucontext))
        seed, flush = options.shuffle_seed, options.flush_subnormals
        modes = Modes(seed, flush, options.checked, options.counting, options.max_seconds)
        launcher = Launcher(built, source, modes, self._counters)
        return EmulatedLibrary(built, launcher, options.max_total_threads)

    def counters(self) -> dict[str, int]:
        """What has run since the device was made, by the names of ``dispatch.COUNTERS``.

        Without ``counting``, only dispatches, groups, threads, and barriers of all threads.
        """
        return {name: getattr(self._counters, name) for name in COUNTERS}

    def traffic(self) -> list[dict[str, tuple[int, int]]]:
        """What kernels have read and written of each argument, by the names of ``TRAFFIC``.

        Bytes; and lines of 128 bytes, each counted once per threadgroup, or once per dispatch. Only
        with ``counting`` and without ``checked``; atomics excluded.
        """
        return [
            {name: tuple(getattr(argument, name)) for name in TRAFFIC}
            for argument in self._counters.arguments
        ]


class EmulatedLibrary:
    """Kernels as attributes; a missing one is a RuntimeError, as with torch."""

    def __init__(self, built: BuiltLibrary, launcher: Launcher, max_threads: int) -> None:
        self._kernels = {
            signature.name: EmulatedKernel(built.library, signature, launcher, max_threads)
            for signature in built.kernels
        }

    def __getattr__(self, name: str) -> EmulatedKernel:
        kernels = self.__dict__.get("_kernels", {})
        if name not in kernels:
            raise RuntimeError(f"Failed to create function state object for: {name}")
        return kernels[name]

    def __dir__(self) -> list[str]:
        return sorted(self._kernels)

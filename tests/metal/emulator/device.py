"""A Metal device on the CPU, behind the calls of ``torch.mps``.

    device = EmulatedDevice(EmulatorOptions(shuffle_seed=1))
    library = device.compile_shader(text)      # as torch.mps.compile_shader
    library.kernel_name(tensor, 3, threads=256, group_size=256, arg_casts="int32")

CPU tensors stand in for MPS tensors. A dispatch has ended when its call returns.
"""

from dataclasses import dataclass

from .build import BuildOptions, BuiltLibrary, build
from .dispatch import CountersRecord, EmulatedKernel, Launcher


@dataclass(frozen=True)
class EmulatorOptions:
    """What a test chooses.

    Parameters
    ----------
    shuffle_seed : orders groups, and the threads of a group between barriers; None: ascending.
    flush_subnormals : float32 numbers below 2^-126 are 0, as inputs and as results.
    checked : find races, uninitialised threadgroup memory and accesses out of bounds; slow.
    max_total_threads : the largest group a kernel takes, unless it asks for less.
    standard : of C++, "c++14" or "c++17".
    ucontext : switch fibres the portable way.
    """

    shuffle_seed: int | None = None
    flush_subnormals: bool = False
    checked: bool = False
    max_total_threads: int = 1024
    standard: str = "c++14"
    ucontext: bool = False


@dataclass(frozen=True)
class Counters:
    """What a device has done since it was made.

    dispatches, groups and threads that ran; barriers: threads that waited at one.
    """

    dispatches: int
    groups: int
    threads: int
    barriers: int


class EmulatedDevice:
    """Compiles and runs kernels; counts what they do."""

    def __init__(self, options: EmulatorOptions | None = None) -> None:
        self.options = options or EmulatorOptions()
        self._counters = CountersRecord()

    def compile_shader(self, source: str) -> "EmulatedLibrary":
        """As ``torch.mps.compile_shader``; SyntaxError with the compiler's message."""
        options = self.options
        built = build(source, BuildOptions(options.checked, options.standard, options.ucontext))
        return EmulatedLibrary(built, source, options, self._counters)

    def counters(self) -> Counters:
        record = self._counters
        return Counters(record.dispatches, record.groups, record.threads, record.barriers)


class EmulatedLibrary:
    """Kernels as attributes; a missing one is a RuntimeError, as with torch."""

    def __init__(
        self, built: BuiltLibrary, source: str, options: EmulatorOptions, counters: CountersRecord
    ) -> None:
        launcher = Launcher(
            built.runtime,
            source.splitlines(),
            counters,
            options.shuffle_seed,
            options.flush_subnormals,
        )
        self._kernels = {
            signature.name: EmulatedKernel(
                built.library, signature, launcher, options.max_total_threads
            )
            for signature in built.kernels
        }

    def __getattr__(self, name: str) -> EmulatedKernel:
        kernels = self.__dict__.get("_kernels", {})
        if name not in kernels:
            raise RuntimeError(f"Failed to create function state object for: {name}")
        return kernels[name]

    def __dir__(self) -> list[str]:
        return sorted(self._kernels)

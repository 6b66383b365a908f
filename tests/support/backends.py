"""The backends that the contract suite holds equal. A new backend joins by one line of BACKENDS.

Each is compared, bit for bit, with its reference: every backend with the oracle, and the oracle
with ``NaiveBackend``, which shares no arithmetic with it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from support.naive_backend import NaiveBackend

from torchgbdt.backends.metal_library import MetalLibrary
from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.core.backend import ComputeBackend


@dataclass(frozen=True)
class BackendUnderTest:
    """A backend and what it must equal.

    Attributes
    ----------
    id : in the names of tests.
    name : in the registry, which knows whether it can run here.
    runs_here : whatever the registry says, since the test makes it otherwise.
    is_second : there is another one with the same kernels, cut otherwise. Tests of what the core
        does with a backend (``pytest.mark.core_laws``) take it with ``--exhaustive`` only.
    """

    id: str
    name: str
    make: Callable[[], ComputeBackend]
    make_reference: Callable[[], ComputeBackend] = OracleBackend
    runs_here: bool = False
    is_second: bool = False


def native(n_threads: int) -> Callable[[], ComputeBackend]:
    def make() -> ComputeBackend:
        from torchgbdt.backends.native import NativeBackend

        return NativeBackend(n_threads)

    return make


def native_grouped() -> ComputeBackend:
    """Stores the training rows anew before every round but the first."""
    from torchgbdt.backends.native import NativeBackend
    from torchgbdt.backends.stored_rows import Grouping

    return NativeBackend(3, Grouping(trees=1, min_bytes=0, max_row_bytes=10**6))


def on_torch(device: str) -> Callable[[], ComputeBackend]:
    def make() -> ComputeBackend:
        from torchgbdt.backends.torch_scatter import TorchBackend

        return TorchBackend(device)

    return make


@cache
def emulated_library(**options: Any) -> MetalLibrary:
    """The Metal kernels, compiled for this machine; see metal/emulator/device.py."""
    from metal.emulator.device import EmulatedDevice, EmulatorOptions

    return MetalLibrary(EmulatedDevice(EmulatorOptions(**options)).compile_shader)


def mps_emulated() -> ComputeBackend:
    from torchgbdt.backends.mps import MPSBackend

    return MPSBackend(emulated_library(shuffle_seed=1), "cpu")


def mps_in_pieces() -> ComputeBackend:
    """Flushes subnormals; slabs of few nodes, chunks of few rows, the other histogram kernel."""
    from torchgbdt.backends.metal_run import MetalTuning
    from torchgbdt.backends.mps import MPSBackend

    library = emulated_library(shuffle_seed=2, flush_subnormals=True, max_total_threads=512)
    tuning = MetalTuning(
        slab_nodes=3,
        partial_bytes=1 << 18,
        histogram_rows=300,
        routing_rows=200,
        returning_atomics=False,
    )
    return MPSBackend(library, "cpu", tuning=tuning)


BACKENDS = [
    BackendUnderTest("oracle", "oracle", OracleBackend, NaiveBackend),
    *(BackendUnderTest(f"cpu-{n}", "cpu", native(n), is_second=n == 2) for n in (1, 2, 7)),
    BackendUnderTest("cpu-3-grouped", "cpu", native_grouped),
    BackendUnderTest("torch", "torch", on_torch("cpu")),
    BackendUnderTest("mps-emulated", "mps", mps_emulated, runs_here=True),
    BackendUnderTest("mps-in-pieces", "mps", mps_in_pieces, runs_here=True, is_second=True),
]

ONE_OF_EACH = [one for one in BACKENDS if one.id in ("oracle", "cpu-3-grouped")]
"""For long runs of so few rows that the number of threads makes no difference."""

"""The backends that the contract suite holds equal. A new backend joins by one line of BACKENDS.

Each is compared, bit for bit, with its reference: every backend with the oracle, and the oracle
with ``NaiveBackend``, which shares no arithmetic with it.
"""

from collections.abc import Callable
from dataclasses import dataclass

from support.naive_backend import NaiveBackend

from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.core.backend import ComputeBackend


@dataclass(frozen=True)
class BackendUnderTest:
    """A backend and what it must equal.

    Attributes
    ----------
    id : in the names of tests.
    name : in the registry, which knows whether it can run here.
    """

    id: str
    name: str
    make: Callable[[], ComputeBackend]
    make_reference: Callable[[], ComputeBackend] = OracleBackend


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


BACKENDS = [
    BackendUnderTest("oracle", "oracle", OracleBackend, NaiveBackend),
    *(BackendUnderTest(f"cpu-{n}", "cpu", native(n)) for n in (1, 2, 7)),
    BackendUnderTest("cpu-3-grouped", "cpu", native_grouped),
    BackendUnderTest("torch", "torch", on_torch("cpu")),
]

ONE_OF_EACH = [one for one in BACKENDS if one.id in ("oracle", "cpu-3-grouped", "torch")]
"""For long runs of so few rows that the number of threads makes no difference."""

"""From costs and the figures of a device to seconds per tree."""

from collections.abc import Sequence
from dataclasses import dataclass

from metal_cost.devices import (
    BANDWIDTH_SHARE,
    DEVICE_ATOMIC_RATE,
    DISPATCH_SECONDS,
    INSTRUCTIONS,
    INTEGER_RATE,
    PLAIN_RATE,
    SYNCHRONIZATION_SECONDS,
    Device,
)
from metal_cost.plan import Work
from metal_cost.scaling import Cost


@dataclass(frozen=True)
class Seconds:
    """How long one dispatch would keep each part of a GPU busy; the slowest part decides.

    Attributes
    ----------
    bandwidth : of memory. atomics : of threadgroup memory, and of device memory if there are any.
    arithmetic : of the cores.
    """

    bandwidth: float
    atomics: float
    arithmetic: float

    @property
    def total(self) -> float:
        """The parts work at the same time."""
        return max(self.bandwidth, self.atomics, self.arithmetic)

    @property
    def bound(self) -> str:
        """The name of the slowest part."""
        parts = {name: getattr(self, name) for name in ("bandwidth", "atomics", "arithmetic")}
        return max(parts, key=lambda name: parts[name])


def busy_cores(groups: int, cores: int) -> float:
    """Cores that work, on average, where each takes the next of many equal groups.

    Nine groups keep eight cores busy for twice as long as eight groups do.
    """
    if groups <= 0:
        return float(cores)
    return groups / -(-groups // cores)


def dispatch_seconds(work: Work, cost: Cost, device: Device, atomic_rate: float) -> Seconds:
    """Of one dispatch.

    Parameters
    ----------
    atomic_rate : changes of threadgroup memory per clock and core.
    """
    cycles = busy_cores(work.groups, device.cores) * device.clock
    instructions = sum(
        each * work.size(size)
        for (kernel, size), each in INSTRUCTIONS.items()
        if kernel == work.kernel
    )
    return Seconds(
        bandwidth=cost.moved_bytes / (BANDWIDTH_SHARE * device.bandwidth),
        atomics=(cost.updates / atomic_rate + cost.plain / PLAIN_RATE) / cycles
        + cost.device_atomics / (DEVICE_ATOMIC_RATE * device.clock),
        arithmetic=instructions / (INTEGER_RATE * cycles),
    )


@dataclass(frozen=True)
class KernelSum:
    """All dispatches of one kernel, per tree; seconds, but ``moved_bytes``.

    Attributes
    ----------
    seconds : of the slowest part of each dispatch.
    bound : what is the slowest for most of them.
    """

    kernel: str
    dispatches: float
    moved_bytes: float
    bandwidth: float
    atomics: float
    arithmetic: float
    seconds: float
    bound: str


class Prediction:
    """One workload on one device.

    Parameters
    ----------
    works, costs : of the dispatches of ``n_trees`` trees.
    synchronizations : per tree.
    """

    def __init__(
        self,
        works: Sequence[Work],
        costs: Sequence[Cost],
        device: Device,
        atomic_rate: float,
        synchronizations: int,
        n_trees: int = 1,
    ) -> None:
        self.n_trees = n_trees
        self._dispatches = [
            (work, cost, dispatch_seconds(work, cost, device, atomic_rate))
            for work, cost in zip(works, costs, strict=True)
        ]
        self.synchronizing = synchronizations * SYNCHRONIZATION_SECONDS
        self.queueing = len(works) / n_trees * DISPATCH_SECONDS

    @property
    def moved_bytes(self) -> float:
        """Per tree."""
        return sum(cost.moved_bytes for _, cost, _ in self._dispatches) / self.n_trees

    def parts(self) -> dict[str, float]:
        """Seconds per tree by what binds; their sum is the prediction."""
        result = {"bandwidth": 0.0, "atomics": 0.0, "arithmetic": 0.0}
        for _, _, seconds in self._dispatches:
            result[seconds.bound] += seconds.total / self.n_trees
        return {**result, "waiting": self.synchronizing + self.queueing}

    @property
    def seconds(self) -> float:
        """Per tree."""
        return sum(self.parts().values())

    @property
    def bound(self) -> str:
        """What takes the largest part."""
        parts = self.parts()
        return max(parts, key=lambda name: parts[name])

    def kernels(self) -> list[KernelSum]:
        """The largest first."""
        result = []
        for kernel in {work.kernel: None for work, _, _ in self._dispatches}:
            own = [(c, s) for work, c, s in self._dispatches if work.kernel == kernel]
            by_bound: dict[str, float] = {}
            for _, seconds in own:
                by_bound[seconds.bound] = by_bound.get(seconds.bound, 0.0) + seconds.total
            n = self.n_trees
            result.append(
                KernelSum(
                    kernel,
                    dispatches=len(own) / n,
                    moved_bytes=sum(cost.moved_bytes for cost, _ in own) / n,
                    bandwidth=sum(seconds.bandwidth for _, seconds in own) / n,
                    atomics=sum(seconds.atomics for _, seconds in own) / n,
                    arithmetic=sum(seconds.arithmetic for _, seconds in own) / n,
                    seconds=sum(seconds.total for _, seconds in own) / n,
                    bound=max(by_bound, key=lambda name: by_bound[name]),
                )
            )
        return sorted(result, key=lambda one: -one.seconds)

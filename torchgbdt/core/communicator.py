"""Reductions over ranks: each rank holds its own rows, all ranks grow the same trees.

Only exact operations cross ranks (integer sums, maxima, flags, concatenation), so the number of
ranks and the borders between their rows do not change a model.
"""

import threading
from abc import ABC, abstractmethod

import numpy as np

from torchgbdt.core.arrays import AnyArray, Float64Array, Int64Array
from torchgbdt.core.errors import BackendError


class Communicator(ABC):
    """What ranks must be able to do together. Every method is called by all ranks in one order."""

    rank: int
    size: int

    @abstractmethod
    def gather(self, array: AnyArray) -> list[AnyArray]:
        """The arrays of all ranks, in rank order, on every rank; shapes may differ in axis 0."""

    def sum_int64(self, array: Int64Array) -> None:
        """Replace ``array`` by its elementwise sum over ranks. IN-OUT."""
        if self.size > 1:
            array[...] = np.sum(self.gather(array), axis=0)

    def max_float64(self, array: Float64Array) -> Float64Array:
        """Elementwise maximum over ranks; NaN on any rank stays NaN."""
        return np.max(self.gather(array), axis=0) if self.size > 1 else array

    def any_true(self, flag: bool) -> bool:
        """Whether the flag is set on any rank."""
        return any(bool(part[0]) for part in self.gather(np.array([flag])))


class SingleRank(Communicator):
    """All rows on one rank: every reduction is the identity."""

    rank = 0
    size = 1

    def gather(self, array: AnyArray) -> list[AnyArray]:
        """The array itself."""
        return [array]


SINGLE_RANK = SingleRank()


class InProcessRanks:
    """A group of ranks that are threads of this process; for tests and for small machines.

    ``InProcessRanks(2).rank(0)`` is the communicator of the first thread. If one thread fails it
    calls ``abort``, and the others get BackendError instead of waiting for ever.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._barrier = threading.Barrier(size)
        self._parts: list[AnyArray | None] = [None] * size

    def rank(self, rank: int) -> "Communicator":
        """The communicator of one thread."""
        return _InProcessRank(self, rank)

    def abort(self) -> None:
        """Wake all waiting ranks with an error."""
        self._barrier.abort()

    def exchange(self, rank: int, array: AnyArray) -> list[AnyArray]:
        """Hand in this rank's array and take copies of all of them."""
        self._parts[rank] = array
        self._wait()
        parts = [np.array(part) for part in self._parts]
        self._wait()
        return parts

    def _wait(self) -> None:
        try:
            self._barrier.wait()
        except threading.BrokenBarrierError as error:
            raise BackendError("another rank of this run failed; see its error.") from error


class _InProcessRank(Communicator):
    def __init__(self, group: InProcessRanks, rank: int) -> None:
        self._group = group
        self.rank = rank
        self.size = group.size

    def gather(self, array: AnyArray) -> list[AnyArray]:
        return self._group.exchange(self.rank, array)

"""Rows of a native run, in the order in which they are stored.

Every sum over rows is an integer, so rows may be stored in any order without changing the model.
Those of the training data are grouped now and then by the nodes of the last tree that were
searched: rows that went the same way once mostly go it again, so that what a node reads of memory
lies together.

    given     0 1 2 3 4 5 6 7      nodes of the last tree    a b a b b a a b
    stored    0 2 5 6 1 3 4 7      <- ids; everything that belongs to a row moves with it
"""

import math
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from torchgbdt import _native
from torchgbdt.core.arrays import BIN_DTYPE, GRADIENT_DTYPE, BinArray, Float32Array, Int32Array
from torchgbdt.core.backend import RunRows
from torchgbdt.core.errors import BackendError

ROW_ID_DTYPE = np.uint32
"""Row numbers: a data set has at most 2^32 rows, and half the bytes of int64 are moved."""

RowIds = NDArray[np.uint32]

_T = TypeVar("_T", bound=np.generic)


@dataclass(frozen=True)
class Grouping:
    """When training rows are grouped by the nodes of a tree.

    Attributes
    ----------
    trees : grow between one grouping and the next; the first takes place after the first round.
    min_bytes : of bins; fewer stay in a cache, whatever their order.
    max_row_bytes : of bins; longer rows fill cache lines by themselves.
    """

    trees: int = 10
    min_bytes: int = 4 << 20
    max_row_bytes: int = 256

    def is_worth(self, bins: BinArray) -> bool:
        """Whether these bins are ever grouped."""
        return bins.nbytes >= self.min_bytes and bins.shape[1] <= self.max_row_bytes


LARGE_DATA = Grouping()
"""Groups where it saves more time than it takes."""


class StoredRows:
    """One data set of a run.

    Attributes
    ----------
    given : the rows as ``prepare`` got them.
    ids : uint32, (n_rows,), which given row each stored one is; None where they are as given.
    bins, labels, weights, margins : as in RunRows, of the stored rows.
    columns : uint8, (n_features, n_rows), the bins again, for routing and for finding leaves.
    predictions : float32, (n_rows, n_outputs), of the stored rows.
    """

    def __init__(
        self, given: RunRows, n_outputs: int, n_value_bins: Int32Array, n_threads: int
    ) -> None:
        self.given = given
        self._n_value_bins = n_value_bins
        self._n_threads = n_threads
        self.ids: RowIds | None = None
        self._given_bins: BinArray = np.asarray(given.bins)
        self.bins = self._given_bins
        self.labels = given.labels
        self.weights = given.weights
        self.margins = given.margins
        self.predictions: Float32Array = (
            np.zeros((given.n_rows, n_outputs), GRADIENT_DTYPE)
            if given.start is None
            else np.array(given.start, GRADIENT_DTYPE, order="C")
        )
        self.columns: BinArray = np.empty(self.bins.shape[::-1], BIN_DTYPE)
        self._transpose_bins()

    def _transpose_bins(self) -> None:
        """Fill the columns; ValueError if a code is beyond its feature's missing code."""
        _native.transpose_bins(self.bins, self._n_value_bins, self.columns, self._n_threads)

    def group(self, order: RowIds) -> None:
        """Store the rows in this order of the present ones; uint32, (n_rows,). IN."""
        given = self.given
        if order.size != given.n_rows:
            raise BackendError(f"{given.n_rows} rows cannot be stored by {order.size} row ids.")
        # Bins and columns are of one size: each is written where the other was.
        is_ours = self.bins is not self._given_bins or not given.bins_are_shared
        room = self.bins if is_ours else np.empty_like(self.bins)
        self.bins = self._gather(self.bins, order, self.columns.reshape(self.bins.shape))
        self.columns = room.reshape(self.columns.shape)
        self._transpose_bins()
        # One at a time: of each, old and new exist side by side until the new one takes its place.
        self.ids = order.copy() if self.ids is None else self._gather(self.ids, order)
        ids = self.ids
        self.labels = self._gather(given.labels, ids)
        self.weights = None if given.weights is None else self._gather(given.weights, ids)
        self.margins = None if given.margins is None else self._gather(given.margins, ids)
        self.predictions = self._gather(self.predictions, order)

    def _gather(
        self, values: NDArray[_T], rows: RowIds, room: NDArray[_T] | None = None
    ) -> NDArray[_T]:
        """``values[rows]``, written to ``room`` by all threads."""
        result = np.empty_like(values) if room is None else room
        width = values.itemsize * math.prod(values.shape[1:])
        given, gathered = (one.view(np.uint8).reshape(rows.size, width) for one in (values, result))
        _native.gather_rows(given, rows, gathered, self._n_threads)
        return result

    def as_given(self, stored: NDArray[_T]) -> NDArray[_T]:
        """A copy of something per stored row, in the order of the given ones."""
        given = stored.copy()
        if self.ids is not None:
            given[self.ids] = stored
        return given

    def as_stored(self, given: NDArray[_T]) -> NDArray[_T]:
        """Something per given row in the order of the stored ones; not copied if they agree."""
        return given if self.ids is None else given[self.ids]

    def given_ids(self, stored: RowIds) -> RowIds:
        """Which given rows these stored ones are."""
        return stored if self.ids is None else self.ids[stored]

    def bin_bytes(self) -> int:
        """Of the bins, by rows and by columns, and of shared bins that were copied."""
        copied = self.bins is not self._given_bins and self.given.bins_are_shared
        return self.bins.nbytes + self.columns.nbytes + (self._given_bins.nbytes if copied else 0)

    def n_bytes(self) -> int:
        """Of bins and predictions, and of what grouping copied."""
        buffers: list[NDArray[Any]] = [self.predictions]
        if self.ids is not None:
            buffers += [self.ids, self.labels]
            buffers += [extra for extra in (self.weights, self.margins) if extra is not None]
        return self.bin_bytes() + sum(int(buffer.nbytes) for buffer in buffers)

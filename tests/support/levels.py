"""Levels of nodes that a test makes by hand, without the growth loop."""

from collections.abc import Sequence

import numpy as np
from support.runs import prepare

from torchgbdt.core.arrays import Int64Array, RecordArray
from torchgbdt.core.backend import NO_SLOT, NODE_DTYPE, ComputeBackend, LevelBatch
from torchgbdt.core.binning import BinThresholds
from torchgbdt.core.communicator import Communicator
from torchgbdt.core.fixed_point import minimum_hessian
from torchgbdt.core.splits import SplitRules


class HandMadeRun:
    """A prepared run with loaded gradients, whose nodes are stretches of row order.

    Parameters
    ----------
    bins, n_value_bins : as ``runs.prepare``.
    gradients, hessians : float, (n_rows, n_outputs).
    scale : one power of two for all gradients and Hessians.
    constant : the run is told that all Hessians are 1.
    """

    def __init__(
        self,
        backend: ComputeBackend,
        bins: np.ndarray,
        n_value_bins: Sequence[int],
        gradients: np.ndarray,
        hessians: np.ndarray,
        scale: int = 0,
        n_slots: int = 8,
        constant: bool = False,
    ) -> None:
        self.backend = backend
        g, h = (np.asarray(part, np.float32) for part in (gradients, hessians))
        self.n_outputs = g.shape[1]
        self.thresholds: BinThresholds = prepare(
            backend, np.asarray(bins), n_value_bins, self.n_outputs, n_slots, constant
        )
        self.scales: Int64Array = np.full((self.n_outputs, 2), scale, np.int64)
        backend.load_gradients(g, h)
        self.totals = backend.round_gradients(self.scales)

    def nodes(self, stretches: Sequence[tuple[int, int]], copies: int = 1) -> RecordArray:
        """Nodes that own row_order[begin:end], each built in the slot of its position."""
        nodes = np.zeros(len(stretches), NODE_DTYPE)
        for index, (begin, end) in enumerate(stretches):
            count = (end - begin) * copies
            nodes[index] = (begin, end - begin, count, index, index, NO_SLOT, True)
        return nodes

    def batch(self, nodes: RecordArray, copies: int = 1) -> LevelBatch:
        """The nodes with their exact totals."""
        order = self.backend.read_row_order()
        q_g, q_h = (q.astype(np.int64) for q in self.backend.read_fixed_point())
        sums = np.zeros((nodes.size, self.n_outputs, 2), np.int64)
        for index, node in enumerate(nodes):
            rows = order[node["begin"] : node["begin"] + node["n_rows"]]
            sums[index] = np.stack((q_g[rows].sum(axis=0), q_h[rows].sum(axis=0)), axis=1)
        return LevelBatch(nodes, sums * copies)

    def build(self, stretches: Sequence[tuple[int, int]]) -> LevelBatch:
        batch = self.batch(self.nodes(stretches))
        self.backend.build_histograms(batch)
        return batch

    def build_in_copies(self, stretches: Sequence[tuple[int, int]], copies: int) -> LevelBatch:
        """As ``build`` on many ranks that all hold these rows: totals become huge, yet legal."""
        batch = self.batch(self.nodes(stretches, copies), copies)
        self.backend.build_histograms(batch)
        self.backend.exchange_histograms(batch, ManyCopies(copies))
        return batch

    def rules(
        self,
        reg_lambda: float = 1.0,
        gamma: float = 0.0,
        min_samples_leaf: int = 1,
        min_child_weight: float = 0.0,
    ) -> SplitRules:
        least = [minimum_hessian(min_child_weight, s) for s in self.scales[:, 1].tolist()]
        return SplitRules(
            reg_lambda, gamma, min_samples_leaf, np.array(least, np.int64), self.scales
        )


class ManyCopies(Communicator):
    """One of many ranks that all hold the same rows: a sum is a multiple."""

    rank = 0

    def __init__(self, copies: int) -> None:
        self.size = copies

    def gather(self, array: np.ndarray) -> list[np.ndarray]:
        raise NotImplementedError("histograms are summed, not gathered")

    def sum_int64(self, array: Int64Array) -> None:
        array *= self.size

"""What is done to the rows of the nodes of a level: summed into histograms, and routed.

A node owns a stretch of row order. All stretches of a call are laid end to end, and each position
knows its node, so that one operation serves all nodes:

    stretches of row order   [  b b b  ][ a a a a ]      owner  0 0 0 1 1 1 1
"""

from dataclasses import dataclass

import numpy as np
import torch

from torchgbdt.backends.torch_matrix import DeviceBins
from torchgbdt.backends.torch_operations import add_integers, place
from torchgbdt.backends.torch_transfers import Transfers
from torchgbdt.core.arrays import AnyArray, Int64Array, RecordArray
from torchgbdt.core.binning import BinThresholds

_CELLS_AT_ONCE = 1 << 22
"""Numbers that are added to histograms at a time: enough for a device, and of little memory."""


@dataclass(frozen=True)
class Stretches:
    """The rows of some nodes, node by node.

    Attributes
    ----------
    positions : int64, (n,), in row order.
    owner : int64, (n,), ascending; whose they are, a position in the list of nodes.
    begins, starts, sizes : int64, (n_nodes,); where each node's rows begin in row order and here,
        and how many it has.
    of_nodes : int64, (n_columns, n_nodes); what else was handed over with the nodes.
    """

    positions: torch.Tensor
    owner: torch.Tensor
    begins: torch.Tensor
    starts: torch.Tensor
    sizes: torch.Tensor
    of_nodes: torch.Tensor

    @classmethod
    def of(
        cls, nodes: RecordArray, of_nodes: list[AnyArray], transfers: Transfers
    ) -> "Stretches | None":
        """The stretches of these nodes, in one transfer; None if they have no rows."""
        sizes = nodes["n_rows"]
        total = int(sizes.sum())
        if total == 0:
            return None
        starts = np.cumsum(sizes) - sizes
        table = transfers.to_device(np.stack([nodes["begin"], starts, sizes, *of_nodes]))
        device = transfers.device
        # Each position is marked by how many nodes begin there, the first one apart; nodes without
        # rows begin where the next one does. The sum so far says which node a position is of.
        marks = torch.zeros(total + 1, dtype=torch.int64, device=device)
        add_integers(marks, table[1, 1:], torch.ones_like(table[1, 1:]))
        owner = marks[:total].cumsum(0)
        places = torch.arange(total, dtype=torch.int64, device=device)
        positions = places + (table[0] - table[1])[owner]
        return cls(positions, owner, table[0], table[1], table[2], table[3:])


def build_histograms(
    bins: DeviceBins,
    row_order: torch.Tensor,
    fixed_point: torch.Tensor,
    nodes: RecordArray,
    thresholds: BinThresholds,
    histograms: torch.Tensor,
    transfers: Transfers,
) -> None:
    """Sum the rows of each node into its slot; blocks of rows, all features of each at once.

    Parameters
    ----------
    row_order : int32, (n_rows,). IN.
    fixed_point : int32, (n_words, n_rows), in the order of the data. IN.
    nodes : NODE_DTYPE; the ones to build. IN.
    histograms : int64, (n_slots, 1 + n_words, total_bins), contiguous. IN-OUT.
    """
    n_words, total_bins = histograms.shape[1:]
    slots = nodes["slot"].astype(np.int64)
    histograms[transfers.to_device(slots)] = 0
    stretches = Stretches.of(nodes, [slots * n_words * total_bins], transfers)
    if stretches is None:
        return
    first_cells = transfers.to_device(thresholds.bin_offsets[:-1])
    flat = histograms.view(-1)
    step = max(1, _CELLS_AT_ONCE // bins.n_features)
    for begin in range(0, stretches.positions.shape[0], step):
        block = slice(begin, begin + step)
        rows = row_order.index_select(0, stretches.positions[block])
        cells = bins.tensor.index_select(0, rows)[:, : bins.n_features].to(torch.int64)
        cells += first_cells
        cells += stretches.of_nodes[0][stretches.owner[block]][:, None]
        index = cells.reshape(-1)
        add_integers(flat, index, torch.ones_like(index))
        for word in range(fixed_point.shape[0]):  # torch's lazy device cannot unbind
            index += total_bins
            values = fixed_point[word].index_select(0, rows).to(torch.int64)
            add_integers(flat, index, values[:, None].expand_as(cells).reshape(-1))


def route_rows(
    bins: DeviceBins,
    row_order: torch.Tensor,
    nodes: RecordArray,
    splits: RecordArray,
    thresholds: BinThresholds,
    transfers: Transfers,
) -> Int64Array:
    """See ``ComputeBackend.route_rows``; ``row_order`` : int32, (n_rows,). IN-OUT.

    Where a row goes follows from how many before it, in its node, went left.
    """
    feature = splits["feature"]
    also_left = np.where(splits["missing_left"], thresholds.n_value_bins[feature], -1)
    stretches = Stretches.of(nodes, [feature, splits["split_bin"], also_left], transfers)
    if stretches is None:
        return np.zeros(nodes.size, np.int64)
    owner = stretches.owner
    features, split_bins, also = (stretches.of_nodes[column] for column in range(3))
    rows = row_order.index_select(0, stretches.positions)
    width = bins.tensor.shape[1]
    code = bins.tensor.view(-1)[rows.to(torch.int64) * width + features[owner]]
    left = (code <= split_bins[owner]) | (code == also[owner])

    up_to = left.to(torch.int64).cumsum(0)  # rows that went left, this one included
    ends = stretches.starts + stretches.sizes
    counted = torch.cat((torch.zeros_like(up_to[:1]), up_to))
    before = counted[stretches.starts]  # those of other nodes
    left_rows = counted[ends] - before
    left_here = up_to - before[owner]
    here = stretches.positions - stretches.begins[owner]
    moved = torch.where(left, left_here - 1, left_rows[owner] + here - left_here)
    place(row_order, stretches.begins[owner] + moved, rows)
    counts: Int64Array = transfers.to_host(left_rows)
    return counts

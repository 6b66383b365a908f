"""Whether torch's own copies and operations did what they were asked: they, too, may be lost.

Of everything in a run's buffers that has a number per row, a sum over its bits is compared with
that of what it was made from; histograms that come to the host, with the totals of their nodes.
"""

import numpy as np
import torch

from torchgbdt.backends.torch_run import DeviceRows
from torchgbdt.backends.torch_transfers import Transfers
from torchgbdt.core.arrays import AnyArray
from torchgbdt.core.backend import LevelBatch
from torchgbdt.core.binning import BinThresholds
from torchgbdt.core.errors import BackendError
from torchgbdt.core.splits import Histograms


def check_buffers(rows: DeviceRows, columns: torch.Tensor, transfers: Transfers) -> None:
    """Raise BackendError unless a data set arrived; two small copies to the host.

    Parameters
    ----------
    rows : as given, and on the device. IN.
    columns : uint8, (n_features, n_rows); made of its bins. IN.
    """
    given = rows.given
    if given.n_rows == 0:
        return
    bins = rows.bins.tensor[:, : rows.bins.n_features]
    of_bins = torch.stack((bins.sum(dim=0), columns.sum(dim=1)))
    by_row, by_column = transfers.to_host(of_bins)
    start = np.zeros(rows.predictions.numel(), np.float32) if given.start is None else given.start
    expected = {"labels": given.labels, "start": start}
    found = [rows.labels, rows.predictions]
    for name, array, tensor in (
        ("weights", given.weights, rows.weights),
        ("margins", given.margins, rows.margins),
    ):
        if array is not None and tensor is not None:
            expected[name] = array
            found.append(tensor)
    sums = transfers.to_host(torch.stack([one.view(torch.int32).sum() for one in found]))
    wrong = [
        name
        for (name, array), total in zip(expected.items(), sums.tolist(), strict=True)
        if _sum_of_bits(array) != total
    ]
    if (by_row != by_column).any():
        wrong.append("columns of bins")
    if wrong:
        raise BackendError(
            f"what lies on device {str(transfers.device)!r} is not what was copied there: "
            f"{', '.join(wrong)}. Work of the GPU failed, which torch does not report. Train "
            f"again; if it happens again, use backend='cpu', and please report it."
        )


def check_totals(histograms: Histograms, batch: LevelBatch, thresholds: BinThresholds) -> None:
    """Raise BackendError unless each feature's bins add up to their node; host copies. IN."""
    first_cells = thresholds.bin_offsets[:-1]
    counts = np.add.reduceat(histograms.counts, first_cells, axis=-1)
    pairs = (
        (counts, batch.nodes["count"][:, None]),
        (np.add.reduceat(histograms.gradients, first_cells, axis=-1), batch.sums[..., :1]),
        (np.add.reduceat(histograms.hessians, first_cells, axis=-1), batch.sums[..., 1:]),
    )
    if any((found != expected).any() for found, expected in pairs):
        raise BackendError(
            "histograms that came to the host contradict the totals of their rows: work of the GPU "
            "failed, which torch does not report. Train again; if it happens again, use "
            "backend='torch' or 'cpu', and please report it."
        )


def _sum_of_bits(array: AnyArray) -> int:
    values = np.ascontiguousarray(array, np.float32)
    return int(values.view(np.int32).sum(dtype=np.int64))

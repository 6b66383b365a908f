"""Routing the rows of a level on a device: two dispatches per slab of nodes.

route_count: sides, and how many of a chunk go left --> route_scatter: rows to their new places
"""

import numpy as np

from torchgbdt.backends.metal_run import MetalRun
from torchgbdt.backends.row_chunks import GROUP_THREADS, choose_rows_per_chunk, cut_rows
from torchgbdt.core.arrays import Int64Array, RecordArray

_UNKNOWN = -1


def route_rows(run: MetalRun, nodes: RecordArray, splits: RecordArray) -> Int64Array:
    """See ``ComputeBackend.route_rows``.

    Where this rank has all rows of the nodes, the histograms have counted who goes left, and
    nothing is waited for: the kernel compares, and the next results say whether all was well.
    """
    counted = splits["left_count"] + splits["right_count"]
    expected = np.where(counted == nodes["n_rows"], splits["left_count"], _UNKNOWN)
    if nodes["n_rows"].sum() < run.row_order.shape[0]:
        run.routed_order.copy_(run.row_order)  # rows that stay where they are
    left_rows = expected.astype(np.int64)
    limit = run.tuning.slab_nodes
    for begin in range(0, nodes.size, limit):
        slab = slice(begin, begin + limit)
        _queue_slab(run, nodes[slab], splits[slab], expected[slab])
        if (expected[slab] == _UNKNOWN).any():
            counts = run.room("left_counts", nodes[slab].size)[: nodes[slab].size]
            left_rows[slab] = run.transfers.to_host(counts)
    run.swap_rows()
    return left_rows


def _queue_slab(
    run: MetalRun, nodes: RecordArray, splits: RecordArray, expected: Int64Array
) -> None:
    n_rows, tuning = run.row_order.shape[0], run.tuning
    rows_per_chunk = choose_rows_per_chunk(
        nodes["n_rows"], 1, tuning.wanted_groups, tuning.routing_rows
    )
    chunks = cut_rows(nodes["begin"], nodes["n_rows"], rows_per_chunk)
    chunk_counts = run.room("chunk_counts", chunks.n_chunks)
    asked = np.stack((splits["feature"], splits["split_bin"], splits["missing_left"]), axis=1)
    grid = {"threads": chunks.n_chunks * GROUP_THREADS, "group_size": GROUP_THREADS}
    run.library.kernel("route_rows", "route_count")(
        run.columns[0],
        run.row_order,
        run.features,
        run.sides,
        chunk_counts,
        chunks.nodes,
        asked.ravel().tolist(),
        nodes.size,
        rows_per_chunk,
        n_rows,
        **grid,
    )
    run.library.kernel("route_rows", "route_scatter")(
        run.row_order,
        run.fixed_point,
        run.sides,
        chunk_counts,
        run.routed_order,
        run.routed_fixed_point,
        run.room("left_counts", nodes.size),
        run.faults,
        chunks.nodes,
        expected.tolist(),
        nodes.size,
        rows_per_chunk,
        n_rows,
        run.fixed_point.shape[0],
        **grid,
    )

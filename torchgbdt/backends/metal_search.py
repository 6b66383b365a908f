"""Searching a level on a device, a slab of nodes at a time: four dispatches, one copy to the host.

    build_histograms --> reduce_histograms --> scan_splits --> select_candidates --> decide_splits
    sums of chunks       sums of nodes, and     candidates     a few per node        on the host
                         of their siblings      per feature

A slab is what fits into the lists of numbers that kernels take by value.
"""

from collections.abc import Iterator

import numpy as np

from torchgbdt.backends.metal_run import MetalRun
from torchgbdt.backends.row_chunks import (
    GROUP_THREADS,
    N_CODES,
    choose_rows_per_chunk,
    cut_rows,
)
from torchgbdt.backends.split_candidates import (
    CANDIDATE_WORDS,
    MAX_CANDIDATES,
    RESULT_WORDS,
    SUMMARY_WORDS,
    SearchBuffers,
    SearchedNodes,
    decide_splits,
    queue_search,
)
from torchgbdt.core.arrays import BoolArray, Int32Array, Int64Array, RecordArray
from torchgbdt.core.backend import NO_SLOT, LevelBatch
from torchgbdt.core.splits import SPLIT_DTYPE, SplitRules


def slabs(nodes: RecordArray, limit: int) -> Iterator[slice]:
    """Stretches of at most ``limit`` nodes; siblings of which one is subtracted stay together.

    Parameters
    ----------
    nodes : NODE_DTYPE; one that is subtracted lies beside its sibling. IN.
    limit : >= 2.
    """
    begin, n_nodes = 0, nodes.size
    while begin < n_nodes:
        end = min(begin + limit, n_nodes)
        if end < n_nodes and _are_siblings(nodes[end - 1], nodes[end]):
            end -= 1
        yield slice(begin, end)
        begin = end


def _are_siblings(one: np.void, other: np.void) -> bool:
    """Whether the histogram of one of them is subtracted from what the other has."""
    return bool(one["sibling_slot"] == other["slot"] or other["sibling_slot"] == one["slot"])


def queue_histograms(run: MetalRun, nodes: RecordArray, subtract: bool) -> None:
    """Sum the rows of the nodes that are built, and with ``subtract`` subtract their siblings."""
    built = nodes[nodes["build"]]
    if built.size == 0:
        return
    variant, outputs = run.variant, run.settings.tree_outputs
    n_tiles, n_rows = variant.n_tiles(run.n_features), run.row_order.shape[0]
    tuning = run.tuning
    rows_per_chunk = choose_rows_per_chunk(
        built["n_rows"], n_tiles * outputs, tuning.wanted_groups, tuning.histogram_rows
    )
    chunks = cut_rows(built["begin"], built["n_rows"], rows_per_chunk)
    words = variant.chunk_words(run.n_features, outputs)
    partials = run.room("partials", chunks.n_chunks * words)
    run.library.kernel("build_histograms", constants=variant.constants())(
        run.rows[0].bins.tensor,
        run.row_order,
        run.fixed_point,
        partials,
        chunks.nodes,
        built.size,
        rows_per_chunk,
        n_rows,
        run.n_features,
        threads=(n_tiles * GROUP_THREADS, chunks.n_chunks, outputs),
        group_size=(GROUP_THREADS, 1, 1),
    )
    siblings = _sibling_slots(nodes) if subtract else np.full(built.size, NO_SLOT, np.int32)
    run.library.kernel("reduce_histograms", constants=variant.constants())(
        partials,
        run.features,
        run.histograms,
        chunks.targets(built["slot"], siblings),
        chunks.n_chunks,
        run.n_features,
        run.settings.thresholds.total_bins,
        threads=(n_tiles * variant.tile_features * N_CODES, built.size, outputs),
        group_size=(GROUP_THREADS, 1, 1),
    )


def _sibling_slots(nodes: RecordArray) -> Int32Array:
    """Of each built node, where it is subtracted; NO_SLOT where it is from nothing."""
    others = nodes[~nodes["build"]]
    slot_of = dict(zip(others["sibling_slot"].tolist(), others["slot"].tolist(), strict=True))
    slots = nodes["slot"][nodes["build"]].tolist()
    return np.array([slot_of.get(slot, NO_SLOT) for slot in slots], np.int32)


def search_slab(
    run: MetalRun, batch: LevelBatch, rules: SplitRules, hessian_unit: int | None
) -> tuple[RecordArray, Int64Array, BoolArray]:
    """The best split of each node of a slab whose histograms are queued; as ``decide_splits``."""
    nodes = SearchedNodes(batch.nodes["slot"], batch.nodes["count"], batch.sums)
    per_feature = batch.nodes.size * run.n_features
    buffers = SearchBuffers(
        run.histograms,
        run.features,
        run.room("summaries", per_feature * SUMMARY_WORDS),
        run.room("candidates", per_feature * MAX_CANDIDATES * CANDIDATE_WORDS),
        run.results,
    )
    nonce = run.next_nonce()
    queue_search(run.library, buffers, nodes, rules, hessian_unit, nonce)
    results = run.read_results(batch.nodes.size * RESULT_WORDS).reshape(-1, RESULT_WORDS)
    return decide_splits(results, nodes, rules, nonce)


def empty_splits(batch: LevelBatch) -> tuple[RecordArray, Int64Array]:
    """Records and left sums of a batch, to be filled in."""
    return np.zeros(batch.nodes.size, SPLIT_DTYPE), np.zeros(batch.sums.shape, np.int64)

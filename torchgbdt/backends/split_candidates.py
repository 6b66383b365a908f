"""The split search on a device: words for its kernels, and the decision over what they return.

    node totals, rules --node_lists, search_words--> scan_splits, select_candidates
    --results, one copy to the host--> decide_splits --> split records and left sums

The kernels leave a few candidates per node, among them the one that gains most; here the gains of
those are computed in float64 by the one definition, ``core.splits.split_gain``, and decide. Nodes
with more candidates than fit are named: the caller reads their histograms and calls
``find_best_splits``. For trees with one output. numpy only; tensors are passed through.
"""

from dataclasses import dataclass
from typing import Any

from torchgbdt.backends.metal_library import MetalLibrary
from torchgbdt.core.arrays import BoolArray, Int32Array, Int64Array, RecordArray
from torchgbdt.core.splits import SplitRules

MAX_NODES = 256
"""Nodes of one search: their lists are passed by value, 4 words per node and list."""

MAX_CANDIDATES = 8
"""Candidates that are kept per node, and per node and feature."""

SUMMARY_WORDS = 4
CANDIDATE_WORDS = 8
RESULT_WORDS = 4 + MAX_CANDIDATES * CANDIDATE_WORDS


@dataclass(frozen=True)
class SearchBuffers:
    """The device's buffers of a search; contiguous tensors, for at least as many nodes.

    Attributes
    ----------
    histograms : int64, (n_slots, 1 + n_words, total_bins). IN.
    features : int32, (n_features, 2); first cell and number of value bins. IN.
    summaries : int32, (n_nodes, n_features, SUMMARY_WORDS); between the kernels.
    candidates : int32, (n_nodes, n_features, MAX_CANDIDATES, CANDIDATE_WORDS); likewise.
    results : int32, (n_nodes, RESULT_WORDS). OUT.
    """

    histograms: Any
    features: Any
    summaries: Any
    candidates: Any
    results: Any


@dataclass(frozen=True)
class SearchedNodes:
    """The nodes of a search, at most MAX_NODES.

    Attributes
    ----------
    slots : int32, (n_nodes,); where their histograms are.
    counts : int64, (n_nodes,); rows over all ranks.
    sums : int64, (n_nodes, 1, 2); gradient and Hessian totals.
    """

    slots: Int32Array
    counts: Int64Array
    sums: Int64Array


def can_filter(rules: SplitRules) -> bool:
    """Whether the kernels may be used for this tree; if not, read histograms: rare and exact."""
    raise NotImplementedError


def queue_search(
    library: MetalLibrary,
    buffers: SearchBuffers,
    nodes: SearchedNodes,
    rules: SplitRules,
    hessian_unit: int | None,
    nonce: int,
) -> None:
    """Queue scan_splits and select_candidates: two dispatches, no copy, no wait.

    Parameters
    ----------
    rules : of a tree with one output for which ``can_filter`` says yes.
    hessian_unit : the Hessian of a row in fixed point where all are the same, and histograms have
        none; else None.
    nonce : a word, 0 <= nonce < 2^31, that no other search of this run had.
    """
    raise NotImplementedError


def decide_splits(
    results: Int32Array, nodes: SearchedNodes, rules: SplitRules, nonce: int
) -> tuple[RecordArray, Int64Array, BoolArray]:
    """The best split of each node, bit-equal to ``core.splits.find_best_splits``.

    Parameters
    ----------
    results : int32, (n_nodes, RESULT_WORDS); host copy of ``SearchBuffers.results``. IN.

    Returns
    -------
    records : SPLIT_DTYPE, (n_nodes,); all zero where not found, and where overflowed.
    left_sums : int64, (n_nodes, 1, 2).
    overflowed : bool, (n_nodes,); the caller must search these histograms on the host.

    Raises
    ------
    BackendError : a histogram contradicts its node, or the results are not of this search.
    """
    raise NotImplementedError

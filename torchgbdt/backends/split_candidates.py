"""The split search on a device: words for its kernels, and the decision over what they return.

    node totals, rules --node_lists, search_words--> scan_splits, select_candidates
    --results, one copy to the host--> decide_splits --> split records and left sums

The kernels leave a few candidates per node, among them the one that gains most; here the gains of
those are computed in float64 by the one definition, ``core.splits.split_gain``, and decide. Nodes
with more candidates than fit are named: the caller reads their histograms and calls
``find_best_splits``. For trees with one output. csrc/metal/split_bound.h says why the winner is
always among the candidates; csrc/metal/split_search.h has the same words as this file.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from torchgbdt.backends.metal_library import MetalLibrary
from torchgbdt.backends.row_chunks import GROUP_THREADS
from torchgbdt.core.arrays import (
    AnyArray,
    BoolArray,
    Float64Array,
    Int32Array,
    Int64Array,
    RecordArray,
)
from torchgbdt.core.errors import BackendError
from torchgbdt.core.fixed_point import GRADIENT_BITS, flush_subnormals
from torchgbdt.core.splits import SPLIT_DTYPE, SplitRules, split_gain

MAX_NODES = 256
"""Nodes of one search: their lists are passed by value, 4 words per node and list."""

MAX_CANDIDATES = 8
"""Candidates that are kept per node, and per node and feature."""

SUMMARY_WORDS = 4
CANDIDATE_WORDS = 8
RESULT_WORDS = 4 + MAX_CANDIDATES * CANDIDATE_WORDS

_LANES = 32
_OVERFLOW = -1
_MAX_LAMBDA = 2.0**100
"""In units of the Hessian; gains neither overflow nor underflow in float64 below it."""

_FLOAT64_ROUNDING = 2.0**-49
_SMALLEST_RANK = 2.0**-110
_LARGEST_RANK = 2.0**100
_SLACK = 2.0**-20


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
    """The nodes of a search, 1..MAX_NODES.

    Attributes
    ----------
    slots : int32, (n_nodes,); where their histograms are.
    counts : int64, (n_nodes,); rows over all ranks.
    sums : int64, (n_nodes, 1, 2); gradient and Hessian totals.
    """

    slots: Int32Array
    counts: Int64Array
    sums: Int64Array


@dataclass(frozen=True)
class NodeLists:
    """What the kernels are told about each node: lists of 4 words per node, int32."""

    nodes: list[int]
    sums: list[int]
    ratios: list[int]
    limits: list[int]


# ---------------------------------------------------------------------------- before the search


def can_filter(rules: SplitRules) -> bool:
    """Whether the kernels may be used for this tree; if not, read histograms: rare and exact."""
    if rules.scales.shape[0] != 1 or rules.min_hessian[0] < 1:
        return False
    return bool(_lambda_units(rules) <= _MAX_LAMBDA)


def _lambda_units(rules: SplitRules) -> Float64Array:
    with np.errstate(over="ignore"):
        units: Float64Array = np.ldexp(np.float64(rules.reg_lambda), rules.scales[0, 1])
    return units


def node_lists(nodes: SearchedNodes, rules: SplitRules) -> NodeLists:
    """The words about each node, scaled as csrc/metal/split_bound.h says."""
    gradients = nodes.sums[:, 0, 0].astype(np.float64)
    hessians = nodes.sums[:, 0, 1].astype(np.float64)
    # A row has |gradient| <= 2^GRADIENT_BITS; so no side of a split exceeds 2^gradient_exponents.
    gradient_exponents = GRADIENT_BITS + np.frexp(nodes.counts.astype(np.float64))[1]
    reg_lambda = _lambda_units(rules)
    divisors, hessian_exponents = np.frexp(hessians + 2 * reg_lambda)
    divisors = np.where(hessians > 0, divisors, 1.0)  # without Hessian no split is allowed
    hessians = np.ldexp(hessians, -hessian_exponents)
    reg_lambdas = np.ldexp(reg_lambda, -hessian_exponents)
    means = np.ldexp(gradients, -gradient_exponents) / divisors

    # The rank that a gain of 0 has, see csrc/metal/split_bound.h.
    gradient_scale, hessian_scale = rules.scales[0].tolist()
    units = 1 + 2 * (gradient_scale - gradient_exponents) - hessian_scale + hessian_exponents
    with np.errstate(over="ignore"):
        gamma = np.ldexp(rules.gamma, units) / divisors
    penalty = means * means * (reg_lambdas / np.where(hessians > 0, hessians + reg_lambdas, 1.0))
    tolerances = _FLOAT64_ROUNDING * (means * means) + _SMALLEST_RANK
    smallest = np.clip((penalty + gamma) * (1 - _SLACK) - tolerances, 0, _LARGEST_RANK)

    ratios = np.stack((*_two_float32(means), *_two_float32(reg_lambdas)), axis=1)
    bounds = (tolerances * (1 + _SLACK), smallest * (1 - _SLACK))
    limits = np.stack([flush_subnormals(bound) for bound in bounds], axis=1).view(np.int32)
    exponents = np.stack((gradient_exponents, hessian_exponents), axis=1).astype(np.int32)
    slots = nodes.slots.astype(np.int32)
    counts = _two_words(nodes.counts)
    return NodeLists(
        _words(np.column_stack((slots, counts, np.zeros_like(slots)))),
        _words(_two_words(nodes.sums[:, 0])),
        _words(ratios.view(np.int32)),
        _words(np.column_stack((limits, exponents))),
    )


def _two_float32(values: Float64Array) -> tuple[AnyArray, AnyArray]:
    """High and low part, whose sum is ``values`` up to 2^-48."""
    high = flush_subnormals(values)
    return high, flush_subnormals(values - high)


def _two_words(values: Int64Array) -> Int32Array:
    """int64 (n, ...) -> int32 (n, words), low words first, on hosts of any byte order."""
    flat = values.reshape(len(values), -1).astype("<i8")
    words: Int32Array = flat.view("<i4").astype(np.int32)
    return words


def _words(values: AnyArray) -> list[int]:
    words: list[int] = values.ravel().tolist()
    return words


def search_words(
    buffers: SearchBuffers, n_nodes: int, rules: SplitRules, hessian_unit: int | None, nonce: int
) -> list[int]:
    """The words about the whole search."""
    min_samples_leaf = min(rules.min_samples_leaf, 2**62)  # more rows than there can be
    limits = np.array([[min_samples_leaf, rules.min_hessian[0]]], np.int64)
    return [
        n_nodes,
        buffers.features.shape[0],
        buffers.histograms.shape[2],
        hessian_unit or 0,
        *_words(_two_words(limits)),
        nonce,
    ]


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
    rules : of a tree for which ``can_filter`` says yes.
    hessian_unit : the Hessian of a row in fixed point where all are the same, and histograms have
        none; else None.
    nonce : a word, 0 <= nonce < 2^31, that no other search of this run had.
    """
    n_nodes = len(nodes.counts)
    search = search_words(buffers, n_nodes, rules, hessian_unit, nonce)
    lists = node_lists(nodes, rules)
    constants = {"CONSTANT_HESSIAN": int(hessian_unit is not None)}
    n_lanes = n_nodes * buffers.features.shape[0] * _LANES
    library.kernel("scan_splits", constants=constants)(
        buffers.histograms,
        buffers.features,
        buffers.summaries,
        buffers.candidates,
        search,
        lists.nodes,
        lists.sums,
        lists.ratios,
        lists.limits,
        threads=-(-n_lanes // GROUP_THREADS) * GROUP_THREADS,
        group_size=GROUP_THREADS,
    )
    library.kernel("select_candidates")(
        buffers.summaries,
        buffers.candidates,
        buffers.results,
        search,
        lists.sums,
        threads=n_nodes * GROUP_THREADS,
        group_size=GROUP_THREADS,
    )


# ----------------------------------------------------------------------------- after the search


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
    n_candidates = results[:, 0]
    _check_results(results, nonce)
    candidates = results[:, 4:].reshape(-1, MAX_CANDIDATES, CANDIDATE_WORDS)
    features, codes = candidates[..., 0], candidates[..., 1]
    pairs = np.ascontiguousarray(candidates[..., 2:]).astype("<i4").view("<i8").astype(np.int64)
    left_counts, left_sums = pairs[..., 0], pairs[..., None, 1:]

    gains = split_gain(left_sums, nodes.sums[:, None], rules)
    listed = np.arange(MAX_CANDIDATES) < n_candidates[:, None]
    gains = np.where(listed, gains, -np.inf)
    largest = gains.max(axis=1)
    # Ties: the smaller feature, then the smaller bin, then missing-right.
    order = features.astype(np.int64) << 9 | (codes & 0xFF) << 1 | codes >> 8 & 1
    order = np.where(gains == largest[:, None], order, np.iinfo(np.int64).max)
    found = np.flatnonzero(largest > 0)
    best = order[found].argmin(axis=1)

    records = np.zeros(len(results), SPLIT_DTYPE)
    code = codes[found, best]
    left_count = left_counts[found, best]
    right_count = nodes.counts[found] - left_count
    records["found"][found] = True
    records["gain"][found] = largest[found]
    records["feature"][found] = features[found, best]
    records["split_bin"][found] = code & 0xFF
    records["left_count"][found] = left_count
    records["right_count"][found] = right_count
    has_missing = (code >> 9 & 1).astype(np.bool_)
    records["missing_left"][found] = np.where(
        has_missing, code >> 8 & 1 == 1, left_count > right_count
    )
    sums = np.zeros_like(nodes.sums)
    sums[found] = left_sums[found, best]
    return records, sums, n_candidates == _OVERFLOW


def _check_results(results: Int32Array, nonce: int) -> None:
    if not (results[:, 2] == nonce).all():
        raise BackendError(
            "the split search returned results of an older search: work of the GPU failed, which "
            "torch does not report. Train again; if it persists, use backend='torch' or 'cpu'."
        )
    faulty = np.flatnonzero(results[:, 1])
    if faulty.size > 0:
        raise BackendError(
            f"the histograms of {faulty.size} nodes contradict the totals of their rows: work of "
            "the GPU failed, which torch does not report. Train again; if it persists, use "
            "backend='torch' or 'cpu'."
        )

"""A wrong call of a kernel is a TypeError or a ValueError; it never reaches foreign memory.

The exception is a bin code that its feature does not have: transpose_bins finds it, which every run
calls first; other kernels do not look, and have room for it.
"""

from typing import Any

import numpy as np
import pytest
from native.kernel_arguments import (
    GOOD,
    N_CLASSES,
    N_FEATURES,
    N_ROWS,
    N_SLOTS,
    OPTIONAL,
    OUTPUTS,
    TOTAL_BINS,
    call,
    kernel_of,
    nodes,
    read_only,
    splits,
)

from torchgbdt import _native
from torchgbdt.core.splits import SPLIT_DTYPE

NO_KERNELS = {"version", "pool_size"}

ONE_CLASS = {
    "predictions": np.zeros((N_ROWS, 1), np.float32),
    "baseline": np.zeros((1, 2), np.float32),
    "margins": None,
}
ROUTED_NOWHERE: dict[str, Any] = {
    "nodes": nodes()[:0],
    "splits": splits()[:0],
    "left_rows": np.zeros(0, np.int64),
}

TWO_NODES_OF_ONE_SLOT: dict[str, Any] = {
    "nodes": np.concatenate((nodes(n_rows=5, count=5), nodes(begin=5, n_rows=5, count=5))),
    "sums": np.zeros((2, 1, 2), np.int64),
    "splits": np.concatenate((splits(), splits())),
    "left_sums": np.zeros((2, 1, 2), np.int64),
}

WRONG: list[tuple[str, dict[str, Any]]] = [
    ("distinct_values", {"kept_rows": np.array([0, N_ROWS])}),
    ("distinct_values", {"first_feature": -1}),
    ("distinct_values", {"first_feature": 2}),
    ("distinct_values", {"first_feature": 2**62}),
    ("distinct_values", {"values": np.zeros((2, 255))}),
    ("distinct_values", {"values": np.zeros((1, 256))}),
    ("distinct_values", {"values": np.zeros((1, 0))}),
    ("distinct_values", {"values": np.zeros((1, 255), np.float32)}),
    ("distinct_values", {"counts": np.zeros(2, np.int64)}),
    ("distinct_values", {"values": np.zeros((3, 255)), "counts": np.zeros(3, np.int64)}),
    ("sort_columns", {"rows": np.full(N_ROWS, N_ROWS)}),
    ("sort_columns", {"rows": np.full(N_ROWS, -1)}),
    ("sort_columns", {"rows": np.arange(N_ROWS - 1)}),
    ("sort_columns", {"first_feature": -1}),
    ("sort_columns", {"first_feature": 2}),
    ("sort_columns", {"columns": np.zeros((3, N_ROWS))}),
    ("sort_columns", {"columns": np.zeros((N_ROWS, 2)).T}),
    ("cut_column", {"values": np.arange(9)}),
    ("cut_column", {"thresholds": np.zeros(255)}),
    ("cut_column", {"thresholds": np.zeros((1, 3))}),
    ("bin_features", {"kept_rows": np.array([0, N_ROWS])}),
    ("bin_features", {"kept_rows": np.full(N_ROWS, -1)}),
    ("bin_features", {"kept_rows": np.full(N_ROWS, N_ROWS)}),
    ("bin_features", {"kept_rows": np.arange(N_ROWS, dtype=np.int32)}),
    ("bin_features", {"offsets": np.array([0, 2, 5])}),
    ("bin_features", {"offsets": np.array([0, 2])}),
    ("bin_features", {"n_value_bins": np.array([2, 3], np.int32)}),
    ("bin_features", {"bins": np.zeros((N_ROWS, 1), np.uint8)}),
    ("bin_features", {"bins": np.zeros((N_ROWS, N_FEATURES), np.int64)}),
    ("bin_features", {"bins": np.zeros((N_FEATURES, N_ROWS), np.uint8).T}),
    ("bin_features", {"bins": read_only(np.zeros((N_ROWS, N_FEATURES), np.uint8))}),
    ("transpose_bins", {"bins": np.full((N_ROWS, N_FEATURES), 4, np.uint8)}),
    ("transpose_bins", {"bins": np.zeros((N_ROWS + 1, N_FEATURES), np.uint8)}),
    ("transpose_bins", {"columns": np.zeros((N_ROWS, N_FEATURES), np.uint8)}),
    ("transpose_bins", {"columns": read_only(np.zeros((N_FEATURES, N_ROWS), np.uint8))}),
    ("transpose_bins", {"n_value_bins": np.array([3], np.int32)}),
    ("sample_rows", {"row_order": np.zeros(N_ROWS, np.int32)}),
    ("sample_rows", {"row_order": read_only(np.zeros(N_ROWS, np.uint32))}),
    ("gather_rows", {"rows": np.full(N_ROWS, N_ROWS, np.uint32)}),
    ("gather_rows", {"rows": np.arange(N_ROWS)}),
    ("gather_rows", {"rows": np.arange(N_ROWS - 1, dtype=np.uint32)}),
    ("gather_rows", {"given": np.zeros((N_ROWS, 1), np.uint8)}),
    ("gather_rows", {"gathered": read_only(np.zeros((N_ROWS, N_FEATURES), np.uint8))}),
    ("compute_gradients", {"objective": 1}),  # there is no baseline
    ("compute_gradients", {"objective": 3}),
    ("compute_gradients", {"objective": -1}),
    ("compute_gradients", {"predictions": np.zeros((N_ROWS - 1, 1), np.float32)}),
    ("compute_gradients", {"predictions": np.zeros((N_ROWS, 0), np.float32)}),
    ("compute_gradients", {"labels": np.ones(N_ROWS + 1, np.float32)}),
    ("compute_gradients", {"labels": np.ones(N_ROWS)}),
    ("compute_gradients", {"weights": np.ones(N_ROWS - 1, np.float32)}),
    ("compute_gradients", {"gradients": np.zeros(N_ROWS - 1, np.float32)}),
    ("compute_gradients", {"gradients": read_only(np.zeros(N_ROWS, np.float32))}),
    ("compute_gradients", {"hessians": np.zeros(N_ROWS - 1, np.float32)}),
    ("compute_gradients", {"hessians": None}),  # there are weights
    ("compute_gradients", {"output": 1}),
    ("compute_gradients", {"output": -1}),
    ("compute_gradients", {"baseline": np.zeros((1, 2), np.float32)}),
    ("compute_gradients", {"margins": np.zeros((N_ROWS, 1), np.float32)}),
    ("compute_gradients", {"softmax_terms": np.zeros((2, N_ROWS), np.float32)}),
    ("compute_gradients of logistic", {"objective": 3}),
    ("compute_gradients of logistic", {"hessians": None, "weights": None}),
    ("compute_gradients of logistic", {"baseline": np.zeros((2, 2), np.float32)}),
    ("compute_gradients of logistic", {"baseline": np.zeros((1, 1), np.float32)}),
    ("compute_gradients of logistic", {"margins": np.zeros((N_ROWS - 1, 1), np.float32)}),
    ("compute_gradients of logistic", {"softmax_terms": np.zeros((2, N_ROWS), np.float32)}),
    ("compute_gradients of softmax", {"output": N_CLASSES}),
    ("compute_gradients of softmax", {"softmax_terms": np.zeros((1, N_ROWS), np.float32)}),
    ("compute_gradients of softmax", {"softmax_terms": np.zeros((2, N_ROWS - 1), np.float32)}),
    ("compute_gradients of softmax", {"margins": np.zeros((N_ROWS, 1), np.float32)}),
    ("compute_gradients of softmax", {"labels": np.ones(N_ROWS - 1, np.float32)}),
    ("compute_softmax_terms", {"predictions": np.zeros((N_ROWS - 1, N_CLASSES), np.float32)}),
    ("compute_softmax_terms", {"baseline": np.zeros((N_CLASSES - 1, 2), np.float32)}),
    ("compute_softmax_terms", {"margins": np.zeros((N_ROWS, N_CLASSES - 1), np.float32)}),
    ("compute_softmax_terms", {"terms": np.zeros((N_ROWS, 2), np.float32)}),
    ("compute_softmax_terms", {"terms": np.zeros((2, N_ROWS - 1), np.float32)}),
    ("compute_softmax_terms", ONE_CLASS),
    ("load_gradients", {"given_gradients": np.ones((N_ROWS - 1, 2), np.float32)}),
    ("load_gradients", {"given_gradients": np.ones((N_ROWS, 2))}),
    ("load_gradients", {"given_hessians": np.ones((N_ROWS, 1), np.float32)}),
    ("load_gradients", {"given_hessians": np.ones((2, N_ROWS), np.float32).T}),
    ("load_gradients", {"gradients": np.zeros((N_ROWS, 1), np.float32)}),
    ("load_gradients", {"hessians": np.zeros((N_ROWS - 1, 2), np.float32)}),
    ("build_histograms", {"nodes": nodes(begin=1)}),
    ("build_histograms", {"nodes": nodes(begin=-1)}),
    ("build_histograms", {"nodes": nodes(slot=N_SLOTS)}),
    ("build_histograms", {"nodes": nodes().astype(SPLIT_DTYPE, casting="unsafe")[:0].view("u1")}),
    ("build_histograms", {"nodes": np.zeros(1)}),
    ("build_histograms", {"nodes": None}),
    ("build_histograms", {"bin_offsets": np.array([0, 4, 9])}),
    ("build_histograms", {"histograms": np.zeros((N_SLOTS, TOTAL_BINS, 2), np.int64)}),
    ("build_histograms", {"histograms": np.zeros((N_SLOTS, TOTAL_BINS - 1, 3), np.int64)}),
    ("build_histograms", {"fixed_point": np.ones((N_ROWS - 1, 2), np.int32)}),
    ("build_histograms", {"fixed_point": np.ones((N_ROWS, 2), np.int64)}),
    ("build_histograms", {"row_order": np.full(N_ROWS, N_ROWS, np.uint32)}),
    ("build_histograms", {"row_order": np.full(N_ROWS, 2**32 - 1, np.uint32)}),
    ("build_histograms", {"row_order": np.arange(1, N_ROWS + 1, dtype=np.uint32)}),
    ("build_histograms", {"n_outputs": 3}),
    ("build_histograms", {"n_outputs": 0}),
    ("subtract_histograms", {"nodes": nodes(build=False, sibling_slot=-1)}),
    ("subtract_histograms", {"nodes": nodes(build=False, sibling_slot=N_SLOTS)}),
    ("find_splits", {"sums": np.zeros((2, 1, 2), np.int64)}),
    ("find_splits", {"splits": read_only(splits())}),
    ("find_splits", {"splits": np.zeros(2, SPLIT_DTYPE)}),
    ("find_splits", {"scales": np.full((1, 2), 128)}),
    ("find_splits", {"min_hessian": np.ones(2, np.int64)}),
    ("find_splits", {"left_sums": np.zeros((1, 2, 2), np.int64)}),
    ("route_rows", {"splits": splits(feature=N_FEATURES)}),
    ("route_rows", {"splits": splits(found=False)}),
    ("route_rows", {"splits": splits(split_bin=-1)}),
    ("route_rows", {"n_value_bins": np.full(N_FEATURES, 256, np.int32)}),
    ("update_predictions", {"n_value_bins": np.full(N_FEATURES, -1, np.int32)}),
    ("update_predictions", {"split_bin": np.array([-1, -1, -1], np.int32)}),
    ("route_rows", {"routed": np.zeros(N_ROWS - 1, np.uint32)}),
    ("route_rows", {"sides": np.zeros(N_ROWS - 1, np.uint8)}),
    (
        "route_rows",  # nodes that share a row
        {
            "nodes": np.concatenate((nodes(), nodes(begin=N_ROWS - 1, n_rows=1))),
            "splits": np.concatenate((splits(), splits())),
            "left_rows": np.zeros(2, np.int64),
        },
    ),
    ("route_rows", {"row_order": np.arange(N_ROWS)}),
    ("route_rows", {"row_order": np.full(N_ROWS, N_ROWS, np.uint32)}),
    ("route_rows", {"row_order": np.full(N_ROWS, 2**32 - 1, np.uint32)}),
    ("route_rows", {"columns": np.zeros((N_FEATURES, N_ROWS - 1), np.uint8)}),
    ("route_rows", {"n_value_bins": np.array([3], np.int32)}),
    ("route_rows", {"left_rows": np.zeros(2, np.int64)}),
    ("route_rows", {"splits": splits(feature=-1)}),
    ("route_rows", {"nodes": nodes(n_rows=N_ROWS + 1)}),
    ("round_gradients", {"hessians": None}),
    ("round_gradients", {"scales": np.full((1, 2), -127)}),
    ("round_gradients", {"gradients": np.zeros((N_ROWS, 1))}),
    ("round_gradients", {"totals": np.zeros((2, 2), np.int64)}),
    ("update_predictions", {"columns": np.zeros((1, N_ROWS), np.uint8)}),
    ("update_predictions", {"columns": np.zeros((N_FEATURES, N_ROWS - 1), np.uint8)}),
    ("update_predictions", {"n_value_bins": np.array([3], np.int32)}),
    ("update_predictions", {"feature": np.array([N_FEATURES, -1, -1], np.int32)}),
    ("update_predictions", {"left": np.array([2, -1, -1], np.int32)}),
    ("update_predictions", {"split_bin": np.array([1, -1], np.int32)}),
    ("update_predictions", {"flags": np.array([0, 0, 1], np.uint8)}),
    ("update_predictions", {"value": np.zeros((3, 2), np.float32)}),
    ("update_predictions", {"output": 1}),
    ("update_predictions", {"output": -1}),
    ("update_predictions", {"predictions": np.zeros((N_ROWS - 1, 1), np.float32)}),
    ("update_predictions", {"predictions": read_only(np.zeros((N_ROWS, 1), np.float32))}),
    ("update_routed", {"predictions": np.zeros((N_ROWS - 1, 1), np.float32)}),
    ("update_routed", {"left": np.array([2, -1, -1], np.int32)}),
    ("update_routed", {"nodes": nodes()[:0]}),
    ("update_routed", {"splits": splits()[:0]}),
    ("update_routed", {"left_rows": np.zeros(2, np.int64)}),
    ("update_routed", {"row_order": np.full(N_ROWS, N_ROWS, np.uint32), **ROUTED_NOWHERE}),
    ("update_routed", {"row_order": np.arange(N_ROWS - 1, dtype=np.uint32), **ROUTED_NOWHERE}),
    ("update_routed", {"split_bin": np.array([-1, -1, -1], np.int32), **ROUTED_NOWHERE}),
    ("predict", {"feature": np.array([N_FEATURES, -1, -1], np.int32)}),
    ("predict", {"left": np.array([0, -1, -1], np.int32)}),
    ("predict", {"left": np.array([2, -1, -1], np.int32)}),
    ("predict", {"offsets": np.array([0, 4])}),
    ("predict", {"value": np.zeros((3, 2), np.float32)}),
    ("predict", {"x": np.zeros((N_ROWS + 1, N_FEATURES))}),
    ("predict", {"sums": np.zeros((N_ROWS, 0), np.float32)}),
    ("predict_leaves", {"leaves": np.zeros((N_ROWS, 2), np.int32)}),
    ("predict_leaves", {"leaves": np.zeros((N_ROWS - 1, 1), np.int32)}),
    ("predict_leaves", {"leaves": np.zeros((N_ROWS, 1), np.int64)}),
    ("predict_leaves", {"feature": np.array([-2, -1, -1], np.int32)}),
    ("predict_leaves", {"offsets": np.array([1, 3])}),
    ("predict_leaves", {"offsets": np.zeros(0, np.int64)}),
    ("compute_losses", {"metric": 2}),  # there is no baseline
    ("compute_losses", {"metric": 6}),
    ("compute_losses", {"metric": -1}),
    ("compute_losses", {"predictions": np.zeros((N_ROWS - 1, 1), np.float32)}),
    ("compute_losses", {"weights": np.ones(N_ROWS - 1, np.float32)}),
    ("compute_losses", {"losses": np.zeros(N_ROWS - 1, np.float32)}),
    ("compute_losses", {"losses": read_only(np.zeros(N_ROWS, np.float32))}),
    ("compute_losses", {"margins": np.zeros((N_ROWS, 1), np.float32)}),
    ("compute_losses", {"predictions": np.zeros((N_ROWS, 0), np.float32)}),
    ("compute_losses of logistic", {"metric": 1}),
    ("compute_losses of logistic", {"metric": 5}),
    ("compute_losses of logistic", {"labels": np.zeros(N_ROWS + 1, np.float32)}),
    ("compute_losses of softmax", {"baseline": np.zeros((N_CLASSES, 3), np.float32)}),
    ("compute_losses of softmax", {"margins": np.zeros((N_ROWS + 1, N_CLASSES), np.float32)}),
    ("compute_losses of softmax", ONE_CLASS),
    ("sum_losses", {"losses": np.ones(N_ROWS)}),
    ("sum_losses", {"scale": 128}),
    ("sum_losses", {"scale": -127}),
    ("portable_math", {"function": 3}),
    ("portable_math", {"function": -1}),
    ("portable_math", {"x": np.ones(N_ROWS)}),
    ("portable_math", {"results": np.zeros(N_ROWS - 1, np.float32)}),
]
WRONG += [  # what is wrong for one of the steps is wrong for all of them in one pass
    ("search_level", wrong)
    for kernel, wrong in WRONG
    if kernel in ("build_histograms", "find_splits") and "n_outputs" not in wrong
]
WRONG += [
    ("search_level", {"nodes": nodes(build=False, sibling_slot=1)}),  # which is not in the batch
    ("search_level", {"sums": np.zeros((1, 3, 2), np.int64)}),
    ("search_level", TWO_NODES_OF_ONE_SLOT),
]


def test_every_kernel_is_listed() -> None:
    kernels = {name for name in dir(_native) if callable(getattr(_native, name))} - NO_KERNELS
    assert {name for name in kernels if not name.startswith("_")} == {
        kernel_of(name) for name in GOOD
    }


@pytest.mark.parametrize("kernel", sorted(GOOD))
def test_good_arguments_are_accepted(kernel: str) -> None:
    call(kernel, GOOD[kernel])
    for name in OPTIONAL.get(kernel, set()) - {"hessians"}:
        call(kernel, {**GOOD[kernel], name: None})


@pytest.mark.parametrize("kernel", sorted(name for name in GOOD if "n_threads" in GOOD[name]))
def test_there_is_at_least_one_thread_and_there_may_be_any_number(kernel: str) -> None:
    call(kernel, {**GOOD[kernel], "n_threads": 2**31 - 1})
    for n_threads in (0, -1, 2**31, None):
        with pytest.raises((TypeError, ValueError)):
            call(kernel, {**GOOD[kernel], "n_threads": n_threads})


@pytest.mark.parametrize(
    ("kernel", "wrong"), WRONG, ids=[f"{i}-{k}-{next(iter(w))}" for i, (k, w) in enumerate(WRONG)]
)
def test_wrong_arguments_are_refused(kernel: str, wrong: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        call(kernel, {**GOOD[kernel], **wrong})


NOTHING: list[tuple[str, dict[str, Any]]] = [
    (
        "transpose_bins",
        {
            "bins": np.zeros((0, N_FEATURES), np.uint8),
            "columns": np.zeros((N_FEATURES, 0), np.uint8),
        },
    ),
    ("cut_column", {"values": np.zeros(0)}),
    ("cut_column", {"thresholds": np.zeros(0)}),
    ("sample_rows", {"row_order": np.zeros(0, np.uint32)}),
    (
        "gather_rows",
        {"rows": np.zeros(0, np.uint32), "gathered": np.zeros((0, N_FEATURES), np.uint8)},
    ),
    (
        "gather_rows",
        {"given": np.zeros((N_ROWS, 0), np.uint8), "gathered": np.zeros((N_ROWS, 0), np.uint8)},
    ),
    ("build_histograms", {"nodes": nodes()[:0]}),
    ("build_histograms", {"nodes": nodes(n_rows=0)}),
    (
        "build_histograms",
        {
            "bins": np.zeros((N_ROWS, 0), np.uint8),
            "n_value_bins": np.zeros(0, np.int32),
            "bin_offsets": np.zeros(1, np.int64),
            "histograms": np.zeros((N_SLOTS, 0, 3), np.int64),
        },
    ),
    ("subtract_histograms", {"nodes": nodes()[:0]}),
    ("search_level", {"nodes": nodes(n_rows=0, count=0)}),
    (
        "search_level",
        {
            "nodes": nodes()[:0],
            "splits": splits()[:0],
            "sums": np.zeros((0, 1, 2), np.int64),
            "left_sums": np.zeros((0, 1, 2), np.int64),
        },
    ),
    (
        "search_level",
        {
            "bins": np.zeros((N_ROWS, 0), np.uint8),
            "n_value_bins": np.zeros(0, np.int32),
            "bin_offsets": np.zeros(1, np.int64),
            "histograms": np.zeros((N_SLOTS, 0, 3), np.int64),
        },
    ),
    ("route_rows", {"nodes": nodes(n_rows=0)}),
    (
        "route_rows",
        {"nodes": nodes()[:0], "splits": splits()[:0], "left_rows": np.zeros(0, np.int64)},
    ),
    (
        "update_predictions",
        {
            "columns": np.zeros((N_FEATURES, 0), np.uint8),
            "predictions": np.zeros((0, 1), np.float32),
        },
    ),
]
"""Calls with no rows, no nodes or no features."""


@pytest.mark.parametrize(
    ("kernel", "empty"), NOTHING, ids=[f"{i}-{k}" for i, (k, _) in enumerate(NOTHING)]
)
def test_there_may_be_nothing_to_do(kernel: str, empty: dict[str, Any]) -> None:
    call(kernel, {**GOOD[kernel], **empty})


@pytest.mark.parametrize("kernel", sorted(GOOD))
def test_no_argument_may_be_none_that_the_kernel_reads(kernel: str) -> None:
    for name in GOOD[kernel].keys() - OPTIONAL.get(kernel, set()):
        with pytest.raises((TypeError, ValueError)):
            call(kernel, {**GOOD[kernel], name: None})


@pytest.mark.parametrize("kernel", sorted(GOOD))
def test_inputs_may_be_read_only_and_outputs_may_not(kernel: str) -> None:
    for name, value in GOOD[kernel].items():
        if isinstance(value, np.ndarray):
            arguments = {**GOOD[kernel], name: read_only(value)}
            if name in OUTPUTS[kernel_of(kernel)]:
                with pytest.raises(TypeError):
                    call(kernel, arguments)
            else:
                call(kernel, arguments)


def test_row_ids_and_codes_are_read_of_the_nodes_alone() -> None:
    rows = np.full(N_ROWS, 2**32 - 1, np.uint32)
    rows[:3] = (0, 1, N_ROWS - 1)
    for kernel in ("build_histograms", "search_level", "route_rows"):
        call(kernel, {**GOOD[kernel], "row_order": rows, "nodes": nodes(n_rows=3)})


def test_codes_that_a_feature_does_not_have_leave_what_is_summed_of_others() -> None:
    bins = np.zeros((N_ROWS, N_FEATURES), np.uint8)
    bins[:, 1] = np.arange(4, 4 + N_ROWS)
    histograms = np.zeros((N_SLOTS, TOTAL_BINS, 3), np.int64)
    _native.build_histograms(**{**GOOD["build_histograms"], "bins": bins, "histograms": histograms})
    assert histograms[0, 0].tolist() == [N_ROWS] * 3
    assert not histograms[0, 1:].any() and not histograms[1].any()

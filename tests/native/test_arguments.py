"""A wrong call of a kernel is a TypeError or a ValueError; it never reaches foreign memory."""

from typing import Any

import numpy as np
import pytest

from torchgbdt import _native
from torchgbdt.core.backend import NODE_DTYPE
from torchgbdt.core.splits import SPLIT_DTYPE

N_ROWS, N_FEATURES, N_SLOTS = 12, 2, 2
TOTAL_BINS = 8


def read_only(array: np.ndarray) -> np.ndarray:
    array = array.copy()
    array.setflags(write=False)
    return array


def nodes(**fields: Any) -> np.ndarray:
    result = np.zeros(1, NODE_DTYPE)
    result["n_rows"] = result["count"] = N_ROWS
    result["build"] = True
    for name, value in fields.items():
        result[name] = value
    return result


def splits(**fields: Any) -> np.ndarray:
    result = np.zeros(1, SPLIT_DTYPE)
    result["found"] = True
    for name, value in fields.items():
        result[name] = value
    return result


LAYOUT = {
    "n_value_bins": np.array([3, 3], np.int32),
    "bin_offsets": np.array([0, 4, 8], np.int64),
}
GOOD: dict[str, dict[str, Any]] = {
    "bin_features": {
        "x": np.zeros((N_ROWS, N_FEATURES)),
        "is_bfloat16": False,
        "kept_rows": np.arange(N_ROWS),
        "thresholds": np.array([0.0, 1.0, 0.0, 1.0]),
        "offsets": np.array([0, 2, 4]),
        "n_value_bins": LAYOUT["n_value_bins"],
        "bins": np.zeros((N_ROWS, N_FEATURES), np.uint8),
        "n_threads": 2,
    },
    "build_histograms": {
        "bins": np.zeros((N_ROWS, N_FEATURES), np.uint8),
        **LAYOUT,
        "row_order": np.arange(N_ROWS, dtype=np.uint32),
        "fixed_point": np.ones((N_ROWS, 2), np.int32),
        "nodes": nodes(),
        "histograms": np.zeros((N_SLOTS, TOTAL_BINS, 3), np.int64),
        "n_outputs": 1,
        "n_threads": 2,
    },
    "subtract_histograms": {
        "nodes": nodes(build=False, sibling_slot=1),
        "histograms": np.zeros((N_SLOTS, TOTAL_BINS, 3), np.int64),
        "n_threads": 2,
    },
    "find_splits": {
        **LAYOUT,
        "histograms": np.zeros((N_SLOTS, TOTAL_BINS, 3), np.int64),
        "nodes": nodes(),
        "sums": np.zeros((1, 1, 2), np.int64),
        "reg_lambda": 0.0,
        "gamma": 0.0,
        "min_samples_leaf": 1,
        "min_hessian": np.ones(1, np.int64),
        "scales": np.zeros((1, 2), np.int64),
        "splits": splits(),
        "left_sums": np.zeros((1, 1, 2), np.int64),
        "n_threads": 2,
    },
    "route_rows": {
        "columns": np.zeros((N_FEATURES, N_ROWS), np.uint8),
        "n_value_bins": LAYOUT["n_value_bins"],
        "nodes": nodes(),
        "splits": splits(),
        "row_order": np.arange(N_ROWS, dtype=np.uint32),
        "scratch": np.zeros(N_ROWS, np.uint32),
        "left_rows": np.zeros(1, np.int64),
        "n_threads": 2,
    },
    "round_gradients": {
        "gradients": np.zeros((N_ROWS, 1), np.float32),
        "hessians": np.ones((N_ROWS, 1), np.float32),
        "scales": np.zeros((1, 2), np.int64),
        "fixed_point": np.zeros((N_ROWS, 2), np.int32),
        "totals": np.zeros((1, 2), np.int64),
        "n_threads": 2,
    },
    "predict": {
        "offsets": np.array([0, 3]),
        "feature": np.array([1, -1, -1], np.int32),
        "threshold": np.zeros(3),
        "left": np.array([1, -1, -1], np.int32),
        "flags": np.array([0, 1, 1], np.uint8),
        "value": np.zeros((3, 1), np.float32),
        "x": np.zeros((N_ROWS, N_FEATURES)),
        "is_bfloat16": False,
        "sums": np.zeros((N_ROWS, 1), np.float32),
        "n_threads": 2,
    },
}

WRONG: list[tuple[str, dict[str, Any]]] = [
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
    ("bin_features", {"n_threads": 0}),
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
    ("route_rows", {"scratch": np.zeros(N_ROWS - 1, np.uint32)}),
    ("route_rows", {"row_order": np.arange(N_ROWS)}),
    ("route_rows", {"nodes": nodes(n_rows=N_ROWS + 1)}),
    ("round_gradients", {"hessians": None}),
    ("round_gradients", {"scales": np.full((1, 2), -127)}),
    ("round_gradients", {"gradients": np.zeros((N_ROWS, 1))}),
    ("round_gradients", {"totals": np.zeros((2, 2), np.int64)}),
    ("predict", {"feature": np.array([N_FEATURES, -1, -1], np.int32)}),
    ("predict", {"left": np.array([0, -1, -1], np.int32)}),
    ("predict", {"left": np.array([2, -1, -1], np.int32)}),
    ("predict", {"offsets": np.array([0, 4])}),
    ("predict", {"value": np.zeros((3, 2), np.float32)}),
    ("predict", {"x": np.zeros((N_ROWS + 1, N_FEATURES))}),
    ("predict", {"sums": np.zeros((N_ROWS, 0), np.float32)}),
]


def call(kernel: str, arguments: dict[str, Any]) -> None:
    # Each call gets copies: an output of one must not be an input of the next.
    copies = {
        name: value.copy(order="K")
        if isinstance(value, np.ndarray) and value.flags.writeable
        else value
        for name, value in arguments.items()
    }
    getattr(_native, kernel)(**copies)


@pytest.mark.parametrize("kernel", sorted(GOOD))
def test_good_arguments_are_accepted(kernel: str) -> None:
    call(kernel, GOOD[kernel])


@pytest.mark.parametrize(
    ("kernel", "wrong"), WRONG, ids=[f"{i}-{k}-{next(iter(w))}" for i, (k, w) in enumerate(WRONG)]
)
def test_wrong_arguments_are_refused(kernel: str, wrong: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        call(kernel, {**GOOD[kernel], **wrong})


@pytest.mark.parametrize("kernel", sorted(GOOD))
def test_no_argument_may_be_none_that_the_kernel_reads(kernel: str) -> None:
    optional = {"kept_rows"}
    for name in GOOD[kernel].keys() - optional:
        with pytest.raises((TypeError, ValueError)):
            call(kernel, {**GOOD[kernel], name: None})


def test_inputs_may_be_read_only() -> None:
    arguments = dict(GOOD["build_histograms"])
    for name in ("bins", "n_value_bins", "bin_offsets", "row_order", "fixed_point", "nodes"):
        arguments[name] = read_only(arguments[name])
    call("build_histograms", arguments)

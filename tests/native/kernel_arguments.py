"""Good arguments of every kernel; a name "kernel of x" is another good call of the same kernel."""

from typing import Any

import numpy as np

from torchgbdt import _native
from torchgbdt.core.backend import NODE_DTYPE
from torchgbdt.core.splits import SPLIT_DTYPE

N_ROWS, N_FEATURES, N_SLOTS, N_CLASSES = 12, 2, 2, 3
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
ROWS = {
    "predictions": np.zeros((N_ROWS, 1), np.float32),
    "labels": np.ones(N_ROWS, np.float32),
    "weights": np.ones(N_ROWS, np.float32),
    "baseline": None,
    "margins": None,
}
LOGISTIC_ROWS = {
    **ROWS,
    "baseline": np.zeros((1, 2), np.float32),
    "margins": np.zeros((N_ROWS, 1), np.float32),
}
SOFTMAX_ROWS = {
    **ROWS,
    "predictions": np.zeros((N_ROWS, N_CLASSES), np.float32),
    "baseline": np.zeros((N_CLASSES, 2), np.float32),
    "margins": np.zeros((N_ROWS, N_CLASSES), np.float32),
}
ONE_OUTPUT = {
    "softmax_terms": None,
    "output": 0,
    "gradients": np.zeros(N_ROWS, np.float32),
    "hessians": np.zeros(N_ROWS, np.float32),
    "n_threads": 2,
}
LOSSES = {"losses": np.zeros(N_ROWS, np.float32), "n_threads": 2}
FOREST = {
    "offsets": np.array([0, 3]),
    "feature": np.array([1, -1, -1], np.int32),
    "threshold": np.zeros(3),
    "left": np.array([1, -1, -1], np.int32),
    "flags": np.array([0, 1, 1], np.uint8),
    "value": np.zeros((3, 1), np.float32),
    "x": np.zeros((N_ROWS, N_FEATURES)),
    "is_bfloat16": False,
}
HISTOGRAM_ROWS = {
    "bins": np.zeros((N_ROWS, N_FEATURES), np.uint8),
    **LAYOUT,
    "row_order": np.arange(N_ROWS, dtype=np.uint32),
    "fixed_point": np.ones((N_ROWS, 2), np.int32),
}
SEARCH = {
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
}
GOOD: dict[str, dict[str, Any]] = {
    "distinct_values": {
        "x": np.zeros((N_ROWS, N_FEATURES)),
        "is_bfloat16": False,
        "kept_rows": np.arange(N_ROWS),
        "first_feature": 1,
        "values": np.zeros((1, 255)),
        "counts": np.zeros(1, np.int64),
        "n_threads": 2,
    },
    "sort_columns": {
        "x": np.zeros((N_ROWS, N_FEATURES)),
        "is_bfloat16": False,
        "rows": np.arange(N_ROWS),
        "first_feature": 1,
        "columns": np.zeros((1, N_ROWS)),
        "n_threads": 2,
    },
    "cut_column": {"values": np.arange(9.0), "thresholds": np.zeros(3)},
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
    "transpose_bins": {
        "bins": np.full((N_ROWS, N_FEATURES), 3, np.uint8),
        "n_value_bins": LAYOUT["n_value_bins"],
        "columns": np.zeros((N_FEATURES, N_ROWS), np.uint8),
        "n_threads": 2,
    },
    "sample_rows": {"row_order": np.zeros(N_ROWS, np.uint32), "n_threads": 2},
    "gather_rows": {
        "given": np.zeros((N_ROWS, N_FEATURES), np.uint8),
        "rows": np.arange(N_ROWS, dtype=np.uint32),
        "gathered": np.zeros((N_ROWS, N_FEATURES), np.uint8),
        "n_threads": 2,
    },
    "compute_gradients": {"objective": 0, **ROWS, **ONE_OUTPUT},
    "compute_gradients of logistic": {"objective": 1, **LOGISTIC_ROWS, **ONE_OUTPUT},
    "compute_gradients of softmax": {
        "objective": 2,
        **SOFTMAX_ROWS,
        **ONE_OUTPUT,
        "softmax_terms": np.zeros((2, N_ROWS), np.float32),
        "output": 2,
    },
    "compute_softmax_terms": {
        "predictions": SOFTMAX_ROWS["predictions"],
        "baseline": SOFTMAX_ROWS["baseline"],
        "margins": SOFTMAX_ROWS["margins"],
        "terms": np.zeros((2, N_ROWS), np.float32),
        "n_threads": 2,
    },
    "load_gradients": {
        "given_gradients": np.ones((N_ROWS, 2), np.float32),
        "given_hessians": np.ones((N_ROWS, 2), np.float32),
        "gradients": np.zeros((N_ROWS, 2), np.float32),
        "hessians": np.zeros((N_ROWS, 2), np.float32),
        "n_threads": 2,
    },
    "build_histograms": {
        **HISTOGRAM_ROWS,
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
    "find_splits": {**LAYOUT, **SEARCH},
    "search_level": {**HISTOGRAM_ROWS, **SEARCH, "keep": True},
    "route_rows": {
        "columns": np.zeros((N_FEATURES, N_ROWS), np.uint8),
        "n_value_bins": LAYOUT["n_value_bins"],
        "nodes": nodes(),
        "splits": splits(),
        "row_order": np.arange(N_ROWS, dtype=np.uint32),
        "sides": np.zeros(N_ROWS, np.uint8),
        "routed": np.zeros(N_ROWS, np.uint32),
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
    "update_predictions": {
        "columns": np.zeros((N_FEATURES, N_ROWS), np.uint8),
        "n_value_bins": LAYOUT["n_value_bins"],
        "feature": FOREST["feature"],
        "split_bin": np.array([1, -1, -1], np.int32),
        "left": FOREST["left"],
        "flags": FOREST["flags"],
        "value": FOREST["value"],
        "output": 0,
        "predictions": np.zeros((N_ROWS, 1), np.float32),
        "n_threads": 2,
    },
    "update_routed": {
        "columns": np.zeros((N_FEATURES, N_ROWS), np.uint8),
        "n_value_bins": LAYOUT["n_value_bins"],
        "feature": FOREST["feature"],
        "split_bin": np.array([1, -1, -1], np.int32),
        "left": FOREST["left"],
        "flags": FOREST["flags"],
        "value": FOREST["value"],
        "nodes": nodes(),
        "splits": splits(),
        "left_rows": np.zeros(1, np.int64),
        "row_order": np.arange(N_ROWS, dtype=np.uint32),
        "output": 0,
        "predictions": np.zeros((N_ROWS, 1), np.float32),
        "n_threads": 2,
    },
    "predict": {**FOREST, "sums": np.zeros((N_ROWS, 1), np.float32), "n_threads": 2},
    "predict_leaves": {**FOREST, "leaves": np.zeros((N_ROWS, 1), np.int32), "n_threads": 2},
    "compute_losses": {"metric": 0, **ROWS, **LOSSES},
    "compute_losses of logistic": {"metric": 3, **LOGISTIC_ROWS, **LOSSES},
    "compute_losses of softmax": {"metric": 4, **SOFTMAX_ROWS, **LOSSES},
    "sum_losses": {"losses": np.ones(N_ROWS, np.float32), "scale": 0, "n_threads": 2},
    "portable_math": {
        "function": 0,
        "x": np.ones(N_ROWS, np.float32),
        "results": np.zeros(N_ROWS, np.float32),
        "n_threads": 2,
    },
}
OPTIONAL = {
    "distinct_values": {"kept_rows"},
    "sort_columns": {"rows"},
    "bin_features": {"kept_rows"},
    "compute_gradients": {"weights", "baseline", "margins", "softmax_terms", "hessians"},
    "compute_gradients of logistic": {"weights", "margins", "softmax_terms"},
    "compute_gradients of softmax": {"weights", "margins"},
    "compute_softmax_terms": {"margins"},
    "load_gradients": {"hessians"},
    "compute_losses": {"weights", "baseline", "margins"},
    "compute_losses of logistic": {"weights", "margins"},
    "compute_losses of softmax": {"weights", "margins"},
}
OUTPUTS = {
    "distinct_values": {"values", "counts"},
    "sort_columns": {"columns"},
    "cut_column": {"thresholds"},
    "bin_features": {"bins"},
    "transpose_bins": {"columns"},
    "sample_rows": {"row_order"},
    "gather_rows": {"gathered"},
    "compute_gradients": {"gradients", "hessians"},
    "compute_softmax_terms": {"terms"},
    "load_gradients": {"gradients", "hessians"},
    "round_gradients": {"fixed_point", "totals"},
    "build_histograms": {"histograms"},
    "subtract_histograms": {"histograms"},
    "find_splits": {"splits", "left_sums"},
    "search_level": {"histograms", "splits", "left_sums"},
    "route_rows": {"sides", "routed", "left_rows"},
    "update_predictions": {"predictions"},
    "update_routed": {"predictions"},
    "predict": {"sums"},
    "predict_leaves": {"leaves"},
    "compute_losses": {"losses"},
    "sum_losses": set(),
    "portable_math": {"results"},
}


def kernel_of(name: str) -> str:
    return name.partition(" of ")[0]


def call(name: str, arguments: dict[str, Any]) -> None:
    # Each call gets copies: an output of one must not be an input of the next.
    copies = {
        name: value.copy(order="K")
        if isinstance(value, np.ndarray) and value.flags.writeable
        else value
        for name, value in arguments.items()
    }
    getattr(_native, kernel_of(name))(**copies)

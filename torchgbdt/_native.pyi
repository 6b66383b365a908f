"""Types of the native kernels; csrc/cpu/kernels.h says what each of them does.

Arrays are C-ordered and used in place. A wrong dtype or number of axes is a TypeError, sizes or
indices that do not fit together are a ValueError. All kernels release the GIL.
"""

import numpy as np
from numpy.typing import NDArray

from torchgbdt.core.arrays import (
    AnyArray,
    BinArray,
    Float32Array,
    Float64Array,
    Int32Array,
    Int64Array,
    RecordArray,
)

def version() -> str: ...
def pool_size() -> int: ...
def distinct_values(
    x: AnyArray,
    is_bfloat16: bool,
    kept_rows: Int64Array | None,
    first_feature: int,
    values: Float64Array,
    counts: Int64Array,
    n_threads: int,
) -> None: ...
def sort_columns(
    x: AnyArray,
    is_bfloat16: bool,
    rows: Int64Array | None,
    first_feature: int,
    columns: Float64Array,
    n_threads: int,
) -> None: ...
def cut_column(values: Float64Array, thresholds: Float64Array) -> int: ...
def bin_features(
    x: AnyArray,
    is_bfloat16: bool,
    kept_rows: Int64Array | None,
    thresholds: Float64Array,
    offsets: Int64Array,
    n_value_bins: Int32Array,
    bins: BinArray,
    n_threads: int,
) -> None: ...
def predict(
    offsets: Int64Array,
    feature: Int32Array,
    threshold: Float64Array,
    left: Int32Array,
    flags: BinArray,
    value: Float32Array,
    x: AnyArray,
    is_bfloat16: bool,
    sums: Float32Array,
    n_threads: int,
) -> None: ...
def predict_leaves(
    offsets: Int64Array,
    feature: Int32Array,
    threshold: Float64Array,
    left: Int32Array,
    flags: BinArray,
    value: Float32Array,
    x: AnyArray,
    is_bfloat16: bool,
    leaves: Int32Array,
    n_threads: int,
) -> None: ...
def transpose_bins(
    bins: BinArray, n_value_bins: Int32Array, columns: BinArray, n_threads: int
) -> None: ...
def sample_rows(row_order: NDArray[np.uint32], n_threads: int) -> None: ...
def gather_rows(
    given: NDArray[np.uint8],
    rows: NDArray[np.uint32],
    gathered: NDArray[np.uint8],
    n_threads: int,
) -> None: ...
def compute_softmax_terms(
    predictions: Float32Array,
    baseline: Float32Array,
    margins: Float32Array | None,
    terms: Float32Array,
    n_threads: int,
) -> None: ...
def compute_gradients(
    objective: int,
    predictions: Float32Array,
    labels: Float32Array,
    weights: Float32Array | None,
    baseline: Float32Array | None,
    margins: Float32Array | None,
    softmax_terms: Float32Array | None,
    output: int,
    gradients: Float32Array,
    hessians: Float32Array | None,
    n_threads: int,
) -> tuple[float, float, float, bool]: ...
def load_gradients(
    given_gradients: Float32Array,
    given_hessians: Float32Array,
    gradients: Float32Array,
    hessians: Float32Array | None,
    n_threads: int,
) -> list[tuple[float, float, float, bool]]: ...
def round_gradients(
    gradients: Float32Array,
    hessians: Float32Array | None,
    scales: Int64Array,
    fixed_point: Int32Array,
    totals: Int64Array,
    n_threads: int,
) -> int: ...
def build_histograms(
    bins: BinArray,
    n_value_bins: Int32Array,
    bin_offsets: Int64Array,
    row_order: NDArray[np.uint32],
    fixed_point: Int32Array,
    nodes: RecordArray,
    histograms: Int64Array,
    n_outputs: int,
    n_threads: int,
) -> None: ...
def subtract_histograms(nodes: RecordArray, histograms: Int64Array, n_threads: int) -> None: ...
def find_splits(
    n_value_bins: Int32Array,
    bin_offsets: Int64Array,
    histograms: Int64Array,
    nodes: RecordArray,
    sums: Int64Array,
    reg_lambda: float,
    gamma: float,
    min_samples_leaf: int,
    min_hessian: Int64Array,
    scales: Int64Array,
    splits: RecordArray,
    left_sums: Int64Array,
    n_threads: int,
) -> None: ...
def search_level(
    bins: BinArray,
    n_value_bins: Int32Array,
    bin_offsets: Int64Array,
    row_order: NDArray[np.uint32],
    fixed_point: Int32Array,
    nodes: RecordArray,
    sums: Int64Array,
    reg_lambda: float,
    gamma: float,
    min_samples_leaf: int,
    min_hessian: Int64Array,
    scales: Int64Array,
    keep: bool,
    histograms: Int64Array,
    splits: RecordArray,
    left_sums: Int64Array,
    n_threads: int,
) -> None: ...
def route_rows(
    columns: BinArray,
    n_value_bins: Int32Array,
    nodes: RecordArray,
    splits: RecordArray,
    row_order: NDArray[np.uint32],
    sides: NDArray[np.uint8],
    routed: NDArray[np.uint32],
    left_rows: Int64Array,
    n_threads: int,
) -> None: ...
def update_predictions(
    columns: BinArray,
    n_value_bins: Int32Array,
    feature: Int32Array,
    split_bin: Int32Array,
    left: Int32Array,
    flags: BinArray,
    value: Float32Array,
    output: int,
    predictions: Float32Array,
    n_threads: int,
) -> None: ...
def update_routed(
    columns: BinArray,
    n_value_bins: Int32Array,
    feature: Int32Array,
    split_bin: Int32Array,
    left: Int32Array,
    flags: BinArray,
    value: Float32Array,
    nodes: RecordArray,
    splits: RecordArray,
    left_rows: Int64Array,
    row_order: NDArray[np.uint32],
    output: int,
    predictions: Float32Array,
    n_threads: int,
) -> bool: ...
def compute_losses(
    metric: int,
    predictions: Float32Array,
    labels: Float32Array,
    weights: Float32Array | None,
    baseline: Float32Array | None,
    margins: Float32Array | None,
    losses: Float32Array,
    n_threads: int,
) -> tuple[float, bool]: ...
def sum_losses(losses: Float32Array, scale: int, n_threads: int) -> int: ...
def portable_math(
    function: int, x: Float32Array, results: Float32Array, n_threads: int
) -> None: ...

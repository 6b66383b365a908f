"""Labels, weights and margins at the door: one number per input row, checked before use.

Rows of weight zero do not count: whatever their label or margin holds is not looked at.
"""

import numpy as np

from torchgbdt.core.array_ops import NUMPY, Array, ArrayOps
from torchgbdt.core.arrays import (
    LARGEST_FLOAT32,
    MAX_EXACT_INTEGER,
    AnyArray,
    BoolArray,
    Float32Array,
)
from torchgbdt.core.errors import InvalidDataError
from torchgbdt.core.feature_source import row_blocks
from torchgbdt.core.fixed_point import flush_subnormals, is_finite

_REAL = "biuf"  # kinds of numpy dtypes


def check_labels(
    labels: AnyArray, n_rows: int, name: str = "y", dropped: BoolArray | None = None
) -> AnyArray:
    """Labels of any kind in the dtype that they came in, one per row; a copy.

    Parameters
    ----------
    labels : numbers, bools or numpy texts, (n_rows,) or (n_rows, 1). IN.
    dropped : bool, (n_rows,), rows that do not count, or None. IN.

    Raises
    ------
    InvalidDataError : wrong length or shape, another kind, NaN or infinite.
    """
    _check_kind(labels, name, kinds="biufU")
    labels = _one_column(labels, n_rows, name).copy()
    if labels.dtype.kind != "f":
        return labels
    for rows in row_blocks(n_rows, labels.itemsize):
        bad = ~np.isfinite(labels[rows])
        if dropped is not None:
            bad &= ~dropped[rows]
        if bad.any():
            position = rows.start + int(np.flatnonzero(bad)[0])
            raise InvalidDataError(
                f"{name} has {labels[position]} in row {position}; every label must be finite. "
                f"Drop such rows, or impute them."
            )
    return labels


def regression_targets(
    labels: AnyArray, name: str = "y", dropped: BoolArray | None = None
) -> AnyArray:
    """Real targets as float32 (where that is what came in) or float64, flushed; a copy.

    Parameters
    ----------
    labels : from ``check_labels``, (n_rows,). IN.
    dropped : bool, (n_rows,), rows that do not count, or None; their targets become 0. IN.

    Raises
    ------
    InvalidDataError : text, a value beyond float32, or integers beyond 2^53.
    """
    if labels.dtype.kind == "U":
        raise InvalidDataError(
            f"{name} holds texts, such as {labels[:1].tolist()}; a regression needs real numbers. "
            f"To predict classes use objective='logistic' or 'softmax'."
        )
    result = labels.astype(np.float32 if labels.dtype == np.float32 else np.float64)
    for rows in row_blocks(labels.size, result.itemsize):
        block = result[rows]
        if dropped is not None:
            block[dropped[rows]] = 0
        largest = np.abs(block).max()
        if largest > LARGEST_FLOAT32:
            raise InvalidDataError(
                f"{name} has a value of magnitude {largest:g}; targets must lie within float32 "
                f"({LARGEST_FLOAT32:.2g}). Scale {name}."
            )
        # A float64 of 2^53 may stand for 2^53 + 1 before rounding, so that border is out as well.
        if labels.dtype.kind in "iu" and largest >= MAX_EXACT_INTEGER:
            raise InvalidDataError(
                f"{name} has an integer of magnitude {largest:.0f}; integers from 2^53 on have no "
                f"float64 of their own. Scale {name}, or subtract an offset."
            )
        block[flush_subnormals(block) == 0] = 0
    return result


def check_weights(
    weights: AnyArray,
    n_rows: int,
    name: str = "sample_weight",
    *,
    may_be_all_zero: bool = False,
) -> Float32Array:
    """Weights as float32, flushed: one below 2^-126 counts as zero.

    Parameters
    ----------
    weights : real numbers, (n_rows,). IN.
    may_be_all_zero : for one rank's share of the rows; other ranks may hold those that count.

    Raises
    ------
    InvalidDataError : wrong length or shape, not real numbers, NaN, infinite, negative, beyond
        float32, or all zero.
    """
    _check_kind(weights, name)
    _check_vector(weights, n_rows, name)
    result = np.empty(n_rows, np.float32)
    for rows in row_blocks(n_rows, 8):
        given = weights[rows].astype(np.float64)
        bad = ~(np.isfinite(given) & (given >= 0))
        if bad.any():
            position = int(np.flatnonzero(bad)[0])
            raise InvalidDataError(
                f"{name} has {given[position]} in row {rows.start + position}; weights must be "
                f"finite and >= 0. Use 0 to leave a row out."
            )
        result[rows] = flush_subnormals(given)
        if np.isinf(result[rows]).any():
            raise InvalidDataError(
                f"{name} has {given.max():g}; weights must lie within float32 "
                f"({LARGEST_FLOAT32:.2g}). Scale them."
            )
    if not may_be_all_zero and not (result > 0).any():
        raise InvalidDataError(f"{name} is zero in every row; at least one row must count.")
    return result


def check_margins(
    margins: AnyArray,
    n_rows: int,
    name: str = "base_margin",
    dropped: BoolArray | None = None,
    n_outputs: int = 1,
) -> Float32Array:
    """Per-row margins as float32, flushed, (n_rows, n_outputs).

    Parameters
    ----------
    margins : real numbers, (n_rows,) or (n_rows, n_outputs). IN.
    dropped : bool, (n_rows,), rows that do not count, or None; their margins become 0. IN.
    n_outputs : columns of the raw prediction.

    Raises
    ------
    InvalidDataError : wrong length or shape, not real numbers, NaN or not finite in float32.
    """
    _check_kind(margins, name)
    result: Float32Array = float32_margins(margins, n_rows, name, n_outputs, dropped)
    return result


def float32_margins(
    margins: Array,
    n_rows: int,
    name: str,
    n_outputs: int,
    dropped: BoolArray | None = None,
    ops: ArrayOps = NUMPY,
) -> Array:
    """See ``check_margins``; real numbers in an array of the library of ops."""
    columns = margins[:, None] if margins.ndim == 1 else margins
    if n_outputs == 1 or columns.ndim != 2:
        columns = _one_column(margins, n_rows, name)[:, None]
    if columns.shape != (n_rows, n_outputs):
        raise InvalidDataError(
            f"{name} has shape {tuple(margins.shape)}; X has {n_rows} rows, so ({n_rows}, "
            f"{n_outputs}) is expected: one margin per raw prediction."
        )
    result = flush_subnormals(columns, ops)
    if dropped is not None:
        result[dropped] = 0
    bad = ~is_finite(result, ops)
    if bad.any():
        row, column = divmod(int(ops.first_largest(ops.to_int32(bad).reshape(1, -1))[0]), n_outputs)
        raise InvalidDataError(
            f"{name} has {float(columns[row, column])} in row {row}; margins must be finite in "
            f"float32."
        )
    return result


def _one_column(values: Array, n_rows: int, name: str) -> Array:
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    _check_vector(values, n_rows, name)
    return values


def _check_vector(values: Array, n_rows: int, name: str) -> None:
    if values.shape != (n_rows,):
        raise InvalidDataError(
            f"{name} has shape {tuple(values.shape)}; X has {n_rows} rows, so ({n_rows},) is "
            f"expected."
        )


def _check_kind(values: AnyArray, name: str, kinds: str = _REAL) -> None:
    if values.dtype.kind not in kinds:
        allowed = "real numbers" if kinds == _REAL else "real numbers, bools or texts"
        raise InvalidDataError(
            f"{name} has dtype {values.dtype}; it must hold {allowed}. Encode it first."
        )

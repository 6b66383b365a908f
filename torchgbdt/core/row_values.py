"""Labels, weights and margins at the door: one number per input row, checked before use.

Rows of weight zero do not count: whatever their label or margin holds is not looked at.
"""

import numpy as np

from torchgbdt.core.arrays import (
    LARGEST_FLOAT32,
    MAX_EXACT_INTEGER,
    AnyArray,
    BoolArray,
    Float32Array,
)
from torchgbdt.core.errors import InvalidDataError
from torchgbdt.core.feature_source import row_blocks
from torchgbdt.core.fixed_point import flush_subnormals


def check_labels(
    labels: AnyArray, n_rows: int, name: str = "y", dropped: BoolArray | None = None
) -> AnyArray:
    """Labels of a regression as float32 (where that is what came in) or float64, flushed.

    Parameters
    ----------
    labels : real numbers, (n_rows,) or (n_rows, 1). IN.
    dropped : bool, (n_rows,), rows that do not count, or None; their labels become 0. IN.

    Raises
    ------
    InvalidDataError : wrong length or shape, text or complex labels, NaN, infinite or beyond
        float32, integers beyond 2^53.
    """
    labels = _one_column(labels, n_rows, name)
    result = labels.astype(np.float32 if labels.dtype == np.float32 else np.float64)
    for rows in row_blocks(n_rows, result.itemsize):
        block = result[rows]
        if dropped is not None:
            block[dropped[rows]] = 0
        if not np.isfinite(block).all():
            position = int(np.flatnonzero(~np.isfinite(block))[0])
            raise InvalidDataError(
                f"{name} has {block[position]} in row {rows.start + position}; every target must "
                f"be finite. Drop such rows, or impute them."
            )
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
    margins: AnyArray, n_rows: int, name: str = "base_margin", dropped: BoolArray | None = None
) -> Float32Array:
    """Per-row margins as float32, flushed, (n_rows,).

    Parameters
    ----------
    margins : real numbers, (n_rows,) or (n_rows, 1). IN.
    dropped : bool, (n_rows,), rows that do not count, or None; their margins become 0. IN.

    Raises
    ------
    InvalidDataError : wrong length or shape, not real numbers, NaN or not finite in float32.
    """
    margins = _one_column(margins, n_rows, name)
    result = flush_subnormals(margins)
    if dropped is not None:
        result[dropped] = 0
    if not np.isfinite(result).all():
        row = int(np.flatnonzero(~np.isfinite(result))[0])
        raise InvalidDataError(
            f"{name} has {margins[row]} in row {row}; margins must be finite in float32."
        )
    return result


def _one_column(values: AnyArray, n_rows: int, name: str) -> AnyArray:
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    _check_vector(values, n_rows, name)
    return values


def _check_vector(values: AnyArray, n_rows: int, name: str) -> None:
    if values.dtype.kind not in "biuf":
        raise InvalidDataError(
            f"{name} has dtype {values.dtype}; it must hold real numbers. Encode it first."
        )
    if values.shape != (n_rows,):
        raise InvalidDataError(
            f"{name} has shape {tuple(values.shape)}; X has {n_rows} rows, so ({n_rows},) is "
            f"expected."
        )

"""Rows that early stopping holds out of training, where the user passed no evaluation set."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing, check_consistent_length

from torchgbdt.core.arrays import BoolArray, Int32Array, Int64Array
from torchgbdt.core.errors import InvalidDataError, InvalidParameterError
from torchgbdt.core.random import Purpose, random_keys
from torchgbdt.core.row_values import check_weights
from torchgbdt.sklearn_api.inputs import to_host
from torchgbdt.torch_api.fit_arguments import FitArguments


def hold_out(
    given: FitArguments, validation_fraction: float | int, seed: int, codes: Int32Array | None
) -> FitArguments:
    """The arguments of ``fit`` with some rows moved into an evaluation set: copies of both parts.

    Only rows that count are dealt out, so that rows of weight zero change nothing.

    Parameters
    ----------
    given : as ``inputs.read_fit_arguments`` returned it, without an evaluation set.
    validation_fraction : share, or number, of the rows that count.
    seed : 0 <= seed < 2^64, decides which.
    codes : of the classes whose shares both parts keep, (n_kept,), one per row that counts; None
        for real targets. IN.

    Raises
    ------
    InvalidDataError : one of the parts would have no rows.
    """
    for name in ("eval_sample_weight", "eval_base_margin"):
        if getattr(given, name) is not None:
            raise InvalidDataError(
                f"{name} belongs to eval_set, which is None. Leave it out, or pass eval_set."
            )
    kept = kept_rows(given)
    held_out = choose_rows(kept.size, validation_fraction, seed, codes)
    train, valid = kept[~held_out], kept[held_out]
    weight, margin = given.sample_weight, given.base_margin
    return replace(
        given,
        X=_take(given.X, train),
        y=_take(given.y, train),
        sample_weight=_take(weight, train),
        base_margin=_take(margin, train),
        eval_set=[(_take(given.X, valid), _take(given.y, valid))],
        eval_sample_weight=[_take(weight, valid)],
        eval_base_margin=[_take(margin, valid)],
    )


def choose_rows(
    n_rows: int, validation_fraction: float | int, seed: int, codes: Int32Array | None
) -> BoolArray:
    """Which rows are held out: of each class those with the smallest random keys; bool, (n_rows,).

    Integers only, and keys of Philox: the same rows wherever and with whatever this runs. A class
    gets its share by largest remainders (ties: the smaller code), and always keeps a row to be
    trained on.

    Parameters
    ----------
    n_rows, codes : of the rows that count; see ``hold_out``.
    """
    n_valid = _n_valid(n_rows, validation_fraction)
    codes = np.zeros(n_rows, np.int32) if codes is None else codes
    counts = np.bincount(codes)
    quotas, remainders = np.divmod(n_valid * counts, n_rows)
    for code in np.argsort(-remainders, kind="stable").tolist():
        if quotas.sum() < n_valid and quotas[code] < counts[code] - 1:
            quotas[code] += 1
    keys = random_keys(seed, Purpose.VALIDATION_SPLIT, 0, np.arange(n_rows))
    by_class = np.lexsort((keys, codes))
    place_in_class = np.arange(n_rows) - np.repeat(np.cumsum(counts) - counts, counts)
    held_out = np.zeros(n_rows, np.bool_)
    held_out[by_class] = place_in_class < np.repeat(quotas, counts)
    if not held_out.any():
        raise InvalidDataError(
            "no row can be held out for early stopping: every class has one row only. Pass "
            "eval_set, or early_stopping=False."
        )
    return held_out


def _n_valid(n_rows: int, validation_fraction: float | int) -> int:
    if isinstance(validation_fraction, float | np.floating):
        n_valid = math.ceil(n_rows * float(validation_fraction))
    else:
        n_valid = int(validation_fraction)
    if not 1 <= n_valid < n_rows:
        raise InvalidDataError(
            f"validation_fraction={validation_fraction!r} holds {n_valid} of {n_rows} rows out of "
            f"training; at least one row must be on either side. Lower it, or pass eval_set."
        )
    return n_valid


def kept_rows(given: FitArguments) -> Int64Array:
    """Numbers of the rows that count: those of positive weight."""
    check_consistent_length(given.X, given.y, given.sample_weight, given.base_margin)
    n_rows = len(given.y)
    if given.sample_weight is None:
        return np.arange(n_rows)
    return np.flatnonzero(check_weights(to_host(given.sample_weight, "sample_weight"), n_rows))


def check_validation_fraction(value: Any) -> None:
    """Raise InvalidParameterError unless it is a share between 0 and 1, or a number of rows."""
    is_share = isinstance(value, float | np.floating) and 0 < value < 1
    is_count = isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 1
    if not (is_share or is_count):
        raise InvalidParameterError(
            f"validation_fraction must be a share between 0 and 1, or a number of rows >= 1; "
            f"found {value!r}."
        )


def _take(values: Any, rows: Int64Array) -> Any:
    """The given rows of an array, a tensor or a data frame; None stays None."""
    return None if values is None else _safe_indexing(values, rows)

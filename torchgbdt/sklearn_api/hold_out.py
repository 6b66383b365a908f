"""Rows that early stopping holds out of training, where the user passed no evaluation set."""

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split
from sklearn.utils import _safe_indexing, check_consistent_length

from torchgbdt.core.arrays import AnyArray, Int64Array
from torchgbdt.core.errors import InvalidDataError, InvalidParameterError
from torchgbdt.core.row_values import check_weights
from torchgbdt.sklearn_api.inputs import to_host
from torchgbdt.torch_api.fit_arguments import FitArguments


def hold_out(
    given: FitArguments, validation_fraction: float | int, seed: int, labels: AnyArray | None
) -> FitArguments:
    """The arguments of ``fit`` with some rows moved into an evaluation set.

    Only rows that count are dealt out, so that rows of weight zero change nothing.

    Parameters
    ----------
    given : as ``inputs.read_fit_arguments`` returned it, without an evaluation set.
    validation_fraction : share, or number, of the rows that count.
    seed : 0 <= seed < 2^64, decides which.
    labels : classes whose shares both parts keep, (n_rows,); None for real targets. IN.
    """
    for name in ("eval_sample_weight", "eval_base_margin"):
        if getattr(given, name) is not None:
            raise InvalidDataError(
                f"{name} belongs to eval_set, which is None. Leave it out, or pass eval_set."
            )
    kept = kept_rows(given)
    train, valid = train_test_split(
        kept,
        test_size=validation_fraction,
        stratify=None if labels is None else labels[kept],
        random_state=np.random.RandomState(np.random.MT19937(np.random.SeedSequence(seed))),
    )
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

"""From what users pass to what a ``tg.Trainer`` takes, checked as scikit-learn's users expect.

    torch tensor, data frame ------------------------> as it is: the Trainer reads both in place
    numpy array, list, whatever numpy can convert ---> numpy array; real numbers are not copied

Shapes, lengths and ranges are left to the Trainer.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.base import is_classifier
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from torchgbdt.core.errors import InvalidDataError
from torchgbdt.torch_api.columns import recognize
from torchgbdt.torch_api.dataset import Dataset
from torchgbdt.torch_api.fit_arguments import FitArguments
from torchgbdt.torch_api.labels import read_labels
from torchgbdt.torch_api.tensors import read_vector


def read_features(estimator: Any, X: Any, *, reset: bool) -> Any:
    """X as a Trainer or a Model takes it; its width and column names are noted or compared.

    Parameters
    ----------
    estimator : gets ``n_features_in_`` and ``feature_names_in_`` with ``reset``, else has them. IN-
        OUT.
    X : (n_rows, n_features). IN.

    Raises
    ------
    ValueError : another width or other names than ``fit`` saw; not a matrix of real numbers.
    """
    if isinstance(X, Dataset):
        raise InvalidDataError(
            "X is a Dataset, which scikit-learn cannot slice; estimators take tensors, arrays and "
            "data frames. Pass one of those, or train on the Dataset with tg.Trainer."
        )
    if _is_read_in_place(X):
        return validate_data(estimator, X, reset=reset, skip_check_array=True)
    # nan is a missing value, and infinities are values like others.
    return validate_data(estimator, X, reset=reset, ensure_all_finite=False)


def read_targets(estimator: Any, y: Any, name: str) -> Any:
    """One target per row, (n_rows,); real numbers unless the estimator is a classifier.

    A column of an array is taken for a vector with scikit-learn's warning; one of a tensor without,
    as modules return columns.
    """
    if isinstance(y, torch.Tensor):
        y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
        if y.ndim != 1:
            raise InvalidDataError(
                f"{name} has shape {tuple(y.shape)}; one target per row, (n_rows,), is expected. "
                f"Train an estimator for each column."
            )
        return y
    if not is_classifier(estimator):
        return column_or_1d(y, dtype="numeric", warn=True)
    labels = read_labels(y, name, {})
    if labels.ndim == 2 and isinstance(y, np.ndarray):
        return column_or_1d(labels, warn=True)
    return labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels


def read_row_values(values: Any, name: str) -> Any:
    """Weights or margins; None stays None. Shapes and ranges are checked by the Trainer."""
    if values is None or isinstance(values, torch.Tensor):
        return values
    return check_array(values, ensure_2d=False, ensure_all_finite=False, input_name=name)


def read_fit_arguments(estimator: Any, given: FitArguments, *, reset: bool) -> FitArguments:
    """Every argument of ``fit``; see ``read_features`` for ``reset``.

    What is no list of the right form is passed on: the Trainer says what is wrong with it.
    """
    if given.y is None:
        validate_data(estimator, given.X, None, skip_check_array=True)  # raises
    return replace(
        given,
        X=read_features(estimator, given.X, reset=reset),
        y=read_targets(estimator, given.y, "y"),
        sample_weight=read_row_values(given.sample_weight, "sample_weight"),
        base_margin=read_row_values(given.base_margin, "base_margin"),
        eval_set=_each(
            given.eval_set, lambda pair, index: _read_pair(estimator, pair, f"eval_set[{index}]")
        ),
        eval_sample_weight=_each(
            given.eval_sample_weight,
            lambda values, index: read_row_values(values, f"eval_sample_weight[{index}]"),
        ),
        eval_base_margin=_each(
            given.eval_base_margin,
            lambda values, index: read_row_values(values, f"eval_base_margin[{index}]"),
        ),
    )


def to_host(values: Any, name: str) -> Any:
    """What one of the functions above returned, or a prediction, as a numpy array or None."""
    if isinstance(values, torch.Tensor):
        return read_vector(values, name, {})
    return None if values is None else np.asarray(values)


def _is_read_in_place(X: Any) -> bool:
    """Tensors, data frames, and masked arrays: numpy would drop the mask, a Trainer refuses it."""
    return isinstance(X, torch.Tensor | np.ma.MaskedArray) or recognize(X, "X") is not None


def _each(items: Any, read: Any) -> Any:
    if not isinstance(items, list | tuple):
        return items
    return [read(item, index) for index, item in enumerate(items)]


def _read_pair(estimator: Any, pair: Any, name: str) -> Any:
    if not isinstance(pair, list | tuple) or len(pair) != 2:
        return pair
    X, y = pair
    return read_features(estimator, X, reset=False), read_targets(estimator, y, f"{name} y")

"""``class_weight``: factors on the weights of rows, by their class."""

import math
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from torchgbdt.core.arrays import AnyArray, Float64Array, Int32Array
from torchgbdt.core.errors import InvalidParameterError


def weigh_classes(
    class_weight: Any, classes: AnyArray, codes: Int32Array, weights: AnyArray | None
) -> Float64Array:
    """Weights times the factors of their rows' classes, float64, (n_rows,).

    Parameters
    ----------
    class_weight : "balanced": each class weighs the same if all weights are 1; or a dict from
        classes to factors >= 0, classes that it leaves out having 1.
    classes, codes : class labels, (n_classes,), and the position in them of each row's. IN.
    weights : (n_rows,), or None for 1. IN.

    Raises
    ------
    InvalidParameterError : neither of these; or a dict that names a class that there is not and
        leaves out one that there is.
    """
    result = _class_factors(class_weight, classes, codes)[codes]
    return result if weights is None else result * weights.astype(np.float64)


def _class_factors(class_weight: Any, classes: AnyArray, codes: Int32Array) -> Float64Array:
    if isinstance(class_weight, str) and class_weight == "balanced":
        counts = np.bincount(codes, minlength=classes.size)
        has_rows = counts > 0  # a model that is continued may know more classes
        factors: Float64Array = codes.size / (np.count_nonzero(has_rows) * np.maximum(counts, 1))
        return factors
    if not isinstance(class_weight, Mapping):
        raise InvalidParameterError(
            f"class_weight must be None, 'balanced' or a dict from classes to weights; found "
            f"{class_weight!r}."
        )
    _check_labels(class_weight, classes)
    return np.array([class_weight.get(label, 1.0) for label in classes.tolist()], np.float64)


def _check_labels(class_weight: Mapping[Any, Any], classes: AnyArray) -> None:
    """Keys without rows are fine, as folds may lack a rare class, unless others are left out."""
    known = classes.tolist()
    unknown = [label for label in class_weight if label not in known]
    left_out = [label for label in known if label not in class_weight]
    if unknown and left_out:
        raise InvalidParameterError(
            f"class_weight names the class {unknown[0]!r}, which no row with a positive weight "
            f"has, and leaves out {left_out[0]!r}; there are {known}. Write labels as they are in "
            f"y."
        )
    for label, factor in class_weight.items():
        if not _is_weight(factor):
            raise InvalidParameterError(
                f"class_weight[{label!r}] must be a finite number >= 0; found {factor!r}."
            )


def _is_weight(value: Any) -> bool:
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return is_number and math.isfinite(value) and value >= 0

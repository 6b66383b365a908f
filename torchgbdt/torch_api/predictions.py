"""What is made of sums of leaf values: raw predictions, means, classes and probabilities.

    sums --baseline, margins--> raw --link--> probabilities, classes

Results are new arrays in the kind and precision of X: float64 for float64 and numpy input.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from torchgbdt.core.arrays import AnyArray, Float32Array
from torchgbdt.core.model import Model
from torchgbdt.core.probabilities import predicted_codes, probabilities
from torchgbdt.core.raw_predictions import raw_float32, raw_float64
from torchgbdt.torch_api.features import Features


@dataclass(frozen=True)
class SummedRows:
    """X on its way to a prediction.

    Attributes
    ----------
    sums : float32, (n_rows, n_outputs); sums of leaf values so far. IN-OUT.
    margins : float32, (n_rows, n_outputs), or None.
    """

    features: Features
    sums: Float32Array
    margins: Float32Array | None


def raw_predictions(model: Model, rows: SummedRows) -> Any:
    """Baseline plus margins plus sums; (n_rows,) for one output, else (n_rows, n_outputs)."""
    raw = _raw(model, rows)
    return rows.features.like_input(raw[:, 0] if model.n_outputs == 1 else raw)


def means_or_classes(model: Model, rows: SummedRows) -> Any:
    """The likeliest class, (n_rows,), where there are classes; else the mean.

    The mean is the raw prediction: the only link without classes so far is the identity.
    """
    if model.classes is None:
        return raw_predictions(model, rows)
    labels = _labels(model.classes, rows.features.is_float64)[predicted_codes(_raw(model, rows))]
    return labels if labels.dtype.kind == "U" else rows.features.like_input(labels)


def class_probabilities(model: Model, rows: SummedRows) -> Any:
    """Probabilities of all classes, (n_rows, n_classes)."""
    dtype = np.float64 if rows.features.is_float64 else np.float32
    raw = raw_float32(model.baseline, rows.sums, rows.margins)
    return rows.features.like_input(probabilities(model.link, raw, dtype))


def _raw(model: Model, rows: SummedRows) -> AnyArray:
    raw_of = raw_float64 if rows.features.is_float64 else raw_float32
    return raw_of(model.baseline, rows.sums, rows.margins)


def _labels(classes: AnyArray, is_float64: bool) -> AnyArray:
    """The classes; floats as float32 for a float32 X, as MPS has no other, where that is exact."""
    if classes.dtype.kind != "f" or is_float64:
        return classes
    with np.errstate(over="ignore"):
        single = classes.astype(np.float32)
    return single if np.array_equal(single, classes) else classes

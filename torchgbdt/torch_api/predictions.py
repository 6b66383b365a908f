"""What is made of sums of leaf values: raw predictions, means, classes and probabilities.

    sums --baseline, margins--> raw --link--> probabilities, classes

Results are new arrays in the kind and precision of X: float64 for float64 and numpy input. Of a
tensor on a device all of this happens there.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from torchgbdt.core.array_ops import Array
from torchgbdt.core.arrays import AnyArray
from torchgbdt.core.model import Model
from torchgbdt.core.probabilities import predicted_codes, probabilities
from torchgbdt.core.raw_predictions import add_baseline, baseline_parts, raw_float64
from torchgbdt.torch_api.features import Features


@dataclass(frozen=True)
class SummedRows:
    """X on its way to a prediction.

    Attributes
    ----------
    sums : float32, (n_rows, n_outputs); sums of leaf values so far. IN-OUT.
    margins : float32, (n_rows, n_outputs), or None.

    Both are tensors on X's device where X is read there, else numpy arrays.
    """

    features: Features
    sums: Array
    margins: Array | None


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
    features = rows.features
    codes = predicted_codes(_raw(model, rows), features.ops)
    labels = _labels(model.classes, features.is_float64)
    return features.pick(labels, codes)


def class_probabilities(model: Model, rows: SummedRows) -> Any:
    """Probabilities of all classes, (n_rows, n_classes)."""
    features = rows.features
    dtype = np.float64 if features.is_float64 else np.float32
    return features.like_input(
        probabilities(model.link, _raw_float32(model, rows), dtype, features.ops)
    )


def _raw(model: Model, rows: SummedRows) -> Array:
    features = rows.features
    if not features.is_float64:
        return _raw_float32(model, rows)
    return raw_float64(features.place(model.baseline), rows.sums, rows.margins, features.ops)


def _raw_float32(model: Model, rows: SummedRows) -> Array:
    features = rows.features
    high, low = baseline_parts(model.baseline)
    parts = (features.place(high), features.place(low))
    return add_baseline(parts, rows.sums, rows.margins, features.ops)


def _labels(classes: AnyArray, is_float64: bool) -> AnyArray:
    """The classes; floats as float32 for a float32 X, as MPS has no other, where that is exact."""
    if classes.dtype.kind != "f" or is_float64:
        return classes
    with np.errstate(over="ignore"):
        single = classes.astype(np.float32)
    return single if np.array_equal(single, classes) else classes

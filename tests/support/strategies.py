"""Hypothesis strategies: small data with ties, constants, missing values, one row, one bin."""

from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis.extra import numpy as hnp
from support.random_rows import LABELS, labels_of
from support.runs import Rows, Scenario

INF, NAN = float("inf"), float("nan")

SPECIAL_FLOATS = [
    0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 2.0**-126, -(2.0**-126), 2.0**-127, 2.0**-149,
    1e30, -1e30, 1e300, -1e300, INF, -INF, NAN,
]  # fmt: skip


def feature_values() -> st.SearchStrategy[float]:
    """Any float64, with the awkward ones often."""
    return st.one_of(st.sampled_from(SPECIAL_FLOATS), st.floats())


@st.composite
def matrices(draw: st.DrawFn, max_rows: int = 40, max_features: int = 3) -> np.ndarray:
    """float64 X of awkward values."""
    shape = draw(st.tuples(st.integers(1, max_rows), st.integers(1, max_features)))
    return draw(hnp.arrays(np.float64, shape, elements=feature_values()))


@st.composite
def bin_codes(
    draw: st.DrawFn, max_rows: int = 40, max_features: int = 3
) -> tuple[np.ndarray, list[int]]:
    """uint8 bins and the number of value bins of each feature; any code may be the missing one."""
    n_value_bins = draw(st.lists(st.integers(0, 5), min_size=1, max_size=max_features).filter(any))
    n_rows = draw(st.integers(1, max_rows))
    columns = [draw(hnp.arrays(np.uint8, n_rows, elements=st.integers(0, n))) for n in n_value_bins]
    return np.stack(columns, axis=1), n_value_bins


def gradient_values() -> st.SearchStrategy[float]:
    """float32 gradients: few distinct values, so that gains tie, or any finite ones."""
    few = st.sampled_from([0.0, 1.0, -1.0, 0.5, -0.5, 3.0])
    return st.one_of(few, st.floats(-(2.0**60), 2.0**60, width=32))


def hessian_values() -> st.SearchStrategy[float]:
    few = st.sampled_from([0.0, 1.0, 0.25, 2.0])
    return st.one_of(few, st.floats(0.0, 2.0**60, width=32))


@st.composite
def gradients(draw: st.DrawFn, n_rows: int, n_outputs: int) -> tuple[np.ndarray, np.ndarray]:
    """float32 gradients and Hessians, (n_rows, n_outputs) each."""
    shape = (n_rows, n_outputs)
    few = draw(st.booleans())
    g = st.sampled_from([0.0, 1.0, -1.0]) if few else gradient_values()
    h = st.sampled_from([0.0, 1.0]) if few else hessian_values()
    return (
        draw(hnp.arrays(np.float32, shape, elements=g)),
        draw(hnp.arrays(np.float32, shape, elements=h)),
    )


@st.composite
def raw_predictions(
    draw: st.DrawFn, n_outputs: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """float32 (n_rows, n_outputs) with ties and awkward values, class codes, perhaps weights."""
    n_rows = draw(st.integers(1, 20))
    few = st.sampled_from([0.0, 1.0, -1.0, 17.25, -86.0, 87.0, -104.0, 3e38, INF, -INF, NAN])
    values = st.one_of(few, st.floats(-100, 100, width=32), st.floats(width=32))
    finite = st.floats(-90, 90, width=32)
    elements = draw(st.sampled_from([values, finite]))
    raw = draw(hnp.arrays(np.float32, (n_rows, n_outputs), elements=elements))
    codes = draw(hnp.arrays(np.int64, n_rows, elements=st.integers(0, max(n_outputs, 2) - 1)))
    weights = draw(st.one_of(st.none(), sample_weights(n_rows, n_rows)))
    return raw, codes, weights


@st.composite
def split_settings(draw: st.DrawFn) -> dict[str, Any]:
    """What decides which splits are allowed and best."""
    return {
        "reg_lambda": draw(st.sampled_from([0.0, 1.0, 0.1, 1e-9])),
        "gamma": draw(st.sampled_from([0.0, 0.0, 0.125, 1.0])),
        "min_samples_leaf": draw(st.integers(1, 4)),
        "min_child_weight": draw(st.sampled_from([0.0, 0.5, 1.0, 1.5])),
        "max_depth": draw(st.sampled_from([1, 2, 3, None])),
    }


@st.composite
def sample_weights(draw: st.DrawFn, n_rows: int, n_positive: int = 1) -> np.ndarray:
    """Weights over the range that is common, many of them zero; the first ones are not."""
    positive = st.one_of(st.sampled_from([1.0, 2.0, 0.5]), st.floats(1e-6, 1e6))
    weights = draw(hnp.arrays(np.float64, n_rows, elements=positive))
    weights[n_positive:][draw(hnp.arrays(np.bool_, n_rows))[n_positive:]] = 0
    return weights


@st.composite
def targets(draw: st.DrawFn, n_rows: int) -> np.ndarray:
    """Real targets, often integers, so that they tie."""
    values = st.one_of(st.integers(-2, 2).map(float), st.floats(-1e6, 1e6))
    return draw(hnp.arrays(np.float64, n_rows, elements=values))


@st.composite
def class_labels(draw: st.DrawFn, n_rows: int, n_classes: int) -> np.ndarray:
    """Labels of any kind; the first rows have one class each, the others any of them."""
    rest = st.integers(0, n_classes - 1)
    codes = draw(hnp.arrays(np.int64, n_rows, elements=rest))
    codes[:n_classes] = np.arange(n_classes)
    kinds = [kind for kind in LABELS if n_classes == 2 or kind != "bools"]
    return labels_of(codes, draw(st.sampled_from(kinds)))


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """A whole training run: awkward X, any objective, labels with ties, perhaps weights, margins.

    Margins are large at times, so that predictions saturate.
    """
    X = draw(matrices(30, 3))
    n_rows = X.shape[0]
    allowed = ["squared_error"] if n_rows < 2 else ["squared_error", "logistic", "softmax"]
    objective = draw(st.sampled_from(allowed))
    n_classes = {"squared_error": 1, "logistic": 2}.get(objective, 0)
    if objective == "softmax":
        n_classes = draw(st.integers(2, min(n_rows, 5)))
    is_real = objective == "squared_error"
    y = draw(targets(n_rows) if is_real else class_labels(n_rows, n_classes))
    weights = draw(st.one_of(st.none(), sample_weights(n_rows, n_classes)))
    margins = None
    if draw(st.booleans()):
        shape = (n_rows, n_classes if objective == "softmax" else 1)
        given = st.one_of(st.sampled_from([0.0, 1.0, -90.0, 90.0]), st.floats(-1e3, 1e3, width=32))
        margins = draw(hnp.arrays(np.float32, shape, elements=given))
    settings = {**draw(split_settings()), "n_estimators": 2, "objective": objective}
    settings["max_bins"] = draw(st.sampled_from([3, 4, 9, 256]))
    settings["histogram_budget_mb"] = draw(st.sampled_from([1e-9, 0.003, 512.0]))
    return Scenario(Rows(X, y, weights, margins), settings)

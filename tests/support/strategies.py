"""Hypothesis strategies: small data with ties, constants, missing values, one row, one bin."""

from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis.extra import numpy as hnp
from support.runs import Rows, Scenario

SPECIAL_FLOATS = [
    0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 2.0**-126, -(2.0**-126), 2.0**-127, 2.0**-149,
    1e30, -1e30, 1e300, -1e300, float("inf"), float("-inf"), float("nan"),
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
def scenarios(draw: st.DrawFn) -> Scenario:
    """A whole training run: awkward X, labels with ties, perhaps weights."""
    X = draw(matrices(30, 3))
    n_rows = X.shape[0]
    labels = st.one_of(st.integers(-2, 2).map(float), st.floats(-1e6, 1e6))
    y = draw(hnp.arrays(np.float64, n_rows, elements=labels))
    weights = None
    if draw(st.booleans()):
        positive = st.one_of(st.sampled_from([1.0, 2.0, 0.5]), st.floats(1e-6, 1e6))
        weights = draw(hnp.arrays(np.float64, n_rows, elements=positive))
        weights[1:][draw(hnp.arrays(np.bool_, n_rows))[1:]] = 0
    settings = {**draw(split_settings()), "n_estimators": 2}
    settings["max_bins"] = draw(st.sampled_from([3, 4, 9, 256]))
    settings["histogram_budget_mb"] = draw(st.sampled_from([1e-9, 0.003, 512.0]))
    return Scenario(Rows(X, y, weights), settings)

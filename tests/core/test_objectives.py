"""Squared error: baseline, centred labels and gradients, against fractions and by hand."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from support.exact import assert_identical

from torchgbdt.core.errors import InvalidParameterError
from torchgbdt.core.exact_sum import exact_weighted_sum
from torchgbdt.core.objectives import (
    Logistic,
    Objective,
    ObjectiveKind,
    Softmax,
    SquaredError,
    find_objective,
    squared_error_residuals,
)

LARGEST = float(np.finfo(np.float32).max)
SMALLEST = 2.0**-126

labels = st.floats(-LARGEST, LARGEST).map(lambda y: y if abs(y) >= SMALLEST else 0.0)
weights = st.floats(SMALLEST, LARGEST, width=32)


def float32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


def column(*values: float) -> np.ndarray:
    """Predictions of one output."""
    return np.array(values, np.float32)[:, None]


def test_find_objective_knows_squared_error() -> None:
    assert find_objective("squared_error") is SquaredError
    objective = SquaredError.for_classes(None)
    assert isinstance(objective, SquaredError)
    assert objective.name == "squared_error"
    assert objective.kind == ObjectiveKind.SQUARED_ERROR == 0
    assert (objective.link, objective.default_metric) == ("identity", "rmse")
    assert (objective.n_outputs, objective.trees_per_round) == (1, 1)
    assert objective.constant_hessian
    assert objective.centers_labels
    assert not objective.takes_classes


@pytest.mark.parametrize(
    ("name", "found", "n_outputs"), [("logistic", Logistic, 1), ("softmax", Softmax, 2)]
)
def test_find_objective_knows_those_of_classes(
    name: str, found: type[Objective], n_outputs: int
) -> None:
    assert find_objective(name) is found
    objective = found.for_classes(2)
    assert isinstance(objective, found)
    assert (objective.name, objective.link) == (name, name)
    assert objective.kind == ["squared_error", "logistic", "softmax"].index(name)
    assert objective.default_metric == "logloss"
    assert (objective.n_outputs, objective.trees_per_round) == (n_outputs, n_outputs)
    assert objective.takes_classes
    assert not objective.constant_hessian
    assert not objective.centers_labels


@pytest.mark.parametrize("name", ["Squared_Error", "", "mse"])
def test_find_objective_names_what_is_allowed(name: str) -> None:
    with pytest.raises(InvalidParameterError) as caught:
        find_objective(name)
    assert str(caught.value) == (
        f"objective must be one of 'squared_error', 'logistic', 'softmax'; found {name!r}."
    )


# ------------------------------------------------------------------------------------ baseline


@given(st.lists(st.tuples(labels, weights), min_size=1, max_size=10))
@example([(1e9, 1.0), (1e9 + 1, 1.0), (1e9 + 1, 1.0)])
@example([(LARGEST, LARGEST), (LARGEST, LARGEST)])
@example([(1e30, 1.0), (1.0, 1.0), (-1e30, 1.0)])
def test_baseline_is_the_weighted_mean_rounded_once(pairs: list[tuple[float, float]]) -> None:
    y = np.array([label for label, _ in pairs])
    w = np.array([weight for _, weight in pairs], np.float32)
    sums = [one.total() for one in SquaredError().label_sums(y, w)]
    found = SquaredError().fit_baseline(sums, exact_weighted_sum(w, None).total())
    total = sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))
    assert_identical(found, np.array([float(total / sum(Fraction(b) for _, b in pairs))]))


# ------------------------------------------------------------------------------ centred labels


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9, -1e12])
def test_centred_labels_lose_nothing_to_an_offset(offset: float) -> None:
    # Eighths beside 1e12 are exact in float64, so the differences are too.
    y = offset + np.array([0.125, 0.25, -3.5])
    found = SquaredError().kernel_labels(y, np.array([offset]), None)
    assert_identical(found, float32(0.125, 0.25, -3.5))


@given(labels, labels)
@example(1e9 + 0.1, 1e9)
@example(0.1, 0.1 + 2.0**-60)
def test_centred_label_is_the_float64_difference_rounded_once(y: float, baseline: float) -> None:
    with np.errstate(over="ignore"):
        difference = np.array([y - baseline]).astype(np.float32)
    expected = np.where(np.abs(difference) < SMALLEST, np.float32(0), difference)
    found = SquaredError().kernel_labels(np.array([y]), np.array([baseline]), None)
    assert_identical(found, expected)


def test_centred_labels_of_float32_and_float64_labels_agree() -> None:
    y = np.random.default_rng(0).normal(size=50).astype(np.float32)
    center = SquaredError().kernel_labels
    baseline = np.array([0.3])
    assert_identical(center(y, baseline, None), center(y.astype(np.float64), baseline, None))


def test_margins_are_subtracted_in_float64() -> None:
    # In float32, 2^24 + 1 - 2^24 would be 0: neither label nor difference may be rounded early.
    y = np.array([2.0**24 + 1, 2.0**24 + 1])
    found = SquaredError().kernel_labels(y, np.array([0.0]), column(2.0**24, 1.0))
    assert_identical(found, float32(1, 2.0**24))


def test_centred_labels_below_the_smallest_normal_are_plus_zero() -> None:
    y = np.array([1 + 2.0**-52, 1 - 2.0**-53, 1.0])
    found = SquaredError().kernel_labels(y * SMALLEST, np.array([SMALLEST]), None)
    assert_identical(found, float32(0, 0, 0))


def test_labels_too_far_from_the_baseline_are_infinite() -> None:
    y = np.array([0.0, LARGEST, LARGEST])
    centred = SquaredError().kernel_labels(y, np.array([-LARGEST]), None)
    assert np.isinf(centred).tolist() == [False, True, True]


# ----------------------------------------------------------------------------------- gradients


def test_residual_is_prediction_minus_label() -> None:
    found = squared_error_residuals(float32(1, 0, 2.5), float32(0.5, 0, 3))
    assert_identical(found, float32(0.5, 0, -0.5))


def test_gradients_without_weights_are_residuals_and_ones() -> None:
    g, h = SquaredError().gradients(column(1, 0), float32(3, -1), None)
    assert_identical(g, column(-2, 1))
    assert_identical(h, column(1, 1))


def test_gradients_and_hessians_are_multiplied_by_the_weight() -> None:
    g, h = SquaredError().gradients(column(1, 0), float32(3, -1), float32(0.5, 4))
    assert_identical(g, column(-1, 4))
    assert_identical(h, column(0.5, 4))


def test_the_residual_is_rounded_to_float32_before_it_is_weighted() -> None:
    # 1 + 2^-24 - 2^-40 lies just below the tie, so e = 1 and g = 2 - 2^-23. Multiplied before it is
    # rounded, (1 + 2^-24) * (2 - 2^-23) = 2 - 2^-47 would give 2.
    label, weight = float32(2.0**-40 - 2.0**-24), float32(2 - 2.0**-23)
    g, _ = SquaredError().gradients(column(1), label, weight)
    assert_identical(g, column(2 - 2.0**-23))


def test_weights_are_not_shared_with_hessians() -> None:
    w = float32(1, 2)
    _, h = SquaredError().gradients(column(0, 0), float32(0, 0), w)
    h[:] = 7
    assert_identical(w, float32(1, 2))


@pytest.mark.parametrize(
    ("prediction", "label", "weight", "expected"),
    [
        (LARGEST, -LARGEST, None, np.inf),
        (-LARGEST, LARGEST, None, -np.inf),
        (LARGEST, -1.0, 2.0, np.inf),
        (np.inf, 1.0, None, np.inf),
        (np.inf, np.inf, None, np.nan),
    ],
)
def test_gradients_beyond_float32_are_not_finite_and_no_warning(
    prediction: float, label: float, weight: float | None, expected: float
) -> None:
    weights = None if weight is None else float32(weight)
    g, _ = SquaredError().gradients(column(prediction), float32(label), weights)
    np.testing.assert_array_equal(g, [[expected]])


@pytest.mark.parametrize(
    ("prediction", "label", "weight"),
    [
        (1.25 * SMALLEST, SMALLEST, None),  # the residual is 2^-128
        (-1.25 * SMALLEST, -SMALLEST, None),  # -2^-128
        (2.0**-100, 0.0, 2.0**-30),  # only the product is below 2^-126
        (0.0, 2.0**-100, 2.0**-30),
        (0.5, 0.5, 2.0),
    ],
)
def test_gradients_below_the_smallest_normal_are_plus_zero(
    prediction: float, label: float, weight: float | None
) -> None:
    weights = None if weight is None else float32(weight)
    g, _ = SquaredError().gradients(column(prediction), float32(label), weights)
    assert_identical(g, column(0))

"""Laws: powers of two pass through everything exactly; a feature's own scale does not matter."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from support.backends import BackendUnderTest
from support.exact import assert_identical
from support.random_rows import classes_of
from support.runs import Rows, Scenario, train
from support.scenarios import scenario

pytestmark = pytest.mark.core_laws

NAMES = ["plain", "missing values", "fractional weights", "gamma", "lambda 0", "margins"]
every_name = pytest.mark.parametrize("name", NAMES)


def scaled(rows: Rows, factor: float) -> Rows:
    margins = None if rows.margins is None else rows.margins * factor
    return replace(rows, y=rows.y * factor, margins=margins)


def times(values: dict[str, list[float]], factor: float) -> dict[str, list[float]]:
    """Errors scaled like y; r2 is a quotient of them."""
    return {
        name: [value if name == "r2" else value * factor for value in series]
        for name, series in values.items()
    }


@pytest.mark.parametrize("k", [-30, -1, 1, 20])
@every_name
def test_scaling_y_scales_predictions(under_test: BackendUnderTest, name: str, k: int) -> None:
    factor, one = 2.0**k, scenario(name)
    if one.train.margins is not None:  # as float32, so that the factor is exact on them too
        one = one.with_train(replace(one.train, margins=one.train.margins.astype(np.float32)))
    gamma = one.settings.get("gamma", 0.0) * factor**2
    expected = train(under_test.make(), one)
    found = train(
        under_test.make(),
        Scenario(
            scaled(one.train, factor),
            {**one.settings, "gamma": gamma},
            [scaled(valid, factor) for valid in one.valids],
        ),
    )
    nodes, expected_nodes = found.model.forest.nodes, expected.model.forest.nodes
    for array in ("feature", "split_bin", "threshold", "flags", "count"):
        assert_identical(getattr(nodes, array), getattr(expected_nodes, array))
    assert_identical(nodes.value, expected_nodes.value * np.float32(factor))
    assert_identical(nodes.gain, expected_nodes.gain * factor**2)
    assert_identical(found.model.baseline, expected.model.baseline * factor)
    for data_set, metrics in expected.history.items():
        assert_identical(found.history[data_set], times(metrics, factor))


@pytest.mark.parametrize("k", [-40, -3, 1, 30])
@pytest.mark.parametrize(
    "name",
    [
        "fractional weights", "margins", "child weight border",
        "logistic, fractional weights", "logistic, margins", "logistic, huge range of weights",
        "3 classes, fractional weights", "3 classes, margins", "3 classes, huge range of weights",
    ],
)  # fmt: skip
def test_scaling_all_weights_changes_nothing(
    under_test: BackendUnderTest, name: str, k: int
) -> None:
    factor, one = 2.0**k, scenario(name).changed(gamma=0.01, reg_lambda=0.75)
    settings = {"min_child_weight": 1e-3, **one.settings}
    for setting in ("reg_lambda", "gamma", "min_child_weight"):
        settings[setting] *= factor
    rows = [replace(r, weights=r.weights * factor) for r in (one.train, *one.valids) if r.weights
            is not None]  # fmt: skip
    found = train(under_test.make(), Scenario(rows[0], settings, rows[1:] or one.valids))
    expected = train(under_test.make(), one)
    assert found.model.digest() == expected.model.digest()
    assert found.history["train"] == expected.history["train"]


def cubed(x: np.ndarray) -> np.ndarray:
    return x**3


def squeezed(x: np.ndarray) -> np.ndarray:
    return np.exp(x / 2) - 1e3


def to_float32(x: np.ndarray) -> np.ndarray:
    return (x / 3).astype(np.float32)


@pytest.mark.parametrize("objective", ["squared_error", "logistic", "softmax"])
@pytest.mark.parametrize("transform", [cubed, squeezed, to_float32])
def test_increasing_transforms_keep_the_structure(
    under_test: BackendUnderTest, transform: Callable[[np.ndarray], np.ndarray], objective: str
) -> None:
    rng = np.random.default_rng(5)
    X = rng.integers(-10, 11, (200, 3)).astype(np.float64)
    X[rng.random((200, 3)) < 0.1] = np.nan
    y = np.nansum(X, axis=1) + rng.normal(size=200)
    if objective != "squared_error":
        y = classes_of(y, 2 if objective == "logistic" else 4)
    settings = {"objective": objective}
    models = [
        train(under_test.make(), Scenario(Rows(values, y), settings)).model
        for values in (X, transform(X))
    ]
    assert models[0].structure_digest() == models[1].structure_digest()
    assert models[0].digest() != models[1].digest()


def test_decreasing_transforms_do_not(under_test: BackendUnderTest) -> None:
    one = scenario("plain")
    mirrored = Scenario(replace(one.train, X=-one.train.X), one.settings)
    models = [train(under_test.make(), s).model for s in (one, mirrored)]
    assert models[0].structure_digest() != models[1].structure_digest()

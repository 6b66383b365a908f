"""Laws of class labels: their order counts, not what they are; and what may be exchanged."""

from dataclasses import replace

import numpy as np
import pytest
from support.backends import BackendUnderTest
from support.exact import assert_identical
from support.random_rows import LABELS, labels_of
from support.runs import Outcome, Rows, Scenario, train
from support.scenarios import scenario

pytestmark = pytest.mark.core_laws

NAMES = [
    "logistic", "logistic, fractional weights", "logistic, margins", "logistic, continued",
    "3 classes", "3 classes, fractional weights", "3 classes, margins", "7 classes",
]  # fmt: skip
NAMES_AND_KINDS = [
    (name, kind)
    for name in NAMES
    for kind in LABELS
    if kind != "bools" or name.startswith("logistic")
]


def relabelled(one: Scenario, labels: np.ndarray) -> Scenario:
    """The scenario with ``labels[code]`` for each code that its rows have as a label."""

    def of(rows: Rows) -> Rows:
        return replace(rows, y=labels[rows.y])

    model = one.init_model
    if model is not None:
        model = replace(model, classes=labels[model.classes])
    valids = [of(rows) for rows in one.valids]
    return Scenario(of(one.train), one.settings, valids, model)


def assert_differ_by_classes_only(found: Outcome, expected: Outcome) -> None:
    assert_identical(found.model.forest, expected.model.forest)
    assert_identical(found.model.baseline, expected.model.baseline)
    assert_identical(found.history, expected.history)


@pytest.mark.parametrize(("name", "kind"), NAMES_AND_KINDS)
def test_labels_in_the_same_order(under_test: BackendUnderTest, name: str, kind: str) -> None:
    one = scenario(name)
    labels = labels_of(np.arange(one.train.y.max() + 1), kind)
    found = train(under_test.make(), relabelled(one, labels))
    expected = train(under_test.make(), one)
    assert_differ_by_classes_only(found, expected)
    assert found.model.classes.tolist() == labels.tolist()
    # the digest knows the labels: models that answer with other words are not the same
    assert (found.model.digest() == expected.model.digest()) == (kind == "codes")


@pytest.mark.parametrize(
    "dtype",
    ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"],
)
@pytest.mark.parametrize("name", ["logistic", "3 classes"])
def test_integers_of_any_width_are_the_same_labels(
    under_test: BackendUnderTest, name: str, dtype: str
) -> None:
    one = scenario(name)
    labels = np.arange(3).astype(dtype)
    found, expected = (train(under_test.make(), s) for s in (relabelled(one, labels), one))
    assert found.model.digest() == expected.model.digest()


def test_texts_of_any_width_are_the_same_labels(under_test: BackendUnderTest) -> None:
    one = scenario("3 classes, labels: text")
    wide = replace(one.train, y=one.train.y.astype("<U40"))
    found, expected = (train(under_test.make(), s) for s in (one.with_train(wide), one))
    assert found.model.digest() == expected.model.digest()


@pytest.mark.parametrize(
    "name",
    [
        "logistic", "logistic, fractional weights", "logistic, missing values", "logistic, margins",
        "logistic, ties", "logistic, saturated", "logistic, one row of a class",
    ],
)  # fmt: skip
def test_exchanging_two_classes_negates_everything(under_test: BackendUnderTest, name: str) -> None:
    # g(-x, 1 - y) = -g(x, y) and h(-x) = h(x), exactly; so is the logarithm of the odds
    one = scenario(name)

    def exchanged(rows: Rows) -> Rows:
        margins = None if rows.margins is None else -rows.margins
        return replace(rows, y=1 - rows.y, margins=margins)

    other = Scenario(exchanged(one.train), one.settings, [exchanged(v) for v in one.valids])
    found, expected = (train(under_test.make(), s) for s in (other, one))
    nodes, expected_nodes = found.model.forest.nodes, expected.model.forest.nodes
    for array in ("feature", "threshold", "gain", "flags", "count", "cover"):
        assert_identical(getattr(nodes, array), getattr(expected_nodes, array))
    assert_identical(nodes.value, 0 - expected_nodes.value)
    assert_identical(found.model.baseline, 0 - expected.model.baseline)
    for data_set, metrics in expected.history.items():  # error has no such law: x = 0 is class 0
        for metric in ("logloss", "auc"):
            assert_identical(found.history[data_set][metric], metrics[metric])


@pytest.mark.parametrize("order", [[1, 2, 0], [2, 1, 0], [0, 2, 1]], ids=str)
@pytest.mark.parametrize(
    "name",
    [
        "3 classes", "3 classes, fractional weights", "3 classes, missing values",
        "3 classes, ties", "3 classes, margins", "3 classes, saturated",
        "3 classes, one row of a class",
    ],
)  # fmt: skip
def test_permuting_three_classes_permutes_their_trees(
    under_test: BackendUnderTest, name: str, order: list[int]
) -> None:
    # The terms of three classes without the largest are a sum of two, which has no order. Sums of
    # more classes have one, that of their codes.
    one = scenario(name)

    def permuted(rows: Rows) -> Rows:
        margins = rows.margins
        if margins is not None:
            margins = np.empty_like(rows.margins)
            margins[:, order] = rows.margins
        return replace(rows, y=np.array(order)[rows.y], margins=margins)

    other = Scenario(permuted(one.train), one.settings, [permuted(v) for v in one.valids])
    found, expected = (train(under_test.make(), s) for s in (other, one))
    assert_identical(found.model.baseline[order], expected.model.baseline)
    for index in range(expected.model.n_trees):
        round_, code = divmod(index, 3)
        tree = found.model.forest.tree(3 * round_ + order[code])
        assert_identical(tree, expected.model.forest.tree(index))
    for data_set, metrics in expected.history.items():
        assert_identical(found.history[data_set]["logloss"], metrics["logloss"])


def test_classes_with_the_same_rows_have_the_same_trees(under_test: BackendUnderTest) -> None:
    model = train(under_test.make(), scenario("4 classes, symmetric")).model
    for first in range(0, model.n_trees, 4):
        assert_identical(model.forest.tree(first), model.forest.tree(first + 3))
    assert model.baseline[0] == model.baseline[3]

"""From binned data to the rows a backend sees: targets or codes, baselines, margins and ranks."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from core.hand_made import leaf, model
from core.small_runs import binned, labels, quantized, raw
from support.exact import assert_identical
from support.ranks import run_ranks

from torchgbdt.core.communicator import SINGLE_RANK, Communicator
from torchgbdt.core.errors import InvalidDataError
from torchgbdt.core.objectives import Logistic, Softmax, SquaredError
from torchgbdt.core.quantized_data import QuantizedData, total_weight, total_weights
from torchgbdt.core.run_data import TrainingData
from torchgbdt.core.tree import Forest

LARGEST = float(np.finfo(np.float32).max)


def targets_of(data: QuantizedData) -> list[np.ndarray]:
    return [dataset.labels for dataset in data.datasets]


# -------------------------------------------------------------------------------------- weights


def test_a_rank_whose_weights_are_all_zero_adds_no_rows() -> None:
    weights = [np.zeros(3), np.ones(3)]

    def work(communicator: Communicator) -> int:
        data = TrainingData(raw(3, weights=weights[communicator.rank]))
        return quantized(data, communicator).train.n_rows

    assert run_ranks(2, work) == [0, 3]


def test_weights_that_are_all_zero_on_every_rank_are_refused() -> None:
    for size in (1, 2):
        with pytest.raises(InvalidDataError, match=r"zero in every row|no row has a positive"):
            run_ranks(size, lambda c: quantized(TrainingData(raw(weights=np.zeros(4))), c))


def test_an_eval_set_whose_weights_are_all_zero_is_refused_by_name() -> None:
    nothing = raw(weights=np.zeros(4), name="eval_set[1]")
    given = TrainingData(raw(), [raw(), nothing])
    with pytest.raises(InvalidDataError, match=r"^eval_set\[1\] sample_weight is zero in every"):
        quantized(given)

    def work(communicator: Communicator) -> str:
        with pytest.raises(InvalidDataError) as caught:
            total_weights(quantized(given, communicator), communicator)
        return str(caught.value)

    expected = "eval_set[1] has no row with a positive weight; nothing can be evaluated on."
    assert run_ranks(2, work) == [expected] * 2


def test_total_weight_is_exact() -> None:
    tiny, large = np.float32(2.0**-100), np.float32(2.0**100)
    data = binned(raw(3, weights=np.array([tiny, large, 1])))
    expected = Fraction(2) ** -100 + Fraction(2) ** 100 + 1
    assert total_weight(data, SINGLE_RANK).total() == expected
    assert total_weight(binned(raw(3)), SINGLE_RANK).total() == 3


@pytest.mark.parametrize(("weighted_rank", "expected"), [(None, False), (0, True), (1, True)])
def test_weights_on_any_rank_count_on_every_rank(weighted_rank: int, expected: bool) -> None:
    def work(communicator: Communicator) -> bool:
        weights = np.ones(4) if communicator.rank == weighted_rank else None
        return quantized(TrainingData(raw(weights=weights)), communicator).any_weights(communicator)

    assert run_ranks(2, work) == [expected] * 2


def test_a_rank_without_rows_has_no_weight_of_one() -> None:
    # The scale of auc would be another one than that of all rows on one rank.
    def work(communicator: Communicator) -> float:
        weights = np.full(2, 0.125) if communicator.rank else None
        data = quantized(TrainingData(raw(2 * communicator.rank, weights=weights)), communicator)
        return data.largest_weight(0, communicator)

    assert run_ranks(2, work) == [0.125] * 2


@pytest.mark.parametrize(
    ("weights", "expected"),
    [
        ([None, None], 1.0),
        ([[0.5, 0.25], [0.125, 0.0]], 0.5),
        ([[0.5, 0.25], None], 1.0),  # rows without weights have 1
        ([[8.0, 0.5], None], 8.0),
        ([[0.0, 0.0], [0.5, 0.0]], 0.5),
    ],
)
def test_the_largest_weight_is_that_of_all_ranks(weights: list[Any], expected: float) -> None:
    def work(communicator: Communicator) -> tuple[float, float]:
        data = TrainingData(raw(2), [raw(2, weights=weights[communicator.rank])])
        found = quantized(data, communicator)
        return found.largest_weight(0, communicator), found.largest_weight(1, communicator)

    assert run_ranks(2, work) == [(1.0, expected)] * 2


# ----------------------------------------------------------------------------- targets and codes


def test_targets_of_a_regression_are_the_labels() -> None:
    found = quantized(TrainingData(raw(3, y=[1, 2, 4]), [raw(2)]))
    assert isinstance(found.objective, SquaredError)
    assert found.classes is None
    assert_identical(targets_of(found), [np.array([1.0, 2, 4]), np.array([0.0, 1])])


def test_classes_become_codes_in_every_data_set() -> None:
    data = TrainingData(labels(["b", "c", "a", "b"]), [labels(["c", "c", "a"])])
    found = quantized(data, objective="softmax")
    assert found.classes.tolist() == ["a", "b", "c"]
    assert_identical(
        targets_of(found), [np.array([1, 2, 0, 1], np.int32), np.array([2, 2, 0], np.int32)]
    )
    assert isinstance(found.objective, Softmax)
    assert (found.objective.n_outputs, found.objective.trees_per_round) == (3, 3)


def test_classes_come_from_the_rows_that_count() -> None:
    found = quantized(TrainingData(labels([5, 1, 9], np.array([1, 1, 0]))), objective="logistic")
    assert found.classes.tolist() == [1, 5]
    assert isinstance(found.objective, Logistic)
    assert targets_of(found)[0].tolist() == [1, 0]


def test_an_unknown_label_of_an_eval_set_is_named_by_its_input_row() -> None:
    weights = np.array([0, 1, 1])
    valid = labels([9, 1, 9], weights)
    for one in (valid, binned(valid)):
        data = TrainingData(labels([9, 1, 5], weights), [labels([1]), one])
        with pytest.raises(InvalidDataError, match=r"^eval_set\[1\] y has the label 9 in row 2,"):
            quantized(data, objective="logistic")


def test_a_label_that_does_not_count_may_be_unknown() -> None:
    valid = labels([9, 1], np.array([0, 1]))
    found = quantized(TrainingData(labels([1, 5]), [valid]), objective="logistic")
    assert targets_of(found)[1].tolist() == [0]


def test_classes_of_a_continued_model_are_taken_even_if_the_labels_lack_one() -> None:
    forest = Forest.from_trees([leaf(1)] * 3, 1)
    frame = {"objective": "softmax", "link": "softmax", "baseline": np.zeros(3)}
    classes = np.array([1, 5, 7])
    earlier = model(forest=forest, trees_per_round=3, classes=classes, n_features=2, **frame)
    found = quantized(TrainingData(labels([7, 5]), init_model=earlier), objective="softmax")
    assert found.classes is classes
    assert targets_of(found)[0].tolist() == [2, 1]
    assert found.objective.n_outputs == 3
    with pytest.raises(InvalidDataError, match=r"^y has the label 6 in row 1,"):
        quantized(TrainingData(labels([7, 6]), init_model=earlier), objective="softmax")


def test_logistic_takes_two_classes() -> None:
    with pytest.raises(InvalidDataError) as caught:
        quantized(TrainingData(labels([0, 1, 2])), objective="logistic")
    assert str(caught.value) == (
        "y has 3 classes; objective='logistic' takes two. Use objective='softmax'."
    )


# ----------------------------------------------------------------------------------------- rows


def test_rows_are_centred_on_the_baseline() -> None:
    data = quantized(TrainingData(raw(4, weights=np.array([1, 0, 1, 2])), [raw(2)]))
    train, valid = data.run_rows(np.array([0.5]), SINGLE_RANK)
    assert_identical(train.labels, np.array([-0.5, 1.5, 2.5], np.float32))
    assert_identical(train.weights, np.array([1, 1, 2], np.float32))
    assert_identical(valid.labels, np.array([-0.5, 0.5], np.float32))
    assert valid.weights is None
    assert train.bins is data.train.bins
    assert train.margins is valid.margins is None
    assert train.start is valid.start is None
    assert (train.n_rows, train.total_rows, valid.total_rows) == (3, 3, 2)


def test_margins_are_subtracted_from_the_labels() -> None:
    data = quantized(TrainingData(raw(3), [raw(2)], np.array([1, 2, 4]), [np.array([10, 20])]))
    train, valid = data.run_rows(np.array([0.0]), SINGLE_RANK)
    assert_identical(train.labels, np.array([-1, -1, -2], np.float32))
    assert_identical(valid.labels, np.array([-10, -19], np.float32))
    assert train.margins is valid.margins is None  # they are in the labels


def test_margins_of_classes_are_handed_on_and_the_labels_are_codes() -> None:
    own, other = np.arange(6).reshape(3, 2), np.arange(2).reshape(1, 2)
    data = TrainingData(labels([7, 3, 7]), [labels([7])], own, [other])
    train, valid = quantized(data, objective="softmax").run_rows(np.zeros(2), SINGLE_RANK)
    assert_identical(train.labels, np.array([1, 0, 1], np.float32))
    assert_identical(train.margins, own.astype(np.float32))
    assert_identical(valid.labels, np.array([1], np.float32))
    assert_identical(valid.margins, other.astype(np.float32))


@pytest.mark.parametrize("columns", [0, 1, 2, 4])
def test_margins_with_another_number_of_columns_than_classes_are_refused(columns: int) -> None:
    own, other = np.ones((3, columns)), np.ones((3, 3))
    tail = f"has shape (3, {columns}); X has 3 rows, so (3, 3) is expected: one margin per raw"
    sets = labels([0, 1, 2]), [labels([0, 1, 2])]
    for margins, name in (((own, [other]), "base_margin"), ((other, [own]), "eval_base_margin[0]")):
        with pytest.raises(InvalidDataError) as caught:
            quantized(TrainingData(*sets, *margins), objective="softmax")
        assert str(caught.value).startswith(f"{name} {tail}")


def test_total_rows_are_those_of_all_ranks() -> None:
    def work(communicator: Communicator) -> list[tuple[int, int]]:
        data = quantized(TrainingData(raw(4 - communicator.rank), [raw(1)]), communicator)
        rows = data.run_rows(np.zeros(1), communicator)
        return [(one.n_rows, one.total_rows) for one in rows]

    assert run_ranks(2, work) == [[(4, 7), (1, 2)], [(3, 7), (1, 2)]]


def test_a_label_too_far_from_the_baseline_is_refused() -> None:
    data = quantized(TrainingData(raw(3, y=[0, LARGEST, 1])))
    with pytest.raises(InvalidDataError, match="exceeds float32 in row 1"):
        data.run_rows(np.array([-LARGEST]), SINGLE_RANK)


@pytest.mark.parametrize(
    ("index", "name"), [(0, "y"), (1, "eval_set[0] y")], ids=["training", "validation"]
)
def test_a_label_too_far_from_the_baseline_is_named_by_its_input_row(index: int, name: str) -> None:
    # Row 0 weighs nothing: the label 3e38 is the second one kept, and row 2 of what came in.
    far = raw(3, y=[0, 0, 3e38], weights=np.array([0.0, 1, 1]))
    sets = [raw(3), raw(3)]
    sets[index] = far
    data = quantized(TrainingData(sets[0], [sets[1]]))
    with pytest.raises(InvalidDataError) as caught:
        data.run_rows(np.array([-1e38]), SINGLE_RANK)
    assert str(caught.value) == (
        f"{name} minus the baseline (or base_margin) exceeds float32 in row 2; scale y."
    )

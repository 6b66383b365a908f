"""From what a user passes to binned data: checks, names, thresholds and margins."""

from typing import Any

import numpy as np
import pytest
from core.hand_made import model
from core.small_runs import binned, labels, quantized, raw
from support.exact import assert_identical
from support.ranks import run_ranks

from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.core.communicator import SINGLE_RANK, Communicator
from torchgbdt.core.dataset import Dataset
from torchgbdt.core.errors import InvalidDataError, InvalidParameterError
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.run_data import RawData, TrainingData
from torchgbdt.core.settings import BinningSettings, TrainerSettings

SETTINGS = TrainerSettings(max_bins=10, random_state=5)


def refusal(data: TrainingData, settings: TrainerSettings = SETTINGS) -> str:
    with pytest.raises(InvalidDataError) as caught:
        data.check(settings)
    return str(caught.value)


# ------------------------------------------------------------------------------------- checking


def test_labels_and_weights_are_checked_and_flushed() -> None:
    # The second row weighs nothing once its weight is flushed, so its label is not looked at.
    given = raw(3, y=[1e-300, np.nan, 2], weights=np.array([1, 1e-300, 2]))
    checked = TrainingData(given).check(SETTINGS).sets[0]
    assert_identical(checked.labels, np.array([0.0, 0, 2]))
    assert_identical(checked.weights, np.array([1, 0, 2], np.float32))
    assert raw().check().weights is None


def test_labels_stay_what_they_are_until_the_objective_is_known() -> None:
    given = raw(3, y=[1e-300, np.nan, 2], weights=np.array([1, 1e-300, 2]))
    assert_identical(given.check().labels, np.array([1e-300, np.nan, 2]))
    assert_identical(labels(["b", "a"]).check().labels, np.array(["b", "a"]))
    assert_identical(labels(np.array([2, 7], np.uint8)).check().labels, np.array([2, 7], np.uint8))


NAN_LABELS = np.array([1, 2, np.nan, 4])


@pytest.mark.parametrize(
    ("data", "start"),
    [
        (TrainingData(raw(y=NAN_LABELS)), "y has nan in row 2;"),
        (
            TrainingData(raw(), [raw(), raw(y=NAN_LABELS, name="eval_set[1]")]),
            "eval_set[1] y has nan in row 2;",
        ),
        (TrainingData(raw(y=[1, 2])), "y has shape (2,); X has 4 rows"),
        (TrainingData(raw(), [raw(y=[1, 2], name="eval_set[0]")]), "eval_set[0] y has shape (2,);"),
        (TrainingData(raw(weights=-np.ones(4))), "sample_weight has -1.0 in row 0;"),
        (
            TrainingData(raw(), [raw(weights=-np.ones(4), name="eval_set[0]")]),
            "eval_set[0] sample_weight has -1.0 in row 0;",
        ),
        (
            TrainingData(raw(), margins=np.ones(3)),
            "base_margin has shape (3,); X has 4 rows",
        ),
        (
            TrainingData(raw(), [raw(3)], np.ones(4), [np.ones(4)]),
            "eval_base_margin[0] has shape (4,); X has 3 rows",
        ),
        (TrainingData(RawData(raw().source, None)), "y is missing; training needs targets."),
        (
            TrainingData(raw(), [raw(), raw(n_features=3)]),
            "eval_set[1] has 3 features; the training data has 2.",
        ),
        (
            TrainingData(raw(names=("a", "b")), [raw(names=("b", "a"))]),
            "eval_set[0] has the features ['b', 'a']; the training data has ['a', 'b'], in that",
        ),
    ],
)
def test_messages_name_the_data_set(data: TrainingData, start: str) -> None:
    assert refusal(data).startswith(start)


def test_data_sets_without_names_fit_any_names() -> None:
    for train, valid in [(("a", "b"), None), (None, ("a", "b")), (("a", "b"), ("a", "b"))]:
        TrainingData(raw(names=train), [raw(names=valid)]).check(SETTINGS)


def test_a_dataset_without_labels_is_refused_by_name() -> None:
    one = binned()
    without = Dataset(**{**vars(one), "labels": None})
    message = "has no y; build it with targets."
    assert refusal(TrainingData(without)) == f"the Dataset {message}"
    assert refusal(TrainingData(one, [without])) == f"the Dataset in eval_set[0] {message}"


@pytest.mark.parametrize(
    ("margins", "valid_margins"),
    [(np.ones(4), [None]), (None, [np.ones(4)]), (np.ones(4), [])],
)
def test_margins_of_training_and_evaluation_go_together(margins: Any, valid_margins: Any) -> None:
    message = refusal(TrainingData(raw(), [raw()], margins, valid_margins))
    assert message.startswith("base_margin and eval_base_margin go together")


def test_margins_are_checked_per_input_row_of_a_dataset() -> None:
    one = binned(raw(weights=np.array([1, 0, 1, 1])))
    TrainingData(one, margins=np.ones(4)).check(SETTINGS)
    assert "X has 4 rows" in refusal(TrainingData(one, margins=np.ones(3)))


@pytest.mark.parametrize("max_bins", [256, 10])
def test_max_bins_that_is_the_default_or_the_datasets_is_accepted(max_bins: int) -> None:
    TrainingData(binned(max_bins=10)).check(TrainerSettings(max_bins=max_bins))


def test_max_bins_that_differs_from_the_datasets_is_refused() -> None:
    with pytest.raises(InvalidParameterError, match=r"^max_bins=11 differs from the Dataset's max"):
        TrainingData(binned(max_bins=10)).check(TrainerSettings(max_bins=11))


# -------------------------------------------------------------------------- labels and objectives


def test_texts_are_no_targets_of_a_regression() -> None:
    assert refusal(TrainingData(labels(["1", "2"]))).startswith("y holds texts, such as ['1'];")
    for text in (labels(["1", "2"], name="eval_set[0]"), binned(labels(["1", "2"]))):
        message = refusal(TrainingData(labels([1, 2]), [text]))
        assert message.startswith("eval_set[0] y holds texts, such as ['1'];")


@pytest.mark.parametrize("name", ["logistic", "softmax"])
def test_fractions_are_no_classes_where_they_count(name: str) -> None:
    settings = TrainerSettings(objective=name)
    y, weights = [1, 0.5, 0, 2.5], np.array([1.0, 0, 1, 1])
    for one in (labels(y, weights), binned(labels(y, weights))):
        assert refusal(TrainingData(one), settings).startswith("y has 2.5 in row 3; class labels")
        message = refusal(TrainingData(labels([0, 1]), [raw(), one]), settings)
        assert message.startswith("eval_set[1] y has 2.5 in row 3; class labels")
    TrainingData(labels(y, np.array([1.0, 0, 1, 0]))).check(settings)


@pytest.mark.parametrize(
    ("objective", "shape", "fits"),
    [
        ("squared_error", (4,), True),
        ("squared_error", (4, 1), True),
        ("squared_error", (4, 2), False),
        ("logistic", (4, 1), True),
        ("logistic", (4, 2), False),
        ("softmax", (4, 2), True),
        ("softmax", (4, 3), False),
        ("softmax", (3, 2), False),
        ("softmax", (4, 2, 1), False),
    ],
)
def test_margins_have_a_column_per_raw_prediction(
    objective: str, shape: tuple[int, ...], fits: bool
) -> None:
    data = TrainingData(labels([0, 1, 0, 1]), margins=np.ones(shape))
    settings = TrainerSettings(objective=objective)
    if fits:
        assert data.check(settings).margins[0].shape == (4, np.ones(shape)[0].size)
    else:
        assert refusal(data, settings).startswith(f"base_margin has shape {shape}; X has 4 rows")


# ----------------------------------------------------------------------------------- quantizing


def test_settings_of_the_trainer_bin_raw_data() -> None:
    data = TrainingData(raw()).check(SETTINGS).quantize(SETTINGS, OracleBackend(), SINGLE_RANK)
    assert data.train.settings == BinningSettings(max_bins=10, random_state=5)


def test_feature_names_stay_with_the_binned_data() -> None:
    assert quantized(TrainingData(raw(names=("a", "b")))).train.feature_names == ("a", "b")


def test_validation_data_shares_the_training_thresholds() -> None:
    data = quantized(TrainingData(raw(4), [raw(9)]))
    assert data.datasets[1].thresholds is data.train.thresholds
    # Thresholds 0.5, 1.5, 2.5: everything beyond falls into the last bin.
    assert data.datasets[1].bins[:, 0].tolist() == [0, 1, 2, 3, 3, 3, 3, 3, 3]


def test_binned_data_is_taken_as_it_is() -> None:
    train = binned()
    valid = train.subset(np.array([3, 3, 0]))
    found_sets = quantized(TrainingData(train, [valid])).datasets
    for found, given in zip(found_sets, (train, valid), strict=True):
        assert found.bins is given.bins
        assert found.thresholds is given.thresholds
        assert_identical(found.labels, given.labels)
        assert found.labels is not given.labels


def test_raw_validation_data_is_binned_like_the_dataset() -> None:
    train = binned(raw(4))
    data = quantized(TrainingData(train, [raw(9)]))
    assert data.datasets[1].thresholds is train.thresholds
    assert data.datasets[1].settings is train.settings


def test_a_dataset_with_equal_thresholds_of_its_own_is_accepted() -> None:
    quantized(TrainingData(binned(raw(4)), [binned(raw(4))]))


@pytest.mark.parametrize("valid", [raw(9), raw(4, y=None, weights=np.array([1, 1, 1, 0]))])
def test_a_dataset_with_other_thresholds_is_refused(valid: RawData) -> None:
    with pytest.raises(InvalidDataError, match=r"^eval_set\[0\] is a Dataset with bins of its own"):
        quantized(TrainingData(binned(raw(4)), [binned(valid)]))


def test_thresholds_differ_by_their_values_or_by_their_number_of_bins() -> None:
    def column(*values: float) -> Dataset:
        return binned(RawData(HostMatrix(np.array([values]).T), np.zeros(len(values))))

    # 0.5 and 1.5 cut both into two bins; constant and all missing have no threshold at all.
    for train, valid in [((0, 1), (1, 2)), ((3, 3), (np.nan, np.nan))]:
        with pytest.raises(InvalidDataError, match="is a Dataset with bins of its own"):
            quantized(TrainingData(column(*train), [column(*valid)]))


def test_margins_follow_the_rows_that_are_kept() -> None:
    weights = np.array([1, 0, 0, 2])
    margins = np.array([10, 11, 12, 13])
    data = quantized(
        TrainingData(raw(weights=weights), [raw(weights=weights[::-1])], margins, [margins])
    )
    assert_identical(data.margins[0], np.array([[10], [13]], np.float32))
    assert_identical(data.margins[1], np.array([[10], [13]], np.float32))
    assert quantized(TrainingData(raw(), [raw()])).margins == [None, None]


# ----------------------------------------------------------------------- rows that do not count


def test_what_rows_of_weight_zero_hold_is_not_looked_at() -> None:
    weights = np.array([0.0, 1, 0, 2])
    dirty = np.array([np.nan, 1, np.inf, 4])
    data = TrainingData(raw(y=dirty, weights=weights), margins=dirty)
    clean = TrainingData(raw(y=[0, 1, 0, 4], weights=weights), margins=np.array([0.0, 1, 0, 4]))
    for found, expected in zip(quantized(data).margins, quantized(clean).margins, strict=True):
        assert_identical(found, expected)
    assert_identical(quantized(data).train.labels, quantized(clean).train.labels)


def test_margins_of_a_dataset_are_looked_at_in_the_rows_that_count() -> None:
    dataset = binned(raw(weights=np.array([0.0, 1, 1, 1])))
    margins = np.array([np.nan, 1, 2, 3])
    assert quantized(TrainingData(dataset, margins=margins)).margins[0].tolist() == [[1], [2], [3]]
    margins[3] = np.nan
    assert "base_margin has nan in row 3" in refusal(TrainingData(dataset, margins=margins))


# ------------------------------------------------------------------------------------------ ranks


@pytest.mark.parametrize("what", ["eval_set", "base_margin", "init_model"])
def test_arguments_on_some_ranks_only_are_refused_on_all(what: str) -> None:
    given = {
        "eval_set": TrainingData(raw(), [raw()]),
        "base_margin": TrainingData(raw(), margins=np.ones(4)),
        "init_model": TrainingData(raw(), init_model=model()),
    }[what]

    def work(communicator: Communicator) -> str:
        data = given if communicator.rank == 1 else TrainingData(raw())
        with pytest.raises(InvalidDataError) as caught:
            quantized(data, communicator)
        return str(caught.value)

    messages = run_ranks(3, work)
    assert all("on some ranks only" in message for message in messages)

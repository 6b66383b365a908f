"""From what a user passes to the rows a backend sees: checks, names, baselines and ranks."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from support.exact import assert_identical
from support.ranks import run_ranks

from torchgbdt.backends.oracle import OracleBackend
from torchgbdt.core.communicator import SINGLE_RANK, Communicator
from torchgbdt.core.dataset import Dataset
from torchgbdt.core.errors import InvalidDataError, InvalidParameterError
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.core.objectives import SquaredError
from torchgbdt.core.run_data import (
    QuantizedData,
    RawData,
    TrainingData,
    total_weight,
    total_weights,
)
from torchgbdt.core.settings import BinningSettings, TrainerSettings

LARGEST = float(np.finfo(np.float32).max)
SETTINGS = TrainerSettings(max_bins=10, random_state=5)


def raw(
    n_rows: int = 4,
    n_features: int = 2,
    y: Any = None,
    weights: Any = None,
    names: tuple[str, ...] | None = None,
    name: str = "",
) -> RawData:
    """Row i holds i in every column and has the label i."""
    rows = np.arange(float(n_rows))
    X = np.repeat(rows[:, None], n_features, axis=1)
    return RawData(HostMatrix(X), rows if y is None else np.asarray(y), weights, names, name)


def binned(data: RawData | None = None, max_bins: int = 10) -> Dataset:
    one = (raw() if data is None else data).check()
    return one.quantize(BinningSettings(max_bins), OracleBackend(), SINGLE_RANK)


def quantized(
    data: TrainingData, communicator: Communicator = SINGLE_RANK, **settings: Any
) -> QuantizedData:
    checked = TrainerSettings(**{"max_bins": 10, **settings})
    is_share = communicator.size > 1
    return data.check(checked, is_share=is_share).quantize(checked, OracleBackend(), communicator)


def refusal(data: TrainingData, settings: TrainerSettings = SETTINGS) -> str:
    with pytest.raises(InvalidDataError) as caught:
        data.check(settings)
    return str(caught.value)


# ------------------------------------------------------------------------------------- checking


def test_labels_and_weights_are_checked_and_flushed() -> None:
    # The second row weighs nothing once its weight is flushed, so its label is not looked at.
    checked = raw(3, y=[1e-300, np.nan, 2], weights=np.array([1, 1e-300, 2])).check()
    assert_identical(checked.labels, np.array([0.0, 0, 2]))
    assert_identical(checked.weights, np.array([1, 0, 2], np.float32))
    assert raw().check().weights is None


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
    data = quantized(TrainingData(train, [valid]))
    assert data.datasets[0] is train
    assert data.datasets[1] is valid


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
    assert_identical(data.margins[0], np.array([10, 13], np.float32))
    assert_identical(data.margins[1], np.array([10, 13], np.float32))
    assert quantized(TrainingData(raw(), [raw()])).margins == [None, None]


# ------------------------------------------------------------------------------------ baselines


def baseline(data: TrainingData, given: float | None = None) -> list[float]:
    fitted = quantized(data).fit_baseline(SquaredError(), given, SINGLE_RANK)
    assert fitted.dtype == np.float64
    return fitted.tolist()


def test_baseline_is_the_mean_of_kept_rows_weighted() -> None:
    assert baseline(TrainingData(raw(4))) == [1.5]
    # (0 * 3 + 3 * 1) / 4; rows 1 and 2 do not count
    assert baseline(TrainingData(raw(4, weights=np.array([3, 0, 0, 1])))) == [0.75]


def test_a_given_baseline_is_taken() -> None:
    assert baseline(TrainingData(raw(4)), 7.25) == [7.25]
    assert baseline(TrainingData(raw(4), margins=np.ones(4)), 7.25) == [7.25]


def test_margins_replace_the_fitted_baseline() -> None:
    assert baseline(TrainingData(raw(4), margins=np.ones(4))) == [0.0]


@pytest.mark.parametrize("weighted", [False, True])
def test_baseline_of_ranks_is_that_of_all_rows_bit_for_bit(weighted: bool) -> None:
    rng = np.random.default_rng(0)
    y = 1e9 + rng.normal(size=9)
    weights = rng.random(9).astype(np.float32) if weighted else None
    parts = [slice(0, 2), slice(2, 2), slice(2, 9)] if not weighted else [slice(0, 2), slice(2, 9)]

    def work(communicator: Communicator) -> tuple[np.ndarray, list[Fraction]]:
        rows = parts[communicator.rank]
        own = y[rows]
        part = raw(own.size, y=own, weights=None if weights is None else weights[rows])
        data = quantized(TrainingData(part), communicator)
        fitted = data.fit_baseline(SquaredError(), None, communicator)
        return fitted, total_weights(data, communicator)

    exact = [Fraction(1)] * 9 if weights is None else [Fraction(float(w)) for w in weights]
    mean = sum(Fraction(a) * w for a, w in zip(y.tolist(), exact, strict=True)) / sum(exact)
    for fitted, totals in run_ranks(len(parts), work):
        assert_identical(fitted, np.array([float(mean)]))
        assert totals == [sum(exact)]


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
    assert refusal(given).startswith("eval_set[1] sample_weight is zero in every row;")

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


# ----------------------------------------------------------------------------------------- rows


def test_rows_are_centred_on_the_baseline() -> None:
    data = quantized(TrainingData(raw(4, weights=np.array([1, 0, 1, 2])), [raw(2)]))
    train, valid = data.run_rows(SquaredError(), np.array([0.5]), SINGLE_RANK)
    assert_identical(train.labels, np.array([-0.5, 1.5, 2.5], np.float32))
    assert_identical(train.weights, np.array([1, 1, 2], np.float32))
    assert_identical(valid.labels, np.array([-0.5, 0.5], np.float32))
    assert valid.weights is None
    assert train.bins is data.train.bins
    assert train.margins is valid.margins is None
    assert (train.n_rows, train.total_rows, valid.total_rows) == (3, 3, 2)


def test_margins_are_subtracted_from_the_labels() -> None:
    data = quantized(TrainingData(raw(3), [raw(2)], np.array([1, 2, 4]), [np.array([10, 20])]))
    train, valid = data.run_rows(SquaredError(), np.array([0.0]), SINGLE_RANK)
    assert_identical(train.labels, np.array([-1, -1, -2], np.float32))
    assert_identical(valid.labels, np.array([-10, -19], np.float32))


def test_total_rows_are_those_of_all_ranks() -> None:
    def work(communicator: Communicator) -> list[tuple[int, int]]:
        data = quantized(TrainingData(raw(4 - communicator.rank), [raw(1)]), communicator)
        rows = data.run_rows(SquaredError(), np.zeros(1), communicator)
        return [(one.n_rows, one.total_rows) for one in rows]

    assert run_ranks(2, work) == [[(4, 7), (1, 2)], [(3, 7), (1, 2)]]


def test_a_label_too_far_from_the_baseline_is_refused() -> None:
    data = quantized(TrainingData(raw(3, y=[0, LARGEST, 1])))
    with pytest.raises(InvalidDataError, match="exceeds float32 in row 1"):
        data.run_rows(SquaredError(), np.array([-LARGEST]), SINGLE_RANK)


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
    assert quantized(TrainingData(dataset, margins=margins)).margins[0].tolist() == [1, 2, 3]
    margins[3] = np.nan
    assert "base_margin has nan in row 3" in refusal(TrainingData(dataset, margins=margins))


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
        data.run_rows(SquaredError(), np.array([-1e38]), SINGLE_RANK)
    assert str(caught.value) == (
        f"{name} minus the baseline (or base_margin) exceeds float32 in row 2; scale y."
    )

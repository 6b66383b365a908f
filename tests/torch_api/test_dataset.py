"""tg.Dataset: binned once, used often, and the owner of all binning settings."""

import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_api.small_data import QUICK, regression

import torchgbdt as tg
from torchgbdt.core.dataset import Dataset as CoreDataset
from torchgbdt.core.errors import InvalidDataError, InvalidParameterError
from torchgbdt.torch_api.dataset import core_dataset


def binned(data: tg.Dataset) -> CoreDataset:
    return core_dataset(data, {}, data.device, "X")


def test_training_on_a_dataset_equals_training_on_its_arrays() -> None:
    X, y = regression()
    w = torch.rand(len(y), generator=torch.Generator().manual_seed(1))
    data = tg.Dataset(X, y, w, max_bins=16, random_state=3)
    with_data = tg.train(data, **QUICK)
    with_arrays = tg.train(X, y, sample_weight=w, max_bins=16, random_state=3, **QUICK)
    assert with_data.digest() == with_arrays.digest()


@pytest.mark.parametrize("kind", ["list", "array", "tensor", "range", "mask", "mask tensor"])
def test_subset_takes_rows_of_every_kind(kind: str) -> None:
    X, y = regression(10)
    data = tg.Dataset(X, y)
    mask = np.arange(10) % 3 == 1
    rows: Any = {
        "list": [1, 4, 7],
        "array": np.array([1, 4, 7], np.uint8),
        "tensor": torch.tensor([1, 4, 7]),
        "range": range(1, 10, 3),
        "mask": mask,
        "mask tensor": torch.from_numpy(mask),
    }[kind]
    chosen = binned(data.subset(rows))
    assert np.array_equal(chosen.bins, binned(data).bins[[1, 4, 7]])
    assert chosen.labels is not None
    assert chosen.labels.tolist() == y[[1, 4, 7]].tolist()


def test_subset_may_repeat_and_reorder_rows() -> None:
    X, y = regression(10)
    chosen = binned(tg.Dataset(X, y).subset([3, 3, 0]))
    assert chosen.labels is not None
    assert chosen.labels.tolist() == y[[3, 3, 0]].tolist()


def test_subset_shares_the_thresholds() -> None:
    data = tg.Dataset(*regression(10))
    assert binned(data.subset([1])).thresholds is binned(data).thresholds


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "selects no row"),
        ([10], r"rows must lie in 0..9; found 10..10"),
        ([-1], r"found -1..-1"),
        ([0.5], "integers or bools; found dtype float64"),
        (torch.ones(9, dtype=torch.bool), "mask of 9 entries; the data set has 10 rows"),
        ([[1, 2]], r"1-D array.*shape \(1, 2\)"),
        ("abc", "rows is a builtins.str"),
        (["a"], "rows has dtype"),
    ],
)
def test_refused_rows(rows: Any, message: str) -> None:
    with pytest.raises(InvalidDataError, match=message):
        tg.Dataset(*regression(10)).subset(rows)


def test_rows_of_weight_zero_are_not_counted() -> None:
    X, y = regression(6)
    data = tg.Dataset(X, y, [1, 0, 2, 0, 0, 1])
    assert (data.n_rows, len(data), data.n_input_rows) == (3, 3, 6)


def test_subset_counts_input_rows_also_where_some_weigh_zero() -> None:
    X, y = regression(6)
    chosen = tg.Dataset(X, y, [1, 0, 2, 0, 0, 1]).subset([1, 2, 5])
    assert (chosen.n_rows, chosen.n_input_rows) == (2, 3)
    labels = binned(chosen).labels
    assert labels is not None
    assert labels.tolist() == y[[2, 5]].tolist()


def test_facts() -> None:
    X, y = regression(10, 3)
    data = tg.Dataset(X, y, max_bins=7, feature_names=["a", "b", "c"])
    assert (data.n_features, data.max_bins) == (3, 7)
    assert data.feature_names == ("a", "b", "c")
    assert repr(data) == "Dataset(10 rows, 3 features, max_bins=7, with targets)"


def test_thresholds_lie_between_the_values() -> None:
    data = tg.Dataset(torch.tensor([[0.0], [1.0], [3.0]]))  # midpoints 0.5 and 2
    assert data.thresholds(0).tolist() == [0.5, 2.0]


@pytest.mark.parametrize("feature", [-1, 3, None, "0", 1.0, True, np.zeros(2), [0]], ids=repr)
def test_thresholds_of_no_feature_are_refused(feature: Any) -> None:
    with pytest.raises(InvalidParameterError, match=r"feature must be an integer from 0 to 2"):
        tg.Dataset(*regression(10, 3)).thresholds(feature)


def test_training_needs_targets() -> None:
    with pytest.raises(InvalidDataError, match="the Dataset has no y; build it with targets"):
        tg.train(tg.Dataset(regression()[0]), **QUICK)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a"], "has 1 names; X has 2 columns"),
        (["a", "a"], "has 'a' twice"),
        ("ab", "must be a list of texts"),
        ([1, 2], "must be a list of texts"),
        (3, "must be a list of texts"),
        (np.array("ab"), "must be a list of texts"),
    ],
)
def test_refused_feature_names(names: Any, message: str) -> None:
    with pytest.raises(InvalidDataError, match=message):
        tg.Dataset(*regression(10, 2), feature_names=names)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("max_bins", 2),
        ("max_bins", 257),
        ("max_bins", 16.0),
        ("random_state", -1),
        ("random_state", 2**64),
        ("categorical_features", [0]),
        ("categorical_features", np.array([0, 1])),
    ],
)
def test_refused_setting(setting: str, value: Any) -> None:
    with pytest.raises(InvalidParameterError, match=setting):
        tg.Dataset(*regression(10), **{setting: value})


@pytest.mark.parametrize(
    ("y", "weight", "message"),
    [
        (np.ones(9), None, r"y has shape \(9,\); X has 10 rows"),
        (np.ones((10, 2)), None, r"y has shape \(10, 2\)"),
        ([1.0] * 9 + [np.nan], None, "y has nan in row 9"),
        (None, np.ones(11), r"sample_weight has shape \(11,\)"),
        (None, np.zeros(10), "sample_weight is zero in every row"),
        (None, [1.0] * 9 + [-1], r"sample_weight has -1.0 in row 9"),
    ],
)
def test_refused_targets_and_weights(y: Any, weight: Any, message: str) -> None:
    with pytest.raises(InvalidDataError, match=message):
        tg.Dataset(regression(10)[0], y, weight)


def test_trainer_takes_the_binning_settings_of_the_dataset() -> None:
    X, y = regression()
    data = tg.Dataset(X, y, max_bins=8)
    assert tg.train(data, **QUICK).digest() == tg.train(X, y, max_bins=8, **QUICK).digest()


def test_other_max_bins_of_a_trainer_are_refused() -> None:
    data = tg.Dataset(*regression(), max_bins=8)
    with pytest.raises(InvalidParameterError, match=r"max_bins=9 differs.*max_bins=8"):
        tg.train(data, max_bins=9, **QUICK)


def test_other_random_state_of_a_trainer_is_no_error() -> None:
    tg.train(tg.Dataset(*regression(), random_state=1), random_state=2, **QUICK)


def test_dataset_keeps_no_reference_to_x() -> None:
    X, y = regression()
    data = tg.Dataset(X, y)
    before = tg.train(data, **QUICK).digest()
    X.zero_()
    y.zero_()
    assert tg.train(data, **QUICK).digest() == before


def test_pickled_dataset_trains_the_same_model() -> None:
    data = tg.Dataset(*regression())
    restored = pickle.loads(pickle.dumps(data))
    assert tg.train(restored, **QUICK).digest() == tg.train(data, **QUICK).digest()


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        (range(10**9), "0..999999999"),
        (range(5, -2, -1), "-1..5"),
        (range(10**30), "0..9223372036854775807"),
        (range(-(10**30), 1), "-9223372036854775808..0"),
    ],
    ids=repr,
)
def test_a_range_beyond_the_rows_is_refused_without_being_built(rows: range, found: str) -> None:
    data = tg.Dataset(*regression(10, 2))
    tracemalloc.start()
    with pytest.raises(InvalidDataError, match=rf"rows must lie in 0\.\.9; found {found}"):
        data.subset(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1 << 20


def test_a_model_records_the_max_bins_of_its_dataset(tmp_path: Path) -> None:
    trainer = tg.Trainer(**QUICK)
    trainer.fit(tg.Dataset(*regression(), max_bins=16)).save(tmp_path / "m")
    assert b'\\"max_bins\\":16' in (tmp_path / "m").read_bytes()

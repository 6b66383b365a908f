"""What becomes of X, weights and margins on their way to the Trainer."""

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import torch
from sklearn_api.small_tables import QUICK, digest, regression, weights
from support.exact import assert_identical

import torchgbdt as tg
from torchgbdt.core.errors import InvalidDataError
from torchgbdt.sklearn_api.inputs import read_features, read_row_values

X, Y = regression()
W = weights()
PLAIN = tg.GBDTRegressor(**QUICK).fit(X, Y)
LIBRARIES = [pd.DataFrame, pl.DataFrame, pa.table]


def frame(columns: str = "abcd", library: Any = pd.DataFrame) -> Any:
    return library(dict(zip(columns, X.T.copy(), strict=True)))


@pytest.mark.parametrize(
    "array",
    [
        X,
        np.asfortranarray(X, np.float64),
        X.astype(np.float16),
        (X > 0),
        np.nan_to_num(X).astype(np.int8),
        X[::2],
        X[::-1, ::-1],
    ],
    ids=lambda array: f"{array.dtype} {array.strides}",
)
def test_arrays_of_numbers_are_not_copied(array: np.ndarray) -> None:
    read = read_features(tg.GBDTRegressor(), array, reset=True)
    assert np.shares_memory(read, array)
    assert read.dtype == array.dtype


@pytest.mark.parametrize("X", [torch.from_numpy(X), frame()])
def test_tensors_and_frames_are_passed_on(X: Any) -> None:
    estimator = tg.GBDTRegressor()
    assert read_features(estimator, X, reset=True) is X
    assert estimator.n_features_in_ == 4


def test_vectors_are_not_copied() -> None:
    assert np.shares_memory(read_row_values(W, "sample_weight"), W)
    tensor = torch.from_numpy(W)
    assert read_row_values(tensor, "sample_weight") is tensor


@pytest.mark.parametrize(
    "given",
    [X.tolist(), X.astype(object), X.astype(np.float64)],
    ids=["list", "object", "float64"],
)
def test_same_model_from_any_input(given: Any) -> None:
    estimator = tg.GBDTRegressor(**QUICK).fit(given, Y)
    assert digest(estimator) == digest(PLAIN)
    assert_identical(estimator.predict(given), PLAIN.predict(X))


@pytest.mark.parametrize("wrap", [list, torch.from_numpy, pd.Series])
def test_weights_and_margins_of_any_kind(wrap: Any) -> None:
    margin = np.sin(np.arange(240.0))
    arguments = {"sample_weight": W, "base_margin": margin}
    expected = tg.train(X, Y, **arguments, **QUICK)
    wrapped = {name: wrap(values) for name, values in arguments.items()}
    assert digest(tg.GBDTRegressor(**QUICK).fit(X, Y, **wrapped)) == expected.digest()


def test_names_of_a_frame() -> None:
    estimator = tg.GBDTRegressor(**QUICK).fit(frame(), Y)
    assert estimator.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert estimator.model_.feature_names == ("a", "b", "c", "d")
    assert digest(estimator) == digest(PLAIN)
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        estimator.predict(frame()[["b", "a", "c", "d"]])
    with pytest.raises(ValueError, match=r"seen at fit time, yet now missing:\n- d"):
        estimator.predict(frame("abce"))
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        assert_identical(estimator.predict(X), PLAIN.predict(X))


def test_names_of_an_evaluation_set() -> None:
    with pytest.raises(ValueError, match="Feature names unseen at fit time:\n- e"):
        tg.GBDTRegressor(**QUICK).fit(frame(), Y, eval_set=[(frame("abce"), Y)])


@pytest.mark.parametrize("library", LIBRARIES)
def test_frames_of_every_library(library: Any) -> None:
    given = frame(library=library)
    estimator = tg.GBDTRegressor(**QUICK).fit(given, Y)
    assert estimator.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert digest(estimator) == digest(PLAIN)
    assert_identical(estimator.predict(given), PLAIN.predict(X))


@pytest.mark.parametrize("library", LIBRARIES)
def test_held_out_rows_of_a_frame(library: Any) -> None:
    stopping = {"early_stopping": True, **QUICK}
    given = frame(library=library)
    by_frame = tg.GBDTRegressor(**stopping).fit(given, pd.Series(Y), pd.Series(W))
    assert digest(by_frame) == digest(tg.GBDTRegressor(**stopping).fit(X, Y, W))


def test_labels_of_a_series() -> None:
    labels = np.where(Y > 0, "b", "a")
    expected = digest(tg.GBDTClassifier(**QUICK).fit(X, labels))
    for series in (pd.Series(labels), pd.Series(labels, dtype="category"), pl.Series(labels)):
        assert digest(tg.GBDTClassifier(**QUICK).fit(X, series)) == expected


@pytest.mark.parametrize("X", [X[:, :3], torch.from_numpy(X[:, :3])], ids=["array", "tensor"])
def test_other_width_in_predict(X: Any) -> None:
    for method in (PLAIN.predict, PLAIN.staged_predict):
        with pytest.raises(ValueError, match="X has 3 features, but GBDTRegressor is expecting 4"):
            method(X)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (scipy.sparse.csr_matrix(np.nan_to_num(X)), TypeError, "dense data is required"),
        (torch.from_numpy(np.nan_to_num(X)).to_sparse(), InvalidDataError, "X is a tensor of"),
        (np.ma.masked_invalid(X), InvalidDataError, "X is a masked array"),
        (X.astype(str), ValueError, "dtype='numeric' is not compatible"),
        (X * 1j, ValueError, "Complex data not supported"),
        (X[:, 0], ValueError, "Expected 2D array, got 1D array"),
        (torch.from_numpy(X[:, 0]), InvalidDataError, r"X has shape \(240,\)"),
        (X[:, :0], ValueError, "0 feature"),
        (X[:0], ValueError, "0 sample"),
        (X[1:], ValueError, "239"),
        (frame(library=pl.LazyFrame), InvalidDataError, "a lazy frame, which holds no rows yet"),
        (pd.Series(X[:, 0]), InvalidDataError, "X is a pandas.Series"),
        (frame()["a"].astype(str).to_frame(), InvalidDataError, "X has the column 'a'"),
    ],
)
def test_features_that_are_refused(X: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        tg.GBDTRegressor(**QUICK).fit(X, Y)


def test_dataset_is_refused() -> None:
    with pytest.raises(InvalidDataError) as error:
        tg.GBDTRegressor(**QUICK).fit(tg.Dataset(X, Y), Y)
    assert str(error.value) == (
        "X is a Dataset, which scikit-learn cannot slice; estimators take tensors, arrays and data "
        "frames. Pass one of those, or train on the Dataset with tg.Trainer."
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"eval_set": (X, Y)}, r"eval_set\[0\] must be a pair \(X, y\)"),
        ({"eval_set": "valid"}, "eval_set must be a list"),
        ({"eval_set": [(X, Y)], "eval_sample_weight": W}, "eval_sample_weight must be a list"),
        ({"sample_weight": np.stack([W, W], 1)}, "sample_weight has shape"),
        ({"sample_weight": -W}, "sample_weight has -"),
        ({"base_margin": np.full(240, np.nan)}, "base_margin has nan"),
    ],
)
def test_other_arguments_that_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidDataError, match=message):
        tg.GBDTRegressor(**QUICK).fit(X, Y, **arguments)


def test_nullable_integers_stay_integers() -> None:
    # As floats, 2^53 and 2^53 + 1 would be one class.
    y = pd.Series([2**53, 2**53 + 1, 5] * 40, dtype="Int64")
    X = np.repeat(np.arange(3.0), 40)[:, None]
    classifier = tg.GBDTClassifier(n_estimators=2).fit(X, y)
    assert classifier.classes_.dtype == np.int64
    assert classifier.classes_.tolist() == [5, 2**53, 2**53 + 1]
    assert digest(classifier) == tg.train(X, y, objective="softmax", n_estimators=2).digest()


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (["a", 1] * 20, "y holds values of type str and of type int"),
        (["a", None] * 20, "y is missing in row 1"),
    ],
)
def test_labels_of_two_kinds_are_refused_as_the_trainer_refuses_them(y: Any, message: str) -> None:
    with pytest.raises(InvalidDataError, match=message):
        tg.GBDTClassifier().fit(np.zeros((40, 1)), y)

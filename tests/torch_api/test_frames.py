"""Data frames: the same model and predictions, bit for bit, as the numbers that they hold."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.exact import assert_identical
from torch_api.frame_forms import FORMS, LIBRARIES, Table, mixed_table
from torch_api.small_data import QUICK, as_float64, read

import torchgbdt as tg
from torchgbdt.core.feature_source import HostMatrix
from torchgbdt.torch_api.features import read_features
from torchgbdt.torch_api.frames import FrameMatrix, SlicedColumn

TABLE = mixed_table()
NUMBERS = TABLE.as_float64()
Y = np.nan_to_num(NUMBERS[:, 0] * NUMBERS[:, 2] + NUMBERS[:, 5])
MODEL = tg.train(NUMBERS, Y, **QUICK)
WEIGHTS = np.arange(len(Y)) % 3.0  # drops every third row

each_form = pytest.mark.parametrize("form", FORMS)


@each_form
def test_a_frame_gives_the_model_of_its_numbers(form: str) -> None:
    assert tg.train(FORMS[form](TABLE), Y, **QUICK).digest() == MODEL.digest()


@each_form
def test_a_frame_with_dropped_rows_gives_the_model_of_its_numbers(form: str) -> None:
    model = tg.train(FORMS[form](TABLE), Y, sample_weight=WEIGHTS, **QUICK)
    assert model.digest() == tg.train(NUMBERS, Y, sample_weight=WEIGHTS, **QUICK).digest()


@each_form
def test_predictions_for_a_frame_are_float64_arrays_of_the_same_bits(form: str) -> None:
    frame = FORMS[form](TABLE)
    assert_identical(MODEL.predict(frame), MODEL.predict(NUMBERS))
    assert_identical(MODEL.predict_leaf(frame), MODEL.predict_leaf(NUMBERS))
    stages = zip(MODEL.staged_predict_raw(frame), MODEL.staged_predict_raw(NUMBERS), strict=True)
    for found, expected in stages:
        assert_identical(found, expected)


@each_form
def test_an_eval_set_may_be_a_frame(form: str) -> None:
    def history(X: Any) -> Any:
        trainer = tg.Trainer(**QUICK)
        trainer.fit(NUMBERS, Y, eval_set=[(X, Y)])
        return trainer.history

    assert history(FORMS[form](TABLE)) == history(NUMBERS)


@each_form
def test_reading_never_writes_to_a_frame(form: str) -> None:
    frame = FORMS[form](TABLE)
    tg.Dataset(frame, Y)
    assert_identical(as_float64(read(frame).matrix), NUMBERS)


@pytest.mark.parametrize("form", [*LIBRARIES, "pandas, chunks", "polars, chunks", "arrow, chunks"])
def test_a_frame_without_rows_is_predicted_on(form: str) -> None:
    frame = FORMS[form](TABLE.rows([]))
    assert_identical(MODEL.predict(frame), np.zeros(0))


# --- any frame -----------------------------------------------------------------------------------

DTYPES = ["f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]


@st.composite
def tables(draw: st.DrawFn) -> Table:
    n_rows = draw(st.integers(1, 40))
    columns = {}
    for index, dtype in enumerate(draw(st.lists(st.sampled_from(DTYPES), min_size=1, max_size=4))):
        numbers = {
            "f": st.sampled_from([0.0, -0.0, 1.5, -3.25, np.nan, np.inf, -np.inf, 1e-40]),
            "?": st.booleans(),
            "i": st.integers(-128, 127),
            "u": st.integers(0, 255),
        }[dtype[0]]
        values = draw(st.lists(numbers, min_size=n_rows, max_size=n_rows))
        gaps = draw(st.lists(st.booleans(), min_size=n_rows, max_size=n_rows))
        some = draw(st.booleans())
        columns[f"x{index}"] = (np.array(values, dtype), np.array(gaps) & some)
    return Table(columns)


@given(tables(), st.sampled_from(sorted(FORMS)), st.data())
def test_any_frame_is_read_exactly(table: Table, form: str, data: st.DataObject) -> None:
    matrix = read(FORMS[form](table)).matrix
    expected = table.as_float64()
    np.testing.assert_array_equal(as_float64(matrix), expected)
    start, stop = sorted(data.draw(st.tuples(*[st.integers(0, table.n_rows)] * 2)))
    np.testing.assert_array_equal(matrix.column(0, start, stop), expected[start:stop, 0])
    rows = np.array(data.draw(st.lists(st.integers(0, table.n_rows - 1))), np.int64)
    for chosen in (rows, np.unique(rows), np.arange(start, stop)):
        np.testing.assert_array_equal(matrix.sample(chosen, slice(0, 3)), expected[chosen, :3])


@given(tables(), st.sampled_from(sorted(FORMS)))
def test_any_frame_gives_the_bins_of_its_numbers(table: Table, form: str) -> None:
    found, expected = (tg.Dataset(X)._data for X in (FORMS[form](table), table.as_float64()))
    assert_identical(found.bins, expected.bins)
    assert_identical(found.thresholds.values, expected.thresholds.values)


def test_rows_far_apart_are_read_from_several_stretches() -> None:
    table = mixed_table(200_000)
    rows = np.array([3, 4, 70_000, 135_539, 135_540, 199_999])
    for make in LIBRARIES.values():
        sampled = read(make(table)).matrix.sample(rows, slice(2, 6))
        np.testing.assert_array_equal(sampled, table.as_float64()[rows, 2:6])


# --- in place ------------------------------------------------------------------------------------


def test_a_frame_made_of_one_array_is_that_array() -> None:
    values = np.arange(24, dtype=np.float32).reshape(6, 4)
    for X in (values, np.asfortranarray(values), values[::-1, ::2], values[:, :1]):
        matrix = read(pd.DataFrame(X, copy=False)).matrix
        assert isinstance(matrix, HostMatrix)
        assert np.shares_memory(matrix.values, X)
        assert_identical(matrix.values, X)
        assert not matrix.values.flags.writeable


def test_columns_of_one_array_that_are_not_evenly_spaced_are_not_one_array() -> None:
    values = np.arange(24, dtype=np.float32).reshape(6, 4)
    frame = pd.DataFrame({name: values[:, i] for i, name in enumerate("abcd")}, copy=False)
    assert isinstance(read(frame).matrix, HostMatrix)
    frame = pd.DataFrame({name: frame[name] for name in "abd"}, copy=False)
    matrix = read(frame).matrix
    assert isinstance(matrix, FrameMatrix)
    assert_identical(as_float64(matrix), values[:, [0, 1, 3]].astype(np.float64))


def address(values: np.ndarray) -> int:
    found: int = values.__array_interface__["data"][0]
    return found


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int8, np.uint64])
def test_columns_of_numbers_are_read_where_they_lie(dtype: Any) -> None:
    values = [np.arange(5).astype(dtype), np.arange(5)[::-1].astype(dtype)]
    table = pa.table({"a": values[0], "b": values[1]})
    for frame in (pd.DataFrame({"a": values[0], "b": values[1]}, copy=False), table):
        matrix = read(frame).matrix
        assert isinstance(matrix, FrameMatrix)
        assert [address(column) for column in matrix.columns] == [address(v) for v in values]
    polars_frame = pl.DataFrame({"a": values[0], "b": values[1]})
    matrix = read(polars_frame).matrix
    assert isinstance(matrix, FrameMatrix)
    own = [address(polars_frame[name].to_numpy(allow_copy=False)) for name in "ab"]
    assert [address(column) for column in matrix.columns] == own


@pytest.mark.parametrize("form", ["pandas, one foreign array", "pandas, not aligned"])
def test_an_array_that_kernels_cannot_read_is_no_host_matrix(form: str) -> None:
    assert isinstance(read(FORMS[form](TABLE)).matrix, FrameMatrix)


@pytest.mark.parametrize("form", ["pandas, chunks", "polars, chunks", "arrow, chunks"])
def test_chunks_are_not_joined(form: str) -> None:
    matrix = read(FORMS[form](TABLE)).matrix
    assert isinstance(matrix, FrameMatrix)
    assert {type(column) for column in matrix.columns} == {SlicedColumn}


def test_signalling_nan_is_missing_without_a_warning() -> None:
    signalling = np.array([0x3F800000, 0x7FA00000, 0x40000000], np.uint32).view(np.float32)
    matrix = read(pd.DataFrame({"a": signalling, "b": [1, 2, 3]})).matrix
    assert isinstance(matrix, FrameMatrix)
    for rows in ([0, 1, 2], [0, 1], [1, 2, 2], [2, 1, 0]):
        expected = np.array([1.0, np.nan, 2.0])[rows]
        found = matrix.sample(np.array(rows), slice(0, 1))
        np.testing.assert_array_equal(found[:, 0], expected)
    np.testing.assert_array_equal(matrix.column(0, 0, 3), [1, np.nan, 2])


def test_integers_up_to_2_to_the_53_are_exact() -> None:
    table = Table({"a": (np.array([2**53, -(2**53), 0]), np.array([False, False, True]))})
    for name, make in LIBRARIES.items():
        if name != "pandas numpy":
            assert_identical(as_float64(read(make(table)).matrix), table.as_float64())


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"a": pd.array([None, None], dtype=pd.ArrowDtype(pa.null())), "b": [1, 2]}),
        pl.DataFrame({"a": [None, None], "b": [1, 2]}),
        pa.table({"a": pa.nulls(2), "b": [1, 2]}),
        pd.DataFrame({"a": pd.array([None, None], dtype="Int64"), "b": [1, 2]}),
        pl.DataFrame({"a": pl.Series([None, None], dtype=pl.UInt64), "b": [1, 2]}),
    ],
    ids=["pandas", "polars", "arrow", "pandas Int64", "polars UInt64"],
)
def test_a_column_of_nulls_is_all_missing(frame: Any) -> None:
    np.testing.assert_array_equal(as_float64(read(frame).matrix), [[np.nan, 1], [np.nan, 2]])


def test_an_empty_column_of_nulls_is_accepted_where_no_rows_are() -> None:
    for frame in (pl.DataFrame({"a": []}), pa.table({"a": pa.nulls(0)})):
        assert read_features(frame, "X", {}, may_be_empty=True).matrix.n_rows == 0


def test_float16_columns_are_read_exactly() -> None:
    values = np.array([1.5, np.nan, -np.inf], np.float16)
    frames: list[Callable[[], Any]] = [
        lambda: pd.DataFrame({"a": values}),
        lambda: pa.table({"a": pa.array(values, mask=np.array([False, True, False]))}),
        lambda: pl.DataFrame({"a": pl.Series([1.5, None, -np.inf]).cast(pl.Float16)}),
    ]
    for make in frames:
        np.testing.assert_array_equal(as_float64(read(make()).matrix)[:, 0], values)


# --- without the libraries -----------------------------------------------------------------------

FIT_ON_NUMPY = """
import sys
import numpy as np
import torchgbdt as tg
X = np.random.default_rng(0).normal(size=(100, 3))
model = tg.train(X, X[:, 0], n_estimators=2, eval_set=[(X, X[:, 0].tolist())])
model.predict(X.tolist())
loaded = {"pandas", "polars", "pyarrow"} & set(sys.modules)
assert not loaded, loaded
"""


def test_no_library_of_frames_is_imported_for_arrays() -> None:
    run = subprocess.run(
        [sys.executable, "-c", FIT_ON_NUMPY], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr

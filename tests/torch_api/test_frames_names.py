"""The names of a frame's columns: those of the model, compared wherever another frame comes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from torch_api.small_data import QUICK, regression

import torchgbdt as tg
from torchgbdt.core.errors import InvalidDataError

NAMES = ["a", "b", "größe", "d"]
X, Y = (values.numpy() for values in regression())


def of_pandas(names: Any, values: np.ndarray = X) -> pd.DataFrame:
    return pd.DataFrame(values, columns=names)


def of_polars(names: Any, values: np.ndarray = X) -> pl.DataFrame:
    return pl.DataFrame(values, schema=list(names))


def of_arrow(names: Any, values: np.ndarray = X) -> pa.Table:
    return pa.table({name: values[:, i] for i, name in enumerate(names)})


MODEL = tg.train(of_pandas(NAMES), Y, **QUICK)
NAMELESS = tg.train(X, Y, **QUICK)

each_library = pytest.mark.parametrize(
    "frame", [of_pandas, of_polars, of_arrow], ids=lambda make: make.__name__
)
METHODS: list[Callable[..., Any]] = [
    MODEL.predict,
    MODEL.predict_raw,
    MODEL.predict_leaf,
    MODEL.staged_predict_raw,
]
each_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)


@each_library
def test_names_of_a_frame_are_those_of_the_model(frame: Any) -> None:
    model = tg.train(frame(NAMES), Y, **QUICK)
    assert model.feature_names == tuple(NAMES)
    assert model.digest() == NAMELESS.digest()
    assert tg.Dataset(frame(NAMES), Y).feature_names == tuple(NAMES)
    assert tg.Dataset(frame(NAMES), Y).subset([0, 1]).feature_names == tuple(NAMES)


@pytest.mark.parametrize(
    "columns",
    [range(4), [3, 1, 0, 2], pd.MultiIndex.from_product([["a", "b"], ["c", "d"]])],
    ids=["range", "integers", "pairs"],
)
def test_frame_without_texts_as_names_has_none(columns: Any) -> None:
    model = tg.train(of_pandas(columns), Y, **QUICK)
    assert model.feature_names is None
    assert model.digest() == NAMELESS.digest()
    MODEL.predict(of_pandas(columns))  # by position


def test_arrow_backed_and_numpy_names_become_texts() -> None:
    columns = pd.Index(NAMES, dtype=pd.ArrowDtype(pa.string()))
    names = tg.Dataset(of_pandas(columns)).feature_names
    assert names == tuple(NAMES)
    assert {type(name) for name in names or ()} == {str}


# --- predict -------------------------------------------------------------------------------------

PICK = r"Pass X\[list\(model\.feature_names\)\]"
OTHERS: dict[str, tuple[list[str], str]] = {
    "order": (
        ["a", "d", "größe", "b"],
        f"another order: 'd' at column 1 instead of 'b'. {PICK}",
    ),
    "missing": (["a", "b", "d"], r"X lacks 'größe'\. Pass its missing columns, then X\["),
    "several missing": (["d"], r"X lacks 'a', 'b', 'größe'\. Pass its missing"),
    "unexpected": ([*NAMES, "z"], f"X has 'z', unknown to the model. {PICK}"),
    "renamed": (["a", "b", "z", "d"], "X lacks 'größe' and has 'z', unknown to the model"),
    "many": ([*NAMES, *"efghijk"], "has 'e', 'f', 'g', 'h', 'i' and 2 more, unknown"),
}


@each_library
@pytest.mark.parametrize("what", OTHERS)
def test_frame_with_other_columns_is_refused(frame: Any, what: str) -> None:
    names, message = OTHERS[what]
    values = np.ones((5, len(names)), np.float32)
    with pytest.raises(InvalidDataError, match=message):
        MODEL.predict(frame(names, values))


@each_method
def test_each_method_refuses_another_order(method: Callable[..., Any]) -> None:
    with pytest.raises(InvalidDataError, match="X has the columns of the model in another order"):
        method(of_pandas(NAMES[::-1]))
    method(of_pandas(NAMES))


def test_unexpected_column_of_text_is_unexpected_first_of_all() -> None:
    with pytest.raises(InvalidDataError, match="X has 'city', unknown to the model"):
        MODEL.predict(of_pandas(NAMES).assign(city="Zürich"))


def test_named_and_nameless_data_go_together_by_position() -> None:
    expected = NAMELESS.predict(X)
    np.testing.assert_array_equal(MODEL.predict(X), expected)
    np.testing.assert_array_equal(NAMELESS.predict(of_pandas(["x", "y", "z", "a"])), expected)


def test_nameless_data_of_another_width_is_refused() -> None:
    with pytest.raises(InvalidDataError, match="X has 3 columns; the model was trained on 4"):
        NAMELESS.predict(of_pandas(["x", "y", "z"], X[:, :3]))


# --- eval sets -----------------------------------------------------------------------------------


@each_library
def test_eval_set_is_compared_with_the_training_data(frame: Any) -> None:
    trainer = tg.Trainer(**QUICK)
    trainer.fit(of_pandas(NAMES), Y, eval_set=[(frame(NAMES), Y), (X, Y)])
    with pytest.raises(InvalidDataError, match=r"eval_set\[1\] has the features.*'größe'"):
        trainer.fit(of_pandas(NAMES), Y, eval_set=[(X, Y), (frame(NAMES[::-1]), Y)])
    with pytest.raises(InvalidDataError, match=r"eval_set\[0\] has 3 features"):
        trainer.fit(of_pandas(NAMES), Y, eval_set=[(frame(NAMES[:3], X[:, :3]), Y)])


def test_eval_set_with_names_goes_with_nameless_training_data() -> None:
    assert tg.train(X, Y, eval_set=[(of_pandas(NAMES), Y)], **QUICK).feature_names is None


# --- feature_names= ------------------------------------------------------------------------------


def test_feature_names_may_repeat_those_of_the_frame() -> None:
    frame = of_pandas(NAMES)
    assert tg.Dataset(frame, feature_names=frame.columns).feature_names == tuple(NAMES)
    MODEL.predict(frame, feature_names=frame.columns)


def test_feature_names_give_names_to_a_nameless_frame() -> None:
    assert tg.Dataset(of_pandas(range(4)), feature_names=NAMES).feature_names == tuple(NAMES)


def test_feature_names_that_differ_from_the_frame_are_refused() -> None:
    message = "feature_names has 'z' at column 3, where X itself has 'd'. Leave feature_names out"
    with pytest.raises(InvalidDataError, match=message):
        tg.Dataset(of_pandas(NAMES), feature_names=[*NAMES[:3], "z"])
    with pytest.raises(InvalidDataError, match=message):
        MODEL.predict(of_pandas(NAMES), feature_names=[*NAMES[:3], "z"])


@pytest.mark.parametrize(
    "names",
    [
        pd.Index(NAMES),
        pd.Series(NAMES),
        pl.Series(NAMES),
        dict.fromkeys(NAMES).keys(),
        np.array(NAMES, object),
        of_arrow(NAMES).column_names,
    ],
    ids=lambda names: f"{type(names).__module__}.{type(names).__name__}",
)
def test_any_ordered_container_of_texts_gives_names(names: Any) -> None:
    assert tg.Dataset(X, feature_names=names).feature_names == tuple(NAMES)


@pytest.mark.parametrize(
    "names",
    ["abcd", b"abcd", set(NAMES), dict.fromkeys(NAMES), iter(NAMES), 4, [1, 2, 3, 4]],
    ids=lambda names: type(names).__name__,
)
def test_other_containers_are_refused(names: Any) -> None:
    with pytest.raises(InvalidDataError, match="feature_names must be a list of texts"):
        tg.Dataset(X, feature_names=names)


@pytest.mark.parametrize("names", [of_pandas(NAMES), of_polars(NAMES), np.array([NAMES])])
def test_containers_of_two_axes_are_refused(names: Any) -> None:
    with pytest.raises(InvalidDataError, match="feature_names must be a list of texts"):
        tg.Dataset(X, feature_names=names)

"""Names of X's columns at predict: compared with those the model was trained on."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from torch_api.small_data import QUICK, regression

import torchgbdt as tg
from torchgbdt.core.errors import InvalidDataError

X, Y = regression()
NAMES = ["a", "b", "c", "d"]
MODEL = tg.train(tg.Dataset(X, Y, feature_names=NAMES), **QUICK)

METHODS: list[Callable[..., Any]] = [
    MODEL.predict,
    MODEL.predict_raw,
    MODEL.predict_leaf,
    MODEL.staged_predict_raw,
]
each_method = pytest.mark.parametrize("method", METHODS, ids=lambda method: method.__name__)


@each_method
@pytest.mark.parametrize("names", [NAMES, tuple(NAMES), np.array(NAMES)], ids=repr)
def test_the_names_of_training_pass(method: Callable[..., Any], names: Any) -> None:
    method(X, feature_names=names)


@each_method
@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a", "b", "d", "c"], "'d' at column 2, where the model was trained on 'c'. They are the"),
        (["a", "x", "c", "d"], "'x' at column 1, where the model was trained on 'b'. Pass the"),
        (["a", "b", "c"], "has 3 names; X has 4 columns"),
        (["a", "b", "c", "c"], "has 'c' twice"),
        ("abcd", "must be a list of texts"),
    ],
)
def test_other_names_are_refused(method: Callable[..., Any], names: Any, message: str) -> None:
    with pytest.raises(InvalidDataError, match="feature_names") as caught:
        method(X, feature_names=names)
    assert message in str(caught.value)


def test_names_for_a_model_without_any_are_refused() -> None:
    model = tg.train(X, Y, **QUICK)
    with pytest.raises(InvalidDataError, match="trained without names"):
        model.predict(X, feature_names=NAMES)

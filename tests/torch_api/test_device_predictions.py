"""Predictions of tensors on another device: computed there, and the bits of the host's."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
import torch
from support.second_device import copies_to_host, elsewhere
from torch_api.small_data import QUICK, regression

import torchgbdt as tg
from torchgbdt.core.errors import InvalidDataError

X, Y = regression()
N_ROWS = len(X)
LABELS: dict[str, Any] = {
    "bool": Y > 0,
    "integers": (Y > 0).long() * 7 - 3,
    "uint64": np.where(Y > 0, 2**64 - 1, 2).astype(np.uint64),
    "float32": torch.where(Y > 0, 2.0, -1.0),
    "float64 alone": (Y > 0).double() * (2.0**53 - 3) + 2.0,
    "text": np.where(Y > 0, "yes", "no"),
}
MODELS = {
    "squared error": tg.train(X, Y + 5, **QUICK),
    "softmax": tg.train(X, (Y * 2).round().clamp(-1, 1), objective="softmax", **QUICK),
    **{labels: tg.train(X, y, objective="logistic", **QUICK) for labels, y in LABELS.items()},
}
ONE_OF_EACH = ["squared error", "softmax", "integers"]

FORMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "float32": lambda X: X,
    "float64": lambda X: X.double(),
    "float16": lambda X: X.half(),
    "bfloat16": lambda X: X.bfloat16(),
    "int64": lambda X: X.nan_to_num().mul(4).long(),
    "uint8": lambda X: X.nan_to_num().abs().mul(4).byte(),
    "bool": lambda X: X > 0,
    "transposed": lambda X: X.t().contiguous().t(),
    "every second row": lambda X: X[::2],
    "wider": lambda X: torch.cat([X, X], dim=1)[:, :4],
    "requires_grad": lambda X: X.clone().requires_grad_(),
    "parameter": lambda X: torch.nn.Parameter(X.clone()),
    "no rows": lambda X: X[:0],
    "one row": lambda X: X[5:6],
}


def methods(model: tg.Model) -> list[str]:
    names = ["predict", "predict_raw", "predict_leaf", "staged_predict", "staged_predict_raw"]
    return names if model.classes is None else [*names, "predict_proba", "staged_predict_proba"]


def ask(model: tg.Model, method: str, X: Any, **arguments: Any) -> list[Any]:
    found = getattr(model, method)(X, **arguments)
    return list(found) if method.startswith("staged") else [found]


def assert_same(found: list[Any], expected: list[Any]) -> None:
    """The same bits, kinds and shapes, but on the other device."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.device.type == "lazy"
        assert not one.requires_grad
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.cpu().numpy().tobytes() == other.contiguous().numpy().tobytes()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_prediction_has_the_bits_of_the_host(name: str, form: str) -> None:
    model = MODELS[name]
    here = FORMS[form](X)
    there = FORMS[form](elsewhere(X))
    for method in methods(model):
        assert_same(ask(model, method, there), ask(model, method, here))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("labels", [name for name in LABELS if name != "text"])
def test_classes_are_tensors_there(labels: str, dtype: torch.dtype) -> None:
    model, data = MODELS[labels], X.to(dtype)
    assert_same([model.predict(elsewhere(data))], [model.predict(data)])


def test_text_classes_are_an_array() -> None:
    found = MODELS["text"].predict(elsewhere(X))
    assert type(found) is np.ndarray
    assert found.tolist() == MODELS["text"].predict(X).tolist()


@pytest.mark.parametrize("where", ["there", "host", "array"])
@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_margins_are_added_there(name: str, where: str) -> None:
    model = MODELS[name]
    margins = torch.linspace(-3, 3, N_ROWS)
    if name == "softmax":
        margins = torch.stack([margins, -margins, margins * 0], dim=1)
    margins[7] = 2.0**-130  # counts as 0
    given: Any = {"there": elsewhere(margins), "host": margins, "array": margins.numpy()}[where]
    for method in ("predict", "predict_raw", "staged_predict_raw"):
        for data in (X, X.double()):
            found = ask(model, method, elsewhere(data), base_margin=given)
            assert_same(found, ask(model, method, data, base_margin=margins))


MARGINS_REFUSED: dict[str, Any] = {
    "nan": torch.full((N_ROWS,), torch.nan),
    "infinite": torch.arange(float(N_ROWS)) * -torch.inf,
    "beyond float32": torch.full((N_ROWS,), 1e300, dtype=torch.float64),
    "too few": torch.zeros(N_ROWS - 1),
    "one": torch.tensor(0.0),
    "columns": torch.zeros(N_ROWS, 2),
    "three axes": torch.zeros(N_ROWS, 1, 1),
    "complex": torch.zeros(N_ROWS, dtype=torch.cfloat),
}


@pytest.mark.parametrize("name", ["squared error", "softmax"])
@pytest.mark.parametrize("what", MARGINS_REFUSED)
def test_margins_there_are_refused_in_the_words_of_the_host(what: str, name: str) -> None:
    model, margins = MODELS[name], MARGINS_REFUSED[what]
    messages = []
    for place in (lambda tensor: tensor, elsewhere):
        with pytest.raises(InvalidDataError) as caught:
            model.predict_raw(place(X), base_margin=place(margins))
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_columns_are_counted_there_as_well() -> None:
    with pytest.raises(InvalidDataError, match="X has 3 columns; the model was trained on 4"):
        MODELS["softmax"].predict(elsewhere(X[:, :3]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_nothing_of_a_prediction_visits_the_host(name: str, dtype: torch.dtype) -> None:
    model, data = MODELS[name], elsewhere(X.to(dtype))
    margins = torch.zeros(N_ROWS, 3) if name == "softmax" else torch.zeros(N_ROWS)
    margins = elsewhere(margins)
    model.predict_raw(data)  # the arithmetic of a device is compared with the host's once
    with copies_to_host() as sizes:
        for method in methods(model):
            options = {} if method == "predict_leaf" else {"base_margin": margins}
            ask(model, method, data, **options)
    assert max(sizes, default=0) <= 1, sizes  # whether all margins are finite


def test_copies_to_the_host_are_seen() -> None:
    with copies_to_host() as sizes:
        elsewhere(X).cpu()
    assert sizes == [X.numel()]


# ----------------------------------------------------------------------------- modes of the process


@contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def deterministic() -> Iterator[None]:
    """With this, memory that is still to be written holds NaN and the largest integers."""
    assert torch.utils.deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


SURROUNDINGS: dict[str, Any] = {
    "no_grad": torch.no_grad,
    "inference mode": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "default device meta": lambda: torch.device("meta"),
    "default device of the data": lambda: torch.device("lazy"),
    "default dtype float64": lambda: default_dtype(torch.float64),
    "deterministic": deterministic,
}


@pytest.mark.parametrize("surroundings", SURROUNDINGS)
def test_surroundings_change_neither_model_nor_predictions(surroundings: str) -> None:
    labels = (Y * 2).round().clamp(-1, 1)
    expected = MODELS["softmax"]
    there, margins = elsewhere(X), elsewhere(torch.zeros(N_ROWS, 3))
    with SURROUNDINGS[surroundings]():
        data = tg.Dataset(there, labels)
        trained = tg.train(there, labels, objective="softmax", **QUICK)
        found = {method: ask(trained, method, there) for method in methods(trained)}
        stages = trained.staged_predict_proba(there)
        next(stages)
        with_margins = trained.predict_raw(there, base_margin=margins)
    assert trained.digest() == expected.digest()
    assert tg.train(data, objective="softmax", **QUICK).digest() == expected.digest()
    for method, results in found.items():
        assert_same(results, ask(expected, method, X))
    assert_same(list(stages), ask(expected, "staged_predict_proba", X)[1:])
    assert_same([with_margins], [expected.predict_raw(X)])

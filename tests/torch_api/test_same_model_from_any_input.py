"""However X is stored, the model is the same, bit for bit; and so are its predictions."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch_api.small_data import QUICK, regression

import torchgbdt as tg

X32, Y32 = regression(300)
INTEGERS = (X32.nan_to_num() * 8).round().clamp(-100, 100)


def negative_view(X: torch.Tensor) -> torch.Tensor:
    return torch.complex(torch.zeros_like(X), -X).conj().imag


FORMS: dict[str, Callable[[torch.Tensor], Any]] = {
    "float64": lambda X: X.double(),
    "numpy": lambda X: X.numpy(),
    "numpy float64": lambda X: X.double().numpy(),
    "list": lambda X: X.tolist(),
    "F order": lambda X: np.asfortranarray(X.numpy()),
    "transposed": lambda X: X.T.contiguous().T,
    "reversed": lambda X: np.ascontiguousarray(X.numpy()[::-1])[::-1],
    "slice of a wider tensor": lambda X: torch.cat([X, X], dim=1)[:, : X.shape[1]],
    "every second row": lambda X: X.repeat_interleave(2, dim=0)[::2],
    "foreign byte order": lambda X: X.numpy().astype(">f4"),
    "negative view": negative_view,
    "requires_grad": lambda X: X.clone().requires_grad_(),
}


@pytest.mark.parametrize("form", FORMS)
def test_form_of_x_does_not_change_the_model(form: str) -> None:
    model = tg.train(FORMS[form](X32), Y32, **QUICK)
    assert model.digest() == tg.train(X32, Y32, **QUICK).digest()


@pytest.mark.parametrize("form", FORMS)
def test_form_of_x_does_not_change_predictions(form: str) -> None:
    model = tg.train(X32, Y32, **QUICK)
    found = torch.as_tensor(model.predict_leaf(FORMS[form](X32)))
    assert torch.equal(found, model.predict_leaf(X32))


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float64", "int8", "int16", "int32", "int64"]
)
def test_dtype_of_small_integers_does_not_change_the_model(dtype: str) -> None:
    model = tg.train(INTEGERS.to(getattr(torch, dtype)), Y32, **QUICK)
    assert model.digest() == tg.train(INTEGERS, Y32, **QUICK).digest()


@pytest.mark.parametrize(
    "y",
    [Y32.double(), Y32.numpy(), Y32[:, None], Y32.tolist(), Y32.clone().requires_grad_()],
    ids=["float64", "numpy", "column", "list", "requires_grad"],
)
def test_form_of_y_does_not_change_the_model(y: Any) -> None:
    assert tg.train(X32, y, **QUICK).digest() == tg.train(X32, Y32, **QUICK).digest()


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.bfloat16], ids=str)
def test_targets_may_have_any_dtype(dtype: torch.dtype) -> None:
    y = Y32 > 0
    assert (
        tg.train(X32, y.to(dtype), **QUICK).digest() == tg.train(X32, y.float(), **QUICK).digest()
    )


def test_numpy_x_goes_with_tensor_y() -> None:
    assert tg.train(X32.numpy(), Y32, **QUICK).digest() == tg.train(X32, Y32, **QUICK).digest()

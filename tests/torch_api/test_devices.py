"""Data on another device: copied to where training runs, once, and diagnostics say so.

Torch's lazy tensors stand for the other device: they need no hardware.
"""

from typing import Any

import pytest
import torch
import torch._lazy
import torch._lazy.ts_backend
from torch_api.small_data import QUICK, regression

import torchgbdt as tg
from torchgbdt.core.errors import BackendUnavailableError

X, Y = regression()


@pytest.fixture(scope="module", autouse=True)
def _lazy_device() -> None:
    torch._lazy.ts_backend.init()


def elsewhere(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to("lazy")


def test_data_elsewhere_trains_the_same_model_on_the_host() -> None:
    model = tg.train(elsewhere(X), elsewhere(Y), device="cpu", **QUICK)
    assert model.digest() == tg.train(X, Y, **QUICK).digest()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int32], ids=str)
def test_dtype_survives_the_copy(dtype: torch.dtype) -> None:
    small = (X.nan_to_num() * 8).round().to(dtype)
    model = tg.train(elsewhere(small), Y, device="cpu", **QUICK)
    assert model.digest() == tg.train(small, Y, **QUICK).digest()


def test_diagnostics_name_everything_that_was_copied() -> None:
    trainer = tg.Trainer(device="cpu", **QUICK)
    trainer.fit(
        elsewhere(X),
        Y,
        sample_weight=elsewhere(torch.ones_like(Y)),
        eval_set=[(X, elsewhere(Y))],
        base_margin=elsewhere(Y),
        eval_base_margin=[Y],
    )
    assert trainer.diagnostics()["copied_from"] == dict.fromkeys(
        ["X", "sample_weight", "eval_set[0] y", "base_margin"], "lazy:0"
    )


def test_nothing_was_copied_from_the_host() -> None:
    trainer = tg.Trainer(**QUICK)
    trainer.fit(X, Y)
    assert trainer.diagnostics()["copied_from"] == {}


def test_dataset_remembers_that_it_was_copied() -> None:
    trainer = tg.Trainer(**QUICK)
    trainer.fit(tg.Dataset(elsewhere(X), Y).subset(range(100)))
    assert trainer.diagnostics()["copied_from"] == {"X": "lazy:0"}


def test_y_may_lie_elsewhere() -> None:
    model = tg.train(X, elsewhere(Y), **QUICK)
    assert model.digest() == tg.train(X, Y, **QUICK).digest()


def test_device_of_x_decides_and_nothing_falls_back() -> None:
    trainer = tg.Trainer(**QUICK)
    with pytest.raises(BackendUnavailableError, match=r"lazy:0.*device='cpu'"):
        trainer.fit(elsewhere(X), Y)
    assert trainer.state is tg.TrainerState.FAILED


@pytest.mark.parametrize("method", ["predict", "predict_raw", "predict_leaf"])
def test_predictions_go_back_to_the_device_of_x(method: str) -> None:
    model = tg.train(X, Y, **QUICK)
    result: Any = getattr(model, method)(elsewhere(X))
    assert result.device == torch.device("lazy", 0)
    assert torch.equal(result.cpu(), getattr(model, method)(X))

"""Modes and defaults of the process that must not change a model, and come back unchanged."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_api.small_data import QUICK, regression

import torchgbdt as tg
from torchgbdt.core.errors import InvalidDataError
from torchgbdt.torch_api.float_environment import ieee_arithmetic, subnormals_are_flushed

X, Y = regression()


@contextlib.contextmanager
def flush_denormal() -> Iterator[None]:
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)


@contextlib.contextmanager
def default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


SURROUNDINGS: dict[str, Any] = {
    "no_grad": torch.no_grad,
    "inference_mode": torch.inference_mode,
    "default dtype float64": lambda: default_dtype(torch.float64),
    "default dtype bfloat16": lambda: default_dtype(torch.bfloat16),
    "default device meta": lambda: torch.device("meta"),
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "subnormals flushed": flush_denormal,
    "numpy raises": lambda: np.errstate(all="raise"),
}


@pytest.mark.parametrize("surroundings", SURROUNDINGS)
def test_surroundings_do_not_change_model_or_predictions(surroundings: str) -> None:
    tiny = X * 2.0**-135  # subnormal in float32: a flushing thread would see only zeros
    expected = tg.train(tiny, Y, **QUICK)
    with SURROUNDINGS[surroundings]():
        model = tg.train(tiny, Y, **QUICK)
        predicted = model.predict(tiny)
        stages = list(model.staged_predict_raw(tiny))
        data = tg.Dataset(tiny, Y)
    assert model.digest() == expected.digest()
    assert tg.train(data, **QUICK).digest() == expected.digest()
    assert predicted.dtype == torch.float32
    assert predicted.tolist() == expected.predict(tiny).tolist()
    assert stages[-1].tolist() == predicted.tolist()


@pytest.mark.parametrize("method", ["predict_leaf", "predict_raw", "staged_predict_raw"])
def test_array_read_block_by_block_keeps_its_subnormals(method: str) -> None:
    tiny = X * 2.0**-135
    model = tg.train(tiny, Y, **QUICK)
    expected = getattr(model, method)(tiny.double())
    with flush_denormal():
        found = getattr(model, method)(tiny.numpy().astype(">f4"))
        if method == "staged_predict_raw":
            expected, found = list(expected)[-1], list(found)[-1]
    assert torch.equal(torch.from_numpy(found), expected)


@pytest.mark.parametrize("fails", [False, True])
def test_flushing_of_subnormals_comes_back(fails: bool) -> None:
    with flush_denormal():
        if not subnormals_are_flushed():
            pytest.skip("this processor does not flush subnormals")
        with contextlib.suppress(InvalidDataError):
            tg.train(X, Y[1:] if fails else Y, **QUICK)
        assert subnormals_are_flushed()
    assert not subnormals_are_flushed()


def test_staged_prediction_does_not_change_the_surroundings_between_stages() -> None:
    stages = tg.train(X, Y, **QUICK).staged_predict_raw(X)
    with flush_denormal():
        before = subnormals_are_flushed()
        next(stages)
        assert subnormals_are_flushed() == before


def test_numpy_errors_come_back() -> None:
    with np.errstate(all="raise"):
        before = np.geterr()
        with ieee_arithmetic():
            assert np.geterr() != before
        assert np.geterr() == before


def test_default_device_is_not_where_training_runs() -> None:
    with torch.device("meta"):
        trainer = tg.Trainer(**QUICK)
        trainer.fit(X, Y)
    assert trainer.diagnostics()["device"] == "cpu"


def test_digests_and_files_do_not_depend_on_flushing(tmp_path: Path) -> None:
    # Thresholds between subnormal float64 values: computing with them would flush them.
    column = np.arange(40.0)[:, None] * 1e-310
    model = tg.train(column, np.arange(40.0), n_estimators=3, min_samples_leaf=1)
    digest = model.digest()
    torch.set_flush_denormal(True)
    try:
        assert model.digest() == digest
        model.save(tmp_path / "flushed")
        assert tg.load(tmp_path / "flushed").digest() == digest
    finally:
        torch.set_flush_denormal(False)
    model.save(tmp_path / "plain")
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "flushed").read_bytes()

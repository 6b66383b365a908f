"""Data on another device: trained there, or copied to where training runs, once, and noted.

The other device is that of support/second_device.py; the torch backend runs on it.
"""

from typing import Any

import numpy as np
import pytest
import torch
from support.second_device import SECOND_DEVICE, copies_to_host, elsewhere, start_second_device
from torch_api.small_data import QUICK, regression

import torchgbdt as tg
from torchgbdt.backends.torch_scatter import TorchBackend
from torchgbdt.core.errors import InvalidDataError, InvalidParameterError

X, Y = regression()
X_LAZY, Y_LAZY = elsewhere(X), elsewhere(Y)
CLASSES = (Y * 2).round().clamp(-1, 1).long()
WEIGHTS = torch.arange(len(Y)) % 4 / 2.0  # every fourth row has none


def fit(*data: Any, device: Any = "auto", **arguments: Any) -> tuple[tg.Model, dict[str, Any]]:
    """A quick model, and the diagnostics of its run."""
    settings = {name: arguments.pop(name) for name in ("objective", "backend") if name in arguments}
    trainer = tg.Trainer(device=device, **settings, **QUICK)
    return trainer.fit(*data, **arguments), trainer.diagnostics()


# --------------------------------------------------------------------- training where the data lies


@pytest.mark.parametrize(
    ("objective", "y"), [("squared_error", Y), ("logistic", Y > 0), ("softmax", CLASSES)]
)
def test_data_trains_where_it_lies(objective: str, y: torch.Tensor) -> None:
    model, facts = fit(X_LAZY, y, objective=objective)
    assert (facts["backend"], facts["device"]) == ("torch", SECOND_DEVICE)
    assert facts["copied_from"] == {}
    assert model.digest() == fit(X, y, objective=objective)[0].digest()


def test_rows_of_every_argument_may_lie_there() -> None:
    more = {
        "sample_weight": WEIGHTS,
        "eval_set": [(X[:50], Y[:50])],
        "eval_sample_weight": [WEIGHTS[:50]],
        "base_margin": Y / 2,
        "eval_base_margin": [Y[:50] / 2],
    }
    there: dict[str, Any] = {
        "sample_weight": elsewhere(WEIGHTS),
        "eval_set": [(X_LAZY[:50], Y_LAZY[:50])],
        "eval_sample_weight": [elsewhere(WEIGHTS[:50])],
        "base_margin": elsewhere(Y / 2),
        "eval_base_margin": [elsewhere(Y[:50] / 2)],
    }
    model, facts = fit(X_LAZY, Y_LAZY, **there)
    assert model.digest() == fit(X, Y, **more)[0].digest()
    read_on_the_host = [
        "y",
        "sample_weight",
        "eval_set[0] y",
        "eval_set[0] sample_weight",
        "base_margin",
        "eval_base_margin[0]",
    ]
    assert facts["copied_from"] == dict.fromkeys(read_on_the_host, SECOND_DEVICE)


def test_evaluation_data_of_the_host_goes_to_the_device_of_x() -> None:
    valid = (X[:50].numpy(), Y[:50])
    model, facts = fit(X_LAZY, Y, eval_set=[valid])
    assert facts["copied_from"] == {"eval_set[0] X": "cpu"}
    assert model.digest() == fit(X, Y, eval_set=[valid])[0].digest()


@pytest.mark.parametrize("form", ["tensor", "array", "float64", "bfloat16", "big-endian"])
def test_data_of_the_host_goes_to_a_device_that_is_named(form: str) -> None:
    start_second_device()
    data: Any = {
        "tensor": X,
        "array": X.numpy(),
        "float64": X.double(),
        "bfloat16": X.bfloat16(),
        "big-endian": X.numpy().astype(">f4"),
    }[form]
    model, facts = fit(data, Y, device="lazy")
    assert facts["device"] == SECOND_DEVICE
    assert facts["copied_from"] == {"X": "cpu"}
    assert model.digest() == fit(data, Y)[0].digest()


@pytest.mark.parametrize("device", ["lazy", "lazy:0", torch.device("lazy")], ids=repr)
def test_device_of_the_data_may_be_named(device: Any) -> None:
    model, facts = fit(X_LAZY, Y, device=device)
    assert facts["copied_from"] == {}
    assert fit(tg.Dataset(X_LAZY, Y), device=device)[1]["copied_from"] == {}
    assert model.digest() == fit(X, Y)[0].digest()


@pytest.mark.parametrize("backend", ["cpu", "oracle"])
def test_backend_of_the_host_says_what_to_do_with_data_elsewhere(backend: str) -> None:
    trainer = tg.Trainer(backend=backend, **QUICK)
    with pytest.raises(InvalidParameterError, match=r"found device 'lazy:0'.*device='cpu'"):
        trainer.fit(X_LAZY, Y)
    assert trainer.state is tg.TrainerState.FAILED


def test_callbacks_see_predictions_there() -> None:
    seen = []

    class Look(tg.callbacks.Callback):
        def on_round_end(self, context: Any) -> None:
            seen.append((context.raw_predictions(), context.raw_predictions("valid_0")))

    trainer = tg.Trainer(callbacks=[Look()], **QUICK)
    model = trainer.fit(X_LAZY, Y, eval_set=[(X_LAZY[:20], Y[:20])])
    for found, rows in zip(seen[-1], (X_LAZY, X_LAZY[:20]), strict=True):
        assert str(found.device) == SECOND_DEVICE
        assert torch.equal(found.cpu(), model.predict_raw(rows).cpu())


def test_nothing_of_all_rows_visits_the_host_after_prepare(monkeypatch: Any) -> None:
    more_rows, labels = regression(2003)
    data = [elsewhere(more_rows), labels > 0]
    copied: list[list[int]] = []
    prepare, release = TorchBackend.prepare, TorchBackend.release
    with copies_to_host() as sizes:

        def prepare_and_note(self: Any, *args: Any) -> None:
            prepare(self, *args)
            sizes.clear()

        def note_and_release(self: Any) -> None:
            copied.append(list(sizes))
            release(self)

        monkeypatch.setattr(TorchBackend, "prepare", prepare_and_note)
        monkeypatch.setattr(TorchBackend, "release", note_and_release)
        settings = {**QUICK, "max_bins": 16, "eval_metric": ["logloss", "auc"]}
        tg.train(*data, objective="logistic", eval_set=[tuple(data)], **settings)
    assert copied[0]
    assert max(copied[0]) < 2003  # histograms of 4 features are smaller


# --------------------------------------------------------------------- training on a copy elsewhere


def test_data_elsewhere_trains_the_same_model_on_the_host() -> None:
    model, facts = fit(X_LAZY, Y, device="cpu")
    assert (facts["backend"], facts["copied_from"]) == ("cpu", {"X": SECOND_DEVICE})
    assert model.digest() == fit(X, Y)[0].digest()


@pytest.mark.parametrize("device", ["auto", "cpu"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int32, torch.bool], ids=str)
def test_dtype_survives(dtype: torch.dtype, device: str) -> None:
    small = (X.nan_to_num() * 8).round().to(dtype)
    model, _ = fit(elsewhere(small), Y, device=device)
    assert model.digest() == fit(small, Y)[0].digest()


def test_diagnostics_name_everything_that_was_copied() -> None:
    _, facts = fit(
        X_LAZY,
        Y,
        device="cpu",
        sample_weight=elsewhere(torch.ones_like(Y)),
        eval_set=[(X, Y_LAZY)],
        base_margin=Y_LAZY,
        eval_base_margin=[Y],
    )
    assert facts["copied_from"] == dict.fromkeys(
        ["X", "sample_weight", "eval_set[0] y", "base_margin"], SECOND_DEVICE
    )


def test_nothing_was_copied_from_the_host() -> None:
    assert fit(X, Y)[1]["copied_from"] == {}


def test_y_may_lie_elsewhere() -> None:
    assert fit(X, Y_LAZY)[0].digest() == fit(X, Y)[0].digest()


# ----------------------------------------------------------------------------------------- Datasets


def test_dataset_lies_and_trains_where_x_lay() -> None:
    data = tg.Dataset(X_LAZY, Y, WEIGHTS)
    assert data.device == SECOND_DEVICE
    on_host = tg.Dataset(X, Y, WEIGHTS)
    assert [data.thresholds(f).tolist() for f in range(4)] == [
        on_host.thresholds(f).tolist() for f in range(4)
    ]
    model, facts = fit(data)
    assert (facts["device"], facts["copied_from"]) == (SECOND_DEVICE, {})
    assert model.digest() == fit(on_host)[0].digest()


def test_subset_lies_there_as_well() -> None:
    rows = np.arange(199, 0, -3)
    part, valid = tg.Dataset(X_LAZY, Y).subset(rows), tg.Dataset(X, Y).subset(rows)
    assert part.device == SECOND_DEVICE
    model, facts = fit(part)
    assert (facts["device"], facts["copied_from"]) == (SECOND_DEVICE, {})
    assert model.digest() == fit(valid)[0].digest()


def test_rows_of_a_subset_may_lie_there() -> None:
    rows = torch.tensor([3, 1, 4, 1, 5])
    part = tg.Dataset(X_LAZY, Y).subset(elsewhere(rows))
    assert part.n_rows == 5


def test_dataset_is_copied_to_a_device_that_is_named() -> None:
    data = tg.Dataset(X_LAZY, Y_LAZY)
    model, facts = fit(data, device="cpu", eval_set=[data.subset(range(50))])
    assert facts["backend"] == "cpu"
    names = ["y", "X", "eval_set[0] y", "eval_set[0] X"]
    assert facts["copied_from"] == dict.fromkeys(names, SECOND_DEVICE)
    assert model.digest() == fit(X, Y)[0].digest()
    model, facts = fit(tg.Dataset(X, Y), device="lazy")
    assert (facts["device"], facts["copied_from"]) == (SECOND_DEVICE, {"X": "cpu"})
    assert model.digest() == fit(X, Y)[0].digest()


@pytest.mark.parametrize("backend", ["cpu", "oracle"])
def test_backend_of_the_host_says_what_to_do_with_a_dataset_elsewhere(backend: str) -> None:
    with pytest.raises(InvalidParameterError, match=r"found device 'lazy:0'.*device='cpu'"):
        fit(tg.Dataset(X_LAZY, Y), backend=backend)


# ------------------------------------------------------------------------------- continued training


@pytest.mark.parametrize("as_dataset", [False, True])
def test_training_goes_on_there(as_dataset: bool) -> None:
    def data(X: torch.Tensor) -> tuple[Any, ...]:
        return (tg.Dataset(X, Y),) if as_dataset else (X, Y)

    whole = tg.train(X, Y, **{**QUICK, "n_estimators": 6})
    first, _ = fit(*data(X_LAZY))
    assert fit(*data(X_LAZY), init_model=first)[0].digest() == whole.digest()
    assert fit(*data(X), init_model=first)[0].digest() == whole.digest()


def test_dataset_of_other_bins_is_refused_there_as_well() -> None:
    first, _ = fit(X_LAZY, Y)
    with pytest.raises(InvalidDataError, match="bins are not cut"):
        fit(tg.Dataset(X_LAZY * 2, Y), init_model=first)

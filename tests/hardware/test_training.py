"""Training where the tensors lie, on an Apple GPU: the oracle's model, bit for bit."""

import time
from collections.abc import Callable

import pytest
import torch

import torchgbdt as tg

pytestmark = pytest.mark.mps

DEVICE = "mps"
OBJECTIVES = ["squared_error", "logistic", "softmax"]


def make_data(objective: str, n_rows: int, n_features: int) -> tuple[torch.Tensor, ...]:
    """X with missing values and ties, labels and weights, on the CPU."""
    generator = torch.Generator().manual_seed(n_rows)
    X = torch.randn(n_rows, n_features, generator=generator)
    X[:, 1] = (X[:, 1] * 2).round()
    X[torch.rand(X.shape, generator=generator) < 0.1] = float("nan")
    signal = torch.nan_to_num(X[:, 0]) * 2 - torch.nan_to_num(X[:, 1]) + X[:, 2].isnan()
    signal += 0.3 * torch.randn(n_rows, generator=generator)
    weights = torch.rand(n_rows, generator=generator) + 0.1
    if objective == "logistic":
        return X, (signal > 0).float(), weights
    if objective == "softmax":
        return X, torch.bucketize(signal, torch.tensor([-1.0, 1.0])), weights
    return X, signal, weights


@pytest.mark.parametrize("backend", ["mps", "torch"])
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_oracles_model(objective: str, backend: str) -> None:
    data = make_data(objective, n_rows=1_500, n_features=7)
    X, y, weights = data
    for sample_weight in (None, weights):
        settings = {"objective": objective, "n_estimators": 6, "max_depth": 5}
        wanted = tg.train(X, y, sample_weight=sample_weight, backend="oracle", **settings)
        there = None if sample_weight is None else sample_weight.to(DEVICE)
        found = tg.train(
            X.to(DEVICE), y.to(DEVICE), sample_weight=there, backend=backend, **settings
        )
        assert found.digest() == wanted.digest()


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_model_of_many_rows(objective: str, print_report: Callable[[str], None]) -> None:
    X, y, weights = make_data(objective, n_rows=200_000, n_features=28)
    settings = {"objective": objective, "n_estimators": 10, "max_depth": 8}
    wanted = tg.train(X, y, sample_weight=weights, backend="cpu", **settings)
    trainer = tg.Trainer(**settings)
    on_device = [one.to(DEVICE) for one in (X, y, weights)]
    start = time.perf_counter()
    found = trainer.fit(on_device[0], on_device[1], sample_weight=on_device[2])
    seconds = time.perf_counter() - start
    assert found.digest() == wanted.digest()
    print_report(f"{objective}: {seconds:.2f} s; {trainer.diagnostics()}")


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_predictions_on_the_device_are_those_of_the_host(objective: str) -> None:
    X, y, _ = make_data(objective, n_rows=3_000, n_features=5)
    model = tg.train(X.to(DEVICE), y.to(DEVICE), objective=objective, n_estimators=5)
    for x in (X, X.half(), X.bfloat16(), X[:, :0].new_empty(0, 5), X.t().contiguous().t()):
        found = model.predict_raw(x.to(DEVICE))
        assert found.device.type == DEVICE
        assert torch.equal(found.cpu(), model.predict_raw(x))


def test_early_stopping_and_history_are_those_of_the_host() -> None:
    X, y, _ = make_data("logistic", n_rows=4_000, n_features=6)
    histories = []
    for device in ("cpu", DEVICE):
        trainer = tg.Trainer(
            objective="logistic",
            n_estimators=60,
            learning_rate=0.5,
            callbacks=[tg.callbacks.EarlyStopping(patience=3)],
        )
        here, labels = X.to(device), y.to(device)
        trainer.fit(here[:3000], labels[:3000], eval_set=[(here[3000:], labels[3000:])])
        histories.append(trainer.history)
    assert histories[0] == histories[1]

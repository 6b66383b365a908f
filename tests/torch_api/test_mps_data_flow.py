"""The whole way of MPS tensors, from ``tg.train`` to predictions, without an Apple GPU.

Tensors of the host play those of the device: they are read where they lie, and their backend is the
mps backend, whose Metal kernels the emulator runs.
"""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from support.backends import emulated_library
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch_api.small_data import QUICK, regression

import torchgbdt as tg
from torchgbdt.backends import registry
from torchgbdt.backends.mps import MPSBackend
from torchgbdt.backends.torch_matrix import TensorMatrix
from torchgbdt.core.errors import InvalidDataError
from torchgbdt.torch_api import features
from torchgbdt.torch_api.features import read_features

X, Y = regression(150)
CLASSES = (Y * 2).round().clamp(-1, 1).long()
TARGETS = {"squared_error": Y, "logistic": Y > 0, "softmax": CLASSES}
MODELS = {
    objective: tg.train(X, y, objective=objective, **QUICK) for objective, y in TARGETS.items()
}


def answers(model: tg.Model) -> dict[str, Any]:
    margins = torch.ones(150, 3) if model.objective == "softmax" else torch.ones(150)
    found = {
        "classes or means": model.predict(X),
        "raw": model.predict_raw(X, base_margin=margins),
        "leaves": model.predict_leaf(X.t().contiguous().t()),
        "a stage": list(model.staged_predict_raw(X))[1],
        "no rows": model.predict(X[:0]),
    }
    if model.classes is not None:
        found["probabilities"] = model.predict_proba(X)
    return found


EXPECTED = {objective: answers(model) for objective, model in MODELS.items()}


@pytest.fixture
def host_is_mps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors of the host are those of a device whose backend is mps."""

    def make_mps(device: str, n_threads: int) -> MPSBackend:
        return MPSBackend(emulated_library(shuffle_seed=3), device)

    monkeypatch.setattr(registry, "_make_cpu", make_mps)
    monkeypatch.setattr(features, "HOST", "the host")


class _NoFloat64(TorchDispatchMode):
    """Metal has no float64: every tensor that is made is looked at."""

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = operation(*args, **(kwargs or {}))
        for made in tree_leaves(result):
            assert not isinstance(made, torch.Tensor) or made.dtype != torch.float64, operation
        return result


@pytest.fixture
def no_float64() -> Iterator[None]:
    with _NoFloat64():
        yield


def assert_same(found: Any, expected: Any) -> None:
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.numpy().tobytes() == expected.numpy().tobytes()


@pytest.mark.usefixtures("host_is_mps")
def test_tensors_of_the_host_are_read_as_those_of_a_device() -> None:
    found = read_features(X, "X", {}, may_be_empty=False, device="cpu")
    assert isinstance(found.matrix, TensorMatrix)
    assert found.matrix.tensor.data_ptr() == X.data_ptr()


@pytest.mark.usefixtures("host_is_mps", "no_float64")
@pytest.mark.parametrize("objective", TARGETS)
def test_model_and_predictions_are_those_of_the_host(objective: str) -> None:
    y, expected = TARGETS[objective], MODELS[objective]
    trainer = tg.Trainer(objective=objective, **QUICK)
    model = trainer.fit(X, y, eval_set=[(X[:40], y[:40])])
    facts = trainer.diagnostics()
    assert (facts["backend"], facts["copied_from"]) == ("mps", {})
    assert facts["launches"] > 0
    assert model.digest() == expected.digest()
    for name, found in answers(model).items():
        assert_same(found, EXPECTED[objective][name])


FORMS = {
    "float16": X.half(),
    "bfloat16": X.bfloat16(),
    "int32": X.nan_to_num().mul(4).int(),
    "int64": X.nan_to_num().mul(4).long(),
    "bool": X > 0,
    "strided": torch.cat([X, X], dim=1)[::2, 1:5],
    "negative view": torch.complex(X, -X).conj().imag,
}
DIGESTS = {form: tg.train(data, Y[: len(data)], **QUICK).digest() for form, data in FORMS.items()}


@pytest.mark.usefixtures("host_is_mps", "no_float64")
@pytest.mark.parametrize("form", FORMS)
def test_form_of_x_does_not_change_the_model(form: str) -> None:
    data = FORMS[form]
    assert tg.train(data, Y[: len(data)], **QUICK).digest() == DIGESTS[form]


@pytest.mark.usefixtures("host_is_mps", "no_float64")
def test_dataset_subset_and_continued_training() -> None:
    data = tg.Dataset(X, Y)
    first = tg.train(data, **{**QUICK, "n_estimators": 1})
    more = tg.train(data, init_model=first, **{**QUICK, "n_estimators": 2})
    assert more.digest() == MODELS["squared_error"].digest()
    assert tg.train(data.subset(range(0, 150, 2)), **QUICK).digest() == OF_HALF.digest()


OF_HALF = tg.train(tg.Dataset(X, Y).subset(range(0, 150, 2)), **QUICK)


@pytest.mark.usefixtures("host_is_mps")
def test_float64_of_the_host_stays_float64() -> None:
    """Emulated alone: there is no such tensor on MPS. Its keys are made on the host."""
    found = MODELS["logistic"].predict_proba(X.double())
    assert_same(found, PROBABILITIES64)


PROBABILITIES64 = MODELS["logistic"].predict_proba(X.double())


@pytest.mark.usefixtures("host_is_mps")
def test_labels_that_only_float64_holds_are_refused_on_mps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(features, "_WITHOUT_FLOAT64", ("cpu",))
    labels = (Y > 0).double() * (2.0**53 - 3) + 2.0
    model = tg.train(X, labels, objective="logistic", **QUICK)
    with pytest.raises(InvalidDataError, match=r"has no float64.*9007199254740991.*X\.cpu\(\)"):
        model.predict(X)

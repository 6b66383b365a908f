"""Estimators and tensors on another device: trained there, and predictions are tensors there."""

from typing import Any

import pytest
import torch
from sklearn_api.small_tables import QUICK, classification, digest, regression, weights
from support.second_device import SECOND_DEVICE, elsewhere

import torchgbdt as tg
from torchgbdt.core.errors import InvalidParameterError


def tensors(n_classes: int) -> tuple[torch.Tensor, torch.Tensor]:
    X, y = classification(n_classes) if n_classes else regression()
    return torch.from_numpy(X), torch.from_numpy(y)


def estimator(n_classes: int, **parameters: Any) -> Any:
    kind = tg.GBDTClassifier if n_classes else tg.GBDTRegressor
    return kind(**{**QUICK, **parameters})


@pytest.mark.parametrize("n_classes", [0, 2, 3])
def test_estimator_gives_what_it_gives_on_the_host(n_classes: int) -> None:
    X, y = tensors(n_classes)
    here = estimator(n_classes).fit(X, y)
    there = estimator(n_classes).fit(elsewhere(X), elsewhere(y))
    assert digest(there) == digest(here)
    assert there.n_features_in_ == 4
    methods = ["predict"]
    if n_classes:
        methods += ["predict_proba", "decision_function"]
        assert there.classes_.tolist() == list(range(n_classes))
    for method in methods:
        found, expected = getattr(there, method)(elsewhere(X)), getattr(here, method)(X)
        assert str(found.device) == SECOND_DEVICE
        assert torch.equal(found.cpu(), expected)
    assert there.score(elsewhere(X), elsewhere(y)) == here.score(X, y)
    stages = list(there.staged_predict(elsewhere(X)))
    assert [stage.device.type for stage in stages] == ["lazy"] * 4


@pytest.mark.parametrize("n_classes", [0, 3])
def test_rows_are_held_out_there(n_classes: int) -> None:
    X, y = tensors(n_classes)
    given = torch.from_numpy(weights())
    settings = {"early_stopping": True, "n_estimators": 20, "n_iter_no_change": 2}
    here = estimator(n_classes, **settings).fit(X, y, given)
    there = estimator(n_classes, **settings).fit(elsewhere(X), elsewhere(y), elsewhere(given))
    assert digest(there) == digest(here)
    assert there.history_ == here.history_


def test_class_weights_and_evaluation_sets_there() -> None:
    X, y = tensors(3)
    here = estimator(3, class_weight="balanced").fit(X, y, eval_set=[(X, y)])
    there = estimator(3, class_weight="balanced")
    there.fit(elsewhere(X), elsewhere(y), eval_set=[(elsewhere(X), elsewhere(y))])
    assert digest(there) == digest(here)
    assert there.history_ == here.history_


def test_warm_start_goes_on_there() -> None:
    X, y = tensors(2)
    grown = estimator(2, n_estimators=2, warm_start=True).fit(elsewhere(X), y)
    grown.set_params(n_estimators=4).fit(elsewhere(X), y)
    assert digest(grown) == digest(estimator(2).fit(X, y))


class Where(tg.callbacks.Callback):
    """Notes where a run takes place."""

    def __init__(self) -> None:
        self.device = ""

    def on_round_end(self, context: Any) -> None:
        self.device = str(context.raw_predictions().device)


def test_device_may_be_named() -> None:
    X, y = tensors(2)
    expected = digest(estimator(2).fit(X, y))
    for device, data in (("cpu", elsewhere(X)), (SECOND_DEVICE, X)):
        where = Where()
        trained = estimator(2, device=device, callbacks=[where]).fit(data, y)
        assert digest(trained) == expected
        assert where.device == device
    with pytest.raises(InvalidParameterError, match=r"found device 'lazy:0'.*device='cpu'"):
        estimator(2, backend="cpu").fit(elsewhere(X), y)

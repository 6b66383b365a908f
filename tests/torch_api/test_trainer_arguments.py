"""Settings and arguments of tg.Trainer: checked at construction, refused with advice."""

from dataclasses import fields
from typing import Any

import numpy as np
import pytest
import torch
from torch_api.small_data import QUICK, regression

import torchgbdt as tg
from torchgbdt.core.errors import BackendUnavailableError, InvalidDataError, InvalidParameterError
from torchgbdt.core.settings import TrainerSettings
from torchgbdt.torch_api.settings import SettingsArguments


def test_typed_keywords_are_the_settings() -> None:
    assert set(SettingsArguments.__annotations__) == {f.name for f in fields(TrainerSettings)}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("n_estimator", "'n_estimator' is not a setting; did you mean 'n_estimators'?"),
        ("learning_rat", "did you mean 'learning_rate'"),
        ("callback", "did you mean 'callbacks'"),
        ("eta", "'eta' is not a setting; use learning_rate."),
        ("reg_alpha", "'reg_alpha' is not a setting; L1 regularization is not built yet."),
        ("n_jobs", "use n_threads"),
        ("early_stopping_rounds", "tg.callbacks.EarlyStopping"),
        ("feature_names", "it belongs to tg.Dataset"),
        ("categorical_features", "categorical features are not built yet"),
        ("sample_weight", "sample_weight is data, not a setting; pass it to fit"),
        ("qqq", "'qqq' is not a setting; there are objective, n_estimators"),
    ],
)
def test_unknown_setting_is_refused_with_the_nearest_name(wrong: str, message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        tg.Trainer(**{wrong: 1})


BAD_SETTINGS: list[tuple[str, Any]] = [
    ("objective", "squared"),
    ("objective", None),
    ("n_estimators", 0),
    ("n_estimators", 10.0),
    ("n_estimators", True),
    ("learning_rate", 0),
    ("learning_rate", float("nan")),
    ("max_depth", 0),
    ("max_leaves", 31),
    ("max_bins", 1),
    ("min_samples_leaf", 0),
    ("min_child_weight", -1),
    ("reg_lambda", float("inf")),
    ("gamma", "0"),
    ("subsample", 0.5),
    ("colsample_bytree", 0.5),
    ("baseline", 1e39),
    ("eval_metric", "auc?"),
    ("eval_metric", []),
    ("random_state", 1.5),
    ("device", 3),
    ("device", "graphics card"),
    ("backend", "gpu"),
    ("n_threads", 0),
    ("histogram_budget_mb", 0),
]


@pytest.mark.parametrize(("name", "value"), BAD_SETTINGS)
def test_bad_value_is_refused_at_construction(name: str, value: Any) -> None:
    with pytest.raises(InvalidParameterError, match=name):
        tg.Trainer(**{name: value})


@pytest.mark.parametrize("settings", [{"backend": "mps"}, {"device": "mps"}], ids=str)
def test_backend_that_cannot_run_here_is_refused_at_construction(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    with pytest.raises(BackendUnavailableError, match=r"'mps' cannot run here.*backend='torch'"):
        tg.Trainer(**settings)


def test_torch_trains_the_model_of_the_native_backend_where_the_data_is() -> None:
    trainer = tg.Trainer(backend="torch", **QUICK)
    model = trainer.fit(*regression())
    assert trainer.diagnostics()["backend"] == "torch"
    assert trainer.diagnostics()["device"] == "cpu"
    assert model.digest() == tg.train(*regression(), **QUICK).digest()


def test_device_without_a_backend_is_refused_at_construction() -> None:
    with pytest.raises(BackendUnavailableError, match="cuda:1"):
        tg.Trainer(device=torch.device("cuda", 1))


@pytest.mark.parametrize("device", ["cpu", "cpu:0", torch.device("cpu"), "auto"])
def test_host_device_may_be_spelled_in_any_way(device: Any) -> None:
    trainer = tg.Trainer(device=device, **QUICK)
    trainer.fit(*regression())
    assert trainer.diagnostics()["device"] == "cpu"


def test_settings_are_keywords_only() -> None:
    with pytest.raises(TypeError):
        tg.Trainer("squared_error")  # type: ignore[misc]


@pytest.mark.parametrize(
    ("callbacks", "message"),
    [
        (tg.callbacks.ProgressBar(), r"must be a list of callbacks.*callbacks=\[...\]"),
        ([tg.callbacks.ProgressBar], r"callbacks\[0\].*class ProgressBar; write ProgressBar\(\)"),
        ([print], r"callbacks\[0\].*which lacks on_train_begin"),
        (None, "must be a list"),
    ],
)
def test_refused_callbacks(callbacks: Any, message: str) -> None:
    with pytest.raises(InvalidParameterError, match=message):
        tg.Trainer(callbacks=callbacks)


@pytest.mark.parametrize("argument", ["y", "sample_weight"])
def test_dataset_goes_without_arrays_beside_it(argument: str) -> None:
    X, y = regression()
    with pytest.raises(InvalidDataError, match=f"X is a Dataset, which holds its own {argument}"):
        tg.Trainer().fit(tg.Dataset(X, y), **{argument: y})


def test_missing_targets_are_refused() -> None:
    with pytest.raises(InvalidDataError, match="y is missing; training needs targets"):
        tg.Trainer().fit(regression()[0])


X, Y = regression()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"eval_set": (X, Y)}, r"eval_set\[0\] must be a pair.*found a Tensor.*eval_set=\[\("),
        ({"eval_set": X}, r"eval_set must be a list.*found a Tensor"),
        ({"eval_set": [(X, Y, Y)]}, r"eval_set\[0\].*tuple of 3 entries"),
        ({"eval_set": [(X, None)]}, r"eval_set\[0\] y is missing"),
        ({"eval_set": [(X, Y), (X[:, :2], Y)]}, r"eval_set\[1\] has 2 features.*has 4"),
        ({"eval_set": [(X, Y[1:])]}, r"eval_set\[0\] y has shape"),
        ({"eval_set": [(X[0], Y)]}, r"eval_set\[0\] X has shape"),
        ({"eval_set": [(X[:0], Y[:0])]}, r"eval_set\[0\] X has shape.*no rows"),
        ({"eval_set": [(X, Y)], "eval_sample_weight": Y}, "eval_sample_weight must be a list"),
        (
            {"eval_set": [(X, Y)], "eval_sample_weight": [Y, Y]},
            r"1 here; found a list of 2 entries",
        ),
        ({"eval_set": [(X, Y)], "eval_sample_weight": [-Y]}, r"eval_set\[0\] sample_weight has"),
        ({"eval_sample_weight": [Y]}, "0 here; found a list"),
        ({"eval_sample_weight": np.array(1.0)}, "found a ndarray. Use None"),
        ({"eval_base_margin": torch.tensor(1.0)}, "found a Tensor. Use None"),
        ({"eval_set": [(X, Y)], "base_margin": Y}, "base_margin and eval_base_margin go together"),
        ({"eval_set": [(X, Y)], "eval_base_margin": [Y]}, "go together"),
        ({"base_margin": Y[1:]}, r"base_margin has shape \(199,\)"),
        ({"base_margin": Y * float("nan")}, "base_margin has nan"),
        ({"eval_set": [tg.Dataset(X * 2, Y)]}, r"eval_set\[0\] is a Dataset with bins of its own"),
        ({"sample_weight": "heavy"}, "sample_weight is a builtins.str"),
    ],
)
def test_refused_arguments_of_fit(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidDataError, match=message):
        tg.Trainer(**QUICK).fit(X, Y + 1, **arguments)


def test_dataset_as_evaluation_set_goes_without_weights_beside_it() -> None:
    data = tg.Dataset(X, Y)
    with pytest.raises(InvalidDataError, match=r"eval_set\[0\] X is a Dataset.*sample_weight"):
        tg.Trainer().fit(data, eval_set=[data.subset([0])], eval_sample_weight=[[1.0]])


def test_evaluation_weights_may_be_left_out_one_by_one() -> None:
    trainer = tg.Trainer(eval_metric="mae", **QUICK)
    weights = [None, np.ones(len(Y)) * 4]  # a power of two rounds nothing
    trainer.fit(X, Y, eval_set=[(X, Y), (X, Y)], eval_sample_weight=weights)
    assert trainer.history["valid_0"] == trainer.history["valid_1"]


def test_evaluation_set_with_other_feature_names_is_refused() -> None:
    train = tg.Dataset(X, Y, feature_names=["a", "b", "c", "d"])
    valid = tg.Dataset(X, Y, feature_names=["a", "b", "d", "c"])
    with pytest.raises(InvalidDataError, match=r"eval_set\[0\] has the features \['a', 'b', 'd'"):
        tg.Trainer(**QUICK).fit(train, eval_set=[valid])

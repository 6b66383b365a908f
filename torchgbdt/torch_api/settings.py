"""Settings as a user types them: unknown names found out, devices spelled as text."""

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, TypedDict

import torch

from torchgbdt.backends.registry import AUTO, make_backend
from torchgbdt.core.errors import InvalidParameterError
from torchgbdt.core.metrics import make_metrics
from torchgbdt.core.objectives import find_objective
from torchgbdt.core.settings import TrainerSettings

_FIT_ARGUMENTS = (
    "X",
    "y",
    "sample_weight",
    "eval_set",
    "eval_sample_weight",
    "base_margin",
    "eval_base_margin",
    "init_model",
)


# What the same thing is called elsewhere, or what to do instead; asked before similar spellings.
_ELSEWHERE = {
    **dict.fromkeys(("eta", "lr"), "use learning_rate"),
    **dict.fromkeys(
        (
            "num_boost_round",
            "num_round",
            "num_iterations",
            "num_trees",
            "max_iter",
            "n_iter",
            "n_rounds",
            "iterations",
            "epochs",
        ),
        "use n_estimators",
    ),
    **dict.fromkeys(("n_jobs", "nthread", "num_threads"), "use n_threads"),
    **dict.fromkeys(("seed", "random_seed"), "use random_state"),
    **dict.fromkeys(("min_split_gain", "min_split_loss", "min_gain_to_split"), "use gamma"),
    **dict.fromkeys(("lambda_l2", "l2_regularization", "l2_leaf_reg"), "use reg_lambda"),
    **dict.fromkeys(("reg_alpha", "lambda_l1", "alpha"), "L1 regularization is not built yet"),
    **dict.fromkeys(("min_child_samples", "min_data_in_leaf"), "use min_samples_leaf"),
    **dict.fromkeys(("num_leaves", "max_leaf_nodes"), "max_leaves is not built yet"),
    **dict.fromkeys(
        ("bagging_fraction", "bagging_freq", "feature_fraction", "max_features", "rsm"),
        "sampling of rows and columns is not built yet",
    ),
    **dict.fromkeys(
        ("colsample_bylevel", "colsample_bynode", "max_delta_step", "tree_method", "multi_output"),
        "it is not built yet",
    ),
    **dict.fromkeys(
        ("monotone_constraints", "monotonic_cst", "interaction_constraints", "interaction_cst"),
        "constraints are not built yet",
    ),
    **dict.fromkeys(
        ("cat_features", "categorical_features", "enable_categorical", "cat_l2"),
        "categorical features are not built yet",
    ),
    **dict.fromkeys(("booster", "boosting_type", "boosting"), "there are gradient-boosted trees"),
    "grow_policy": "trees grow level by level",
    **dict.fromkeys(("task_type", "use_gpu", "gpu_id", "device_type"), "use device"),
    **dict.fromkeys(("base_score", "init_score"), "use baseline, or base_margin in fit"),
    **dict.fromkeys(("loss", "loss_function", "criterion"), "use objective"),
    **dict.fromkeys(("metric", "metrics"), "use eval_metric"),
    **dict.fromkeys(
        ("early_stopping_rounds", "early_stopping", "n_iter_no_change", "od_wait", "patience"),
        "use callbacks=[tg.callbacks.EarlyStopping(patience=...)]",
    ),
    **dict.fromkeys(
        ("verbose", "verbosity", "verbose_eval"), "use callbacks=[tg.callbacks.ProgressBar()]"
    ),
    "missing": "missing values are nan",
    **dict.fromkeys(
        ("class_weight", "scale_pos_weight", "is_unbalance"),
        "pass sample_weight to fit, or use tg.GBDTClassifier(class_weight=...)",
    ),
    **dict.fromkeys(("num_class", "n_classes"), "classes are found in y"),
    **dict.fromkeys(
        ("evals", "valid_sets", "validation_data", "X_val", "y_val", "eval_names"),
        "pass eval_set=[(X_valid, y_valid)] with the data",
    ),
    **dict.fromkeys(("weight", "weights", "sample_weights"), "pass sample_weight with the data"),
    **dict.fromkeys(("label", "labels", "target"), "pass y with the data"),
    "warm_start": "pass init_model to fit, or use an estimator such as tg.GBDTClassifier",
    "feature_names": "it belongs to tg.Dataset",
}


# Objectives and metrics by the names that other libraries have for them.
_OBJECTIVES_ELSEWHERE = {
    **dict.fromkeys(
        ("reg:squarederror", "regression", "regression_l2", "l2", "mse", "squared_loss", "RMSE"),
        "squared_error",
    ),
    **dict.fromkeys(
        ("binary:logistic", "binary", "log_loss", "logloss", "Logloss", "classification"),
        "logistic",
    ),
    **dict.fromkeys(
        ("multi:softprob", "multi:softmax", "multiclass", "MultiClass", "cross_entropy"), "softmax"
    ),
}
_METRICS_ELSEWHERE = {
    **dict.fromkeys(("l2", "mse", "root_mean_squared_error", "RMSE"), "rmse"),
    **dict.fromkeys(("l1", "MAE", "mean_absolute_error"), "mae"),
    **dict.fromkeys(("R2", "r2_score"), "r2"),
    **dict.fromkeys(
        ("log_loss", "mlogloss", "binary_logloss", "multi_logloss", "cross_entropy", "Logloss"),
        "logloss",
    ),
    **dict.fromkeys(("merror", "binary_error", "multi_error"), "error"),
    **dict.fromkeys(("accuracy", "Accuracy"), "error, which is 1 - accuracy"),
    **dict.fromkeys(("AUC", "roc_auc"), "auc"),
}


class SettingsArguments(TypedDict, total=False):
    """Keyword arguments of ``Trainer`` and ``train``; see ``core.settings.TrainerSettings``."""

    objective: str
    n_estimators: int
    learning_rate: float
    max_depth: int | None
    max_leaves: int | None
    max_bins: int
    min_samples_leaf: int
    min_child_weight: float
    reg_lambda: float
    gamma: float
    subsample: float
    colsample_bytree: float
    baseline: float | None
    eval_metric: str | Sequence[str] | None
    random_state: int
    device: str | torch.device
    backend: str
    n_threads: int | None
    histogram_budget_mb: float


def make_settings(given: Mapping[str, Any]) -> TrainerSettings:
    """Checked settings; what is not given has its default.

    Raises
    ------
    InvalidParameterError : an unknown name (the nearest known one is named), or a bad value.
    BackendUnavailableError : the backend or device cannot run here.
    """
    known = [field.name for field in fields(TrainerSettings)]
    for name in given:
        if name not in known:
            raise InvalidParameterError(_unknown(name, known))
    values = dict(given)
    if "device" in values:
        values["device"] = _device_name(values["device"])
    settings = TrainerSettings(**values)
    _check_spellings("objective", [settings.objective], _OBJECTIVES_ELSEWHERE)
    _check_spellings("eval_metric", settings.eval_metric or (), _METRICS_ELSEWHERE)
    make_metrics(settings.eval_metric, find_objective(settings.objective))
    if (settings.backend, settings.device) != (AUTO, AUTO):
        make_backend(settings.backend, settings.device, 1)  # says now what cannot run here
    return settings


def _check_spellings(argument: str, names: Sequence[str], elsewhere: Mapping[str, str]) -> None:
    """Raise InvalidParameterError if a name is another library's for one of ours."""
    for name in names:
        if name in elsewhere:
            raise InvalidParameterError(
                f"{argument}={name!r} is called {elsewhere[name]} here; write that."
            )


def _unknown(name: str, known: list[str]) -> str:
    if name in _FIT_ARGUMENTS:
        return f"{name} is data, not a setting; pass it to fit."
    if name in _ELSEWHERE:
        return f"{name!r} is not a setting; {_ELSEWHERE[name]}."
    nearest = difflib.get_close_matches(name, [*known, "callbacks"], n=1)
    hint = f"did you mean {nearest[0]!r}?" if nearest else f"there are {', '.join(known)}."
    return f"{name!r} is not a setting; {hint}"


def _device_name(device: Any) -> str:
    """The device as text, "auto" included; a host device without its meaningless index."""
    if isinstance(device, str) and device == AUTO:
        return AUTO
    try:
        if not isinstance(device, str | torch.device):
            raise TypeError("neither a text nor a torch.device")
        parsed = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise InvalidParameterError(
            f"device must be 'auto', a torch.device or its name, such as 'cpu' or 'mps'; found "
            f"{device!r} ({str(error).splitlines()[0]})."
        ) from error
    return "cpu" if parsed.type == "cpu" else str(parsed)

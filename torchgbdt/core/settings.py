"""The settings of a trainer and of a binned data set: two frozen dataclasses that check themselves.

Every later step takes the values it uses, never the whole object.
"""

import math
import numbers
from dataclasses import dataclass, fields
from typing import Any

from torchgbdt.core.arrays import LARGEST_FLOAT32, MAX_BINS
from torchgbdt.core.errors import InvalidParameterError

MIN_BINS = 3

MAX_THREADS = 1024
"""A limit against absurd settings, not a tuning."""


def check_integer(
    name: str, value: Any, low: int, high: int | None = None, *, or_none: str = ""
) -> int:
    """Return ``value`` as int, or raise InvalidParameterError unless low <= value <= high.

    ``or_none``: what None means, for the message, where it is allowed.
    """
    allowed = f"an integer >= {low}" if high is None else f"an integer from {low} to {high}"
    allowed += f", or None for {or_none}" if or_none else ""
    is_integer = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not is_integer or value < low or (high is not None and value > high):
        raise InvalidParameterError(f"{name} must be {allowed}; found {value!r}.")
    return int(value)


def check_float(name: str, value: Any, low: float, *, strict: bool = False) -> float:
    """Return ``value`` as float, or raise InvalidParameterError unless finite and >= (>) low."""
    allowed = f"a finite number {'>' if strict else '>='} {low:g}"
    is_real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    number = _as_float(value) if is_real else math.nan
    if not math.isfinite(number) or number < low or (strict and number == low):
        raise InvalidParameterError(f"{name} must be {allowed}; found {value!r}.")
    return number


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _check_default_only(name: str, value: Any, default: Any) -> Any:
    """Return the default; ``==`` is asked of numbers only, as arrays would answer elementwise."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if value is not default and not (is_number and value == default):
        raise InvalidParameterError(
            f"{name} is not built yet and accepts only its default {default!r}; found {value!r}. "
            f"Leave {name} out."
        )
    return default


def _check_text(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise InvalidParameterError(f"{name} must be a string; found {value!r}.")


@dataclass(frozen=True)
class BinningSettings:
    """How features are quantized into bins; owned by the Dataset.

    Attributes
    ----------
    max_bins : 3..256, codes per feature including the missing code.
    random_state : 0 <= random_state < 2^64, keys the sample that thresholds are fitted on.
    """

    max_bins: int = MAX_BINS
    random_state: int = 0
    categorical_features: Any = None

    def __post_init__(self) -> None:
        """Check every value; normalise numpy integers to int."""
        _set(self, "max_bins", check_integer("max_bins", self.max_bins, MIN_BINS, MAX_BINS))
        _set(self, "random_state", _check_random_state(self.random_state))
        _check_default_only("categorical_features", self.categorical_features, None)


@dataclass(frozen=True)
class TrainerSettings:
    """Everything a user may set on a trainer.

    Attributes
    ----------
    objective : name, resolved by ``core.objectives``.
    n_estimators : >= 1, boosting rounds.
    learning_rate : > 0, multiplies leaf weights.
    max_depth : >= 1, or None for no limit; levels of splits.
    max_leaves, subsample, colsample_bytree : not built yet; only their defaults.
    max_bins : 3..256, codes per feature including the missing code; for data not binned yet.
    min_samples_leaf : >= 1, rows.
    min_child_weight : >= 0, Hessian units.
    reg_lambda : >= 0, Hessian units; L2 penalty on leaf weights.
    gamma : >= 0, loss units; gain a split must exceed.
    baseline : None (fitted) or a finite prediction that training starts from.
    eval_metric : name or names, resolved by ``core.metrics``; None for the objective's own on
        evaluation sets. The training set is evaluated only if a metric is named.
    random_state : 0 <= random_state < 2^64, keys all random choices.
    device : where training runs; "auto" for where the data lies.
    backend : name; "auto" for the one that belongs to the device.
    n_threads : 1..1024, or None for torch's thread count.
    histogram_budget_mb : > 0, MiB of histograms held at once.
    """

    objective: str = "squared_error"
    n_estimators: int = 100
    learning_rate: float = 0.1
    max_depth: int | None = 6
    max_leaves: int | None = None
    max_bins: int = MAX_BINS
    min_samples_leaf: int = 20
    min_child_weight: float = 1e-3
    reg_lambda: float = 1.0
    gamma: float = 0.0
    subsample: float = 1.0
    colsample_bytree: float = 1.0
    baseline: float | None = None
    eval_metric: str | tuple[str, ...] | None = None
    random_state: int = 0
    device: str = "auto"
    backend: str = "auto"
    n_threads: int | None = None
    histogram_budget_mb: float = 512.0

    def __post_init__(self) -> None:
        """Check every value; normalise numpy scalars to Python numbers."""
        for name in ("objective", "device", "backend"):
            _check_text(name, getattr(self, name))
        _set(self, "n_estimators", check_integer("n_estimators", self.n_estimators, 1))
        _set(self, "max_bins", check_integer("max_bins", self.max_bins, MIN_BINS, MAX_BINS))
        _set(self, "min_samples_leaf", check_integer("min_samples_leaf", self.min_samples_leaf, 1))
        if self.max_depth is not None:
            depth = check_integer("max_depth", self.max_depth, 1, or_none="no limit")
            _set(self, "max_depth", depth)
        if self.n_threads is not None:
            none = "as many as torch uses"
            n_threads = check_integer("n_threads", self.n_threads, 1, MAX_THREADS, or_none=none)
            _set(self, "n_threads", n_threads)
        for name in ("learning_rate", "histogram_budget_mb"):
            _set(self, name, check_float(name, getattr(self, name), 0.0, strict=True))
        for name in ("min_child_weight", "reg_lambda", "gamma"):
            _set(self, name, check_float(name, getattr(self, name), 0.0))
        if self.baseline is not None:
            _set(self, "baseline", _check_baseline(self.baseline))
        _set(self, "random_state", _check_random_state(self.random_state))
        _set(self, "eval_metric", _check_metric_names(self.eval_metric))
        for name in ("max_leaves", "subsample", "colsample_bytree"):
            default = default_of(TrainerSettings, name)
            _set(self, name, _check_default_only(name, getattr(self, name), default))


def default_of(settings: type, name: str) -> Any:
    """The default value of one field of a settings class."""
    return next(field.default for field in fields(settings) if field.name == name)


def _check_random_state(value: Any) -> int:
    return check_integer("random_state", value, 0, 2**64 - 1)


def _check_baseline(value: Any) -> float:
    is_real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    baseline = _as_float(value) if is_real else math.nan
    if not abs(baseline) <= LARGEST_FLOAT32:
        raise InvalidParameterError(
            f"baseline must be None (fitted) or a number within float32, "
            f"+-{LARGEST_FLOAT32:.8g}; found {value!r}."
        )
    return baseline


def _check_metric_names(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    names = (value,) if isinstance(value, str) else value
    is_list = isinstance(names, list | tuple)
    if not is_list or not names or not all(isinstance(name, str) for name in names):
        raise InvalidParameterError(
            f"eval_metric must be None, a metric name or a list of metric names; found {value!r}."
        )
    if len(set(names)) != len(names):
        raise InvalidParameterError(f"eval_metric names a metric twice: {value!r}.")
    return tuple(names)


def _set(settings: Any, name: str, value: Any) -> None:
    object.__setattr__(settings, name, value)

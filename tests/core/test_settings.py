"""Every setting: what it accepts, what it refuses, and what the refusal says."""

import dataclasses
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from torchgbdt.core.errors import InvalidParameterError
from torchgbdt.core.settings import (
    BinningSettings,
    TrainerSettings,
    check_float,
    check_integer,
    default_of,
)

INF = float("inf")
NAN = float("nan")
LARGEST_FLOAT32 = float(np.finfo(np.float32).max)

NOT_NUMBERS = ["1", None, [1], (1,), {}, 1j, np.array([1, 2]), Ellipsis]
BOOLS = [True, False, np.True_]
NOT_FINITE = [NAN, INF, -INF, np.float32("nan"), np.float64("inf"), 10**400]

INTEGERS = {  # name -> lowest, highest (None: no limit)
    "n_estimators": (1, None),
    "max_depth": (1, None),
    "max_bins": (3, 256),
    "min_samples_leaf": (1, None),
    "random_state": (0, 2**64 - 1),
    "n_threads": (1, 1024),
}
FLOATS = {  # name -> whether 0 is allowed
    "learning_rate": False,
    "histogram_budget_mb": False,
    "min_child_weight": True,
    "reg_lambda": True,
    "gamma": True,
}
MAY_BE_NONE = {"max_depth", "n_threads", "baseline", "eval_metric", "max_leaves"}
NOT_BUILT = {"max_leaves": None, "subsample": 1.0, "colsample_bytree": 1.0}


def pairs(names: Sequence[str], values: Sequence[Any]) -> list[Any]:
    return [pytest.param(n, v, id=f"{n}={v!r}"[:60]) for n in names for v in values]


def refusal(name: str, value: Any, settings: type = TrainerSettings) -> str:
    """The message of the error that this value raises."""
    with pytest.raises(InvalidParameterError) as caught:
        settings(**{name: value})
    return str(caught.value)


def test_defaults_are_those_of_the_public_names() -> None:
    assert dataclasses.asdict(TrainerSettings()) == {
        "objective": "squared_error",
        "n_estimators": 100,
        "learning_rate": 0.1,
        "max_depth": 6,
        "max_leaves": None,
        "max_bins": 256,
        "min_samples_leaf": 20,
        "min_child_weight": 1e-3,
        "reg_lambda": 1.0,
        "gamma": 0.0,
        "subsample": 1.0,
        "colsample_bytree": 1.0,
        "baseline": None,
        "eval_metric": None,
        "random_state": 0,
        "device": "auto",
        "backend": "auto",
        "n_threads": None,
        "histogram_budget_mb": 512,
    }
    assert dataclasses.asdict(BinningSettings()) == {
        "max_bins": 256,
        "random_state": 0,
        "categorical_features": None,
    }


def test_every_field_is_covered_by_a_test_below() -> None:
    texts = {"objective", "device", "backend"}
    covered = {*INTEGERS, *FLOATS, *NOT_BUILT, *texts, "baseline", "eval_metric"}
    assert {field.name for field in dataclasses.fields(TrainerSettings)} == covered


@pytest.mark.parametrize("settings", [TrainerSettings, BinningSettings])
def test_settings_cannot_be_changed(settings: type) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings().max_bins = 5


def test_default_of_names_the_default_of_a_field() -> None:
    assert default_of(TrainerSettings, "max_depth") == 6
    assert default_of(BinningSettings, "max_bins") == 256


# ------------------------------------------------------------------------------------- integers


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("kind", [int, np.int64, np.uint16, np.int8])
def test_integers_of_any_type_become_int(name: str, kind: type) -> None:
    value = getattr(TrainerSettings(**{name: kind(5)}), name)
    assert value == 5
    assert type(value) is int


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_at_their_limits_are_accepted(name: str) -> None:
    low, high = INTEGERS[name]
    for value in (low, 2**40 if high is None else high):
        assert getattr(TrainerSettings(**{name: value}), name) == value


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_beyond_their_limits_are_refused(name: str) -> None:
    low, high = INTEGERS[name]
    allowed = f"an integer >= {low}" if high is None else f"an integer from {low} to {high}"
    none = {"max_depth": "no limit", "n_threads": "as many as torch uses"}
    allowed += f", or None for {none[name]}" if name in none else ""
    for value in (low - 1, -(2**70)) if high is None else (low - 1, high + 1, 2**70):
        assert refusal(name, value) == f"{name} must be {allowed}; found {value!r}."


@pytest.mark.parametrize(
    ("name", "value"),
    pairs(list(INTEGERS), [*NOT_NUMBERS, *BOOLS, *NOT_FINITE[:-1], 5.0, np.float64(5), 5.5]),
)
def test_integers_refuse_everything_else(name: str, value: Any) -> None:
    if value is None and name in MAY_BE_NONE:
        assert getattr(TrainerSettings(**{name: None}), name) is None
        return
    message = refusal(name, value)
    assert message.startswith(f"{name} must be an integer ")
    assert message.endswith(f"; found {value!r}.")


# --------------------------------------------------------------------------------------- floats


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize(
    "value", [2, 0.5, np.float32(0.1), np.float64(1e-300), np.int64(3), Fraction(1, 3), 5e-324]
)
def test_real_numbers_of_any_type_become_float(name: str, value: Any) -> None:
    found = getattr(TrainerSettings(**{name: value}), name)
    assert found == float(value)
    assert type(found) is float


@pytest.mark.parametrize("name", FLOATS)
def test_zero_is_accepted_only_where_it_means_something(name: str) -> None:
    if FLOATS[name]:
        assert getattr(TrainerSettings(**{name: 0}), name) == 0.0
    else:
        expected = f"{name} must be a finite number > 0; found 0."
        assert refusal(name, 0) == expected


@pytest.mark.parametrize(
    ("name", "value"),
    pairs(list(FLOATS), [*NOT_NUMBERS, *BOOLS, *NOT_FINITE, -1, -1e-300, -5e-324]),
)
def test_floats_refuse_everything_else(name: str, value: Any) -> None:
    allowed = ">=" if FLOATS[name] else ">"
    assert refusal(name, value) == f"{name} must be a finite number {allowed} 0; found {value!r}."


# ------------------------------------------------------------------------------------- baseline


@pytest.mark.parametrize(
    "value", [0, -3, 1e9, np.float32(0.1), LARGEST_FLOAT32, -LARGEST_FLOAT32, 1e-320]
)
def test_baseline_is_any_float_within_float32(value: Any) -> None:
    found = TrainerSettings(baseline=value).baseline
    assert found == float(value)
    assert type(found) is float


@pytest.mark.parametrize("value", [np.nextafter(LARGEST_FLOAT32, INF), -1e39, 1e308])
def test_baseline_beyond_float32_is_refused(value: float) -> None:
    message = refusal("baseline", value)
    assert message == (
        "baseline must be None (fitted) or a number within float32, +-3.4028235e+38; "
        f"found {value!r}."
    )


@pytest.mark.parametrize(
    ("name", "value"),
    pairs(["baseline"], [v for v in [*NOT_NUMBERS, *BOOLS, *NOT_FINITE] if v is not None]),
)
def test_baseline_refuses_what_is_no_finite_number(name: str, value: Any) -> None:
    message = refusal(name, value)
    assert message.startswith("baseline must be None (fitted) or a number")
    assert message.endswith(f"; found {value!r}.")


# ---------------------------------------------------------------------------------------- names


@pytest.mark.parametrize("name", ["objective", "device", "backend"])
@pytest.mark.parametrize("value", [None, 1, b"cpu", ["cpu"], True])
def test_names_must_be_strings(name: str, value: Any) -> None:
    assert refusal(name, value) == f"{name} must be a string; found {value!r}."


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        ("rmse", ("rmse",)),
        (["rmse"], ("rmse",)),
        (("mae", "rmse"), ("mae", "rmse")),
        (np.str_("mae"), ("mae",)),
    ],
)
def test_eval_metric_is_a_name_or_several_in_order(value: Any, expected: Any) -> None:
    assert TrainerSettings(eval_metric=value).eval_metric == expected


@pytest.mark.parametrize("value", [[], (), 3, True, b"rmse", [b"rmse"], ["rmse", 1], {"rmse"}, {}])
def test_eval_metric_refuses_what_is_no_list_of_names(value: Any) -> None:
    assert refusal("eval_metric", value) == (
        f"eval_metric must be None, a metric name or a list of metric names; found {value!r}."
    )


def test_eval_metric_refuses_a_name_given_twice() -> None:
    message = refusal("eval_metric", ["mae", "rmse", "mae"])
    assert message == "eval_metric names a metric twice: ['mae', 'rmse', 'mae']."


# ------------------------------------------------------------------------------- not built yet


@pytest.mark.parametrize("name", NOT_BUILT)
def test_settings_not_built_yet_accept_their_default(name: str) -> None:
    assert getattr(TrainerSettings(**{name: NOT_BUILT[name]}), name) == NOT_BUILT[name]


@pytest.mark.parametrize("name", ["subsample", "colsample_bytree"])
@pytest.mark.parametrize("value", [1, np.float32(1), np.int64(1)])
def test_rates_not_built_yet_accept_one_of_any_number_type(name: str, value: Any) -> None:
    found = getattr(TrainerSettings(**{name: value}), name)
    assert found == 1.0
    assert type(found) is float


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *pairs(["max_leaves"], [31, True, 1.0, NAN, "31", np.array([1, 2])]),
        *pairs(["subsample"], [0.5, True, NAN, None, "1", np.array([1.0, 1.0])]),
        *pairs(["colsample_bytree"], [0.5, True, NAN, None, "1", [1.0]]),
    ],
)
def test_settings_not_built_yet_refuse_other_values_and_say_why(name: str, value: Any) -> None:
    assert refusal(name, value) == (
        f"{name} is not built yet and accepts only its default {NOT_BUILT[name]!r}; "
        f"found {value!r}. Leave {name} out."
    )


@pytest.mark.parametrize("value", [[0, 2], "all", True, [], np.array([0, 2]), np.array([])])
def test_categorical_features_are_not_built_yet(value: Any) -> None:
    message = refusal("categorical_features", value, BinningSettings)
    assert message.startswith("categorical_features is not built yet and accepts only its default")


# ------------------------------------------------------------------------------ binning settings


@pytest.mark.parametrize("name", ["max_bins", "random_state"])
@pytest.mark.parametrize("value", [-1, 2**64, True, 7.0, "7", None])
def test_binning_settings_refuse_what_the_trainer_refuses(name: str, value: Any) -> None:
    assert refusal(name, value, BinningSettings) == refusal(name, value, TrainerSettings)


@pytest.mark.parametrize("name", ["max_bins", "random_state"])
def test_binning_settings_become_int(name: str) -> None:
    assert type(getattr(BinningSettings(**{name: np.uint8(7)}), name)) is int


# ----------------------------------------------------------------------------------- the checks


def test_check_integer_and_check_float_return_python_numbers() -> None:
    assert type(check_integer("n", np.int32(4), 0)) is int
    assert type(check_float("x", np.float32(4), 0.0)) is float


@pytest.mark.parametrize("strict", [True, False])
def test_check_float_at_its_lower_limit(strict: bool) -> None:
    if strict:
        with pytest.raises(InvalidParameterError, match=r"^x must be a finite number > 2; found"):
            check_float("x", 2.0, 2.0, strict=True)
    else:
        assert check_float("x", 2.0, 2.0) == 2.0

"""All contenders train with the same settings, and each of them learns."""

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from contenders import CLASSES, OURS, PEERS, is_installed, library_of, make_contender
from contenders.settings import Settings
from processes import HERE, child_environment
from resident_memory import restart_peak
from workloads import FULL


def need(name: str) -> None:
    if not is_installed(name):
        pytest.skip(f"{name} is not installed; `make bench` installs it")


def settings(workload: str) -> Settings:
    return Settings.of(FULL[workload], n_threads=3)


def parameters(name: str, workload: str) -> dict[str, Any]:
    """What the library is given."""
    need(name)
    contender: Any = make_contender(name, settings(workload))
    if name == "sklearn":
        found: dict[str, Any] = contender.estimator().get_params()
        return found
    return dict(contender.params())


# What a library calls the settings that all of them have.
NAMES = {
    "lightgbm": ("learning_rate", "lambda_l2", "max_depth"),
    "xgboost": ("learning_rate", "reg_lambda", "max_depth"),
    "catboost": ("learning_rate", "l2_leaf_reg", "depth"),
    "sklearn": ("learning_rate", "l2_regularization", "max_depth"),
}


@pytest.mark.parametrize("workload", ["W1", "W6"])
@pytest.mark.parametrize("name", PEERS)
def test_rate_penalty_and_depth_are_the_same(name: str, workload: str) -> None:
    given, same = parameters(name, workload), settings(workload)
    expected = (same.learning_rate, same.reg_lambda, same.max_depth)
    assert tuple(given[key] for key in NAMES[library_of(name)]) == expected


def test_both_layouts_of_a_library_differ_in_nothing_else() -> None:
    by_columns, by_rows = (parameters(name, "W1") for name in ("lightgbm", "lightgbm_rows"))
    assert by_columns.pop("force_col_wise") and by_rows.pop("force_row_wise")
    assert by_columns == by_rows
    assert parameters("xgboost", "W1") == parameters("xgboost_quantile", "W1")


def test_ours_has_the_settings_too() -> None:
    same = settings("W6")
    contender: Any = make_contender(OURS, same)
    given = contender.trainer().settings
    for name in ("objective", "learning_rate", "max_depth", "max_bins", "reg_lambda"):
        assert given[name] == getattr(same, name)
    assert given["n_estimators"] == same.n_rounds and given["n_threads"] == same.n_threads
    for name in ("min_samples_leaf", "min_child_weight"):
        assert given[name] == getattr(same, name)
    assert given["eval_metric"] is None


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("lightgbm", {"max_bin": 255, "min_data_in_leaf": 20, "num_leaves": 64}),
        ("lightgbm", {"enable_bundle": False, "metric": "none"}),
        ("xgboost", {"max_bin": 256, "min_child_weight": 20.0, "tree_method": "hist"}),
        ("catboost", {"border_count": 254, "bootstrap_type": "No", "iterations": 100}),
        ("sklearn", {"max_bins": 255, "min_samples_leaf": 20, "max_leaf_nodes": None}),
    ],
)
def test_bins_and_limits_are_those_of_256_codes_and_20_rows(
    name: str, limits: dict[str, Any]
) -> None:
    assert limits.items() <= parameters(name, "W1").items()


@pytest.mark.parametrize(
    ("name", "threads"),
    [("lightgbm", "num_threads"), ("xgboost", "nthread"), ("catboost", "thread_count")],
)
def test_threads_are_as_many_as_asked_for(name: str, threads: str) -> None:
    assert parameters(name, "W1")[threads] == 3


def test_softmax_steps_are_made_equal() -> None:
    # a leaf is -rate G / (c H + lambda): with both times c, c drops out
    assert settings("W5").step(2.0) == (0.2, 2.0)
    assert settings("W6").step(2.0) == (0.1, 1.0)


# The c of each library's softmax Hessian c p (1 - p), with seven classes.
SOFTMAX_FACTORS = {"lightgbm": 7 / 6, "xgboost": 2.0, "catboost": 1.0, "sklearn": 1.0}


@pytest.mark.parametrize("name", PEERS)
def test_each_library_gets_the_step_of_its_own_softmax_hessian(name: str) -> None:
    given, factor = parameters(name, "W5"), SOFTMAX_FACTORS[library_of(name)]
    rate, penalty, _ = NAMES[library_of(name)]
    assert (given[rate], given[penalty]) == (0.1 * factor, factor)


def test_ours_gets_the_step_of_its_softmax_hessian() -> None:
    contender: Any = make_contender(OURS, settings("W5"))
    given = contender.trainer().settings
    assert (given["learning_rate"], given["reg_lambda"]) == (0.2, 2.0)


def test_xgboosts_quantile_matrix_has_as_many_bins_as_its_training() -> None:
    need("xgboost")
    same = settings("W1")
    contender = make_contender("xgboost_quantile", same)
    X = np.arange(5000, dtype=np.float32).reshape(-1, 1)
    starts, _ = contender.bin(contender.load(X, X[:, 0])).get_quantile_cut()
    assert np.diff(starts).tolist() == [same.max_bins + 1]  # both ends of every bin


@pytest.mark.parametrize("name", CLASSES)
def test_each_contender_learns_and_is_measured(name: str) -> None:
    need(name)
    command = [sys.executable, str(HERE / "one_run.py"), name, "W4", "--quick"]
    result = subprocess.run(
        [*command, "--task", "predict", "--threads", "1"],
        env=child_environment(os.environ),
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    measured = json.loads(result.stdout)
    assert (measured["contender"], measured["workload"]) == (name, "W4")
    assert measured["seconds"] > (measured["binning_seconds"] or 0) >= 0
    if restart_peak():  # else nobody's memory is measured
        assert measured["peak_bytes"] > measured["growth_bytes"] > 0
    assert measured["metric"] > 0 and measured["predict_seconds"] > 0
    assert (measured["digest"] is None) == (name != OURS)
    bins_apart = name not in (OURS, "xgboost", "sklearn")
    assert (measured["binning_seconds"] is not None) == bins_apart


def test_switches_of_the_machines_owner_do_not_reach_a_run() -> None:
    child = child_environment({"OPENBLAS_CORETYPE": "Haswell", "PATH": "bin", "OMP_DYNAMIC": "1"})
    assert child["PATH"] == "bin" and not child.keys() & {"OPENBLAS_CORETYPE", "OMP_DYNAMIC"}

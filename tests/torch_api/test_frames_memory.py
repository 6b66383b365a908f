"""Binning a data frame needs the bins and little more: no copy of the frame, as of arrays.

Measured as in ``test_binning_memory``. Frames are built a column at a time, so that the peak before
is what is in use; a small frame of the same kind loads first whatever is loaded once.
"""

import subprocess
import sys

import pytest
from torch_api.test_binning_memory import LIMIT_MIB, N_FEATURES, N_ROWS, SCRIPT

SET_UP = """
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

def numbers(dtype, n_rows, feature):
    return (np.random.default_rng(feature).normal(size=10_000) * 100).astype(dtype).repeat(
        n_rows // 10_000)

def gaps(n_rows):
    return np.random.default_rng(99).random(10_000).repeat(n_rows // 10_000) < 0.1

def columns(make, n_rows):
    return {{f"x{{i}}": make(n_rows, i) for i in range({n_features})}}

def arrow(n_rows, i):
    return pa.array(numbers(np.float32, n_rows, i), mask=gaps(n_rows))

def nullable(n_rows, i):
    return pd.arrays.FloatingArray(numbers(np.float32, n_rows, i), gaps(n_rows))

def mixed(n_rows, i):
    return numbers([np.float32, np.int8, np.float64, np.int64][i % 4], n_rows, i)

def array(n_rows):
    return np.stack([numbers(np.float32, 10_000, i) for i in range({n_features})]).repeat(
        n_rows // 10_000, axis=1).T

FORMS = {{
    "pandas float32": lambda n: pd.DataFrame(array(n), copy=False),
    "pandas mixed": lambda n: pd.DataFrame(columns(mixed, n), copy=False),
    "pandas nullable": lambda n: pd.DataFrame(columns(nullable, n), copy=False),
    "polars": lambda n: pl.DataFrame(columns(lambda *at: pl.Series(arrow(*at)), n)),
    "arrow": lambda n: pa.table(columns(arrow, n)),
}}

def prepared(form):
    global model
    model = tg.train(FORMS[form](10_000), np.arange(10_000.0), n_estimators=2)
    return FORMS[form]({n_rows})
"""
FORMS = ["pandas float32", "pandas mixed", "pandas nullable", "polars", "arrow"]


def growth_mib(form: str, action: str) -> float:
    set_up = SET_UP.format(n_rows=N_ROWS, n_features=N_FEATURES)
    script = set_up + SCRIPT.format(
        n_rows=N_ROWS, n_features=N_FEATURES, X=f"prepared({form!r})", y="None", action=action
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=100
    )
    assert run.returncode == 0, run.stderr
    return float(run.stdout)


@pytest.mark.parametrize("form", FORMS)
def test_binning_a_frame_needs_the_bins_and_little_more(form: str) -> None:
    assert growth_mib(form, "tg.Dataset(X)") < LIMIT_MIB


def test_predicting_on_a_frame_needs_its_result_and_little_more() -> None:
    assert growth_mib("pandas nullable", "model.predict(X)") < LIMIT_MIB


def test_the_measurement_sees_a_copy() -> None:
    assert growth_mib("pandas nullable", "tg.Dataset(X.to_numpy('float32'))") > LIMIT_MIB

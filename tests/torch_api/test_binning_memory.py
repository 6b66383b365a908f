"""Binning needs the bins and at most 64 MiB more, whatever X is: nothing copies X in full.

Measured in a process of its own, as the growth of its peak resident memory. X has 40 million
values: a copy with 2 bytes per value or more breaks the limit.
"""

import subprocess
import sys

import pytest

N_ROWS, N_FEATURES = 2_000_000, 20
LIMIT_MIB = N_ROWS * N_FEATURES / 2**20 + 64

SCRIPT = """
import resource
from pathlib import Path
import numpy as np
import torch
import torchgbdt as tg

N_ROWS, N_FEATURES = {n_rows}, {n_features}

def peak_mib():
    status = Path("/proc/self/status")
    if status.exists():  # Linux: there ru_maxrss starts at the peak of the process that forked
        (line,) = [line for line in status.read_text().splitlines() if line.startswith("VmHWM:")]
        return int(line.split()[1]) / 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20

def filled(shape, dtype):  # in place: the peak before is what is in use
    X = np.empty(shape, dtype)
    numbers = (np.random.default_rng(0).normal(size=(10_000, 1)) * 100).astype(dtype)
    for start in range(0, len(X), 10_000):
        part = X[start : start + 10_000]
        part[...] = numbers[: len(part)]
    return X

tg.Dataset(torch.randn(10_000, 3), torch.randn(10_000))  # whatever is loaded once
X = {X}
y = {y}
before = peak_mib()
data = {action}
print(peak_mib() - before)
"""

SHAPE = "(N_ROWS, N_FEATURES)"
FORMS = {
    "float32 tensor": f"torch.from_numpy(filled({SHAPE}, np.float32))",
    "float64 tensor": f"torch.from_numpy(filled({SHAPE}, np.float64))",
    "bfloat16 tensor": f"torch.from_numpy(filled({SHAPE}, np.int16)).view(torch.bfloat16)",
    "int16 array": f"filled({SHAPE}, np.int16)",
    "int64 array": f"filled({SHAPE}, np.int64)",
    "F order": "filled((N_FEATURES, N_ROWS), np.float32).T",
    "every second column": "filled((N_ROWS, 2 * N_FEATURES), np.float32)[:, ::2]",
    "reversed": f"filled({SHAPE}, np.float32)[::-1, ::-1]",
    "foreign byte order": f"filled({SHAPE}, '>f4')",
    "negative view": "torch.from_numpy(filled((N_ROWS, 2 * N_FEATURES), np.float32))"
    ".view(torch.complex64).conj().imag",
}


def growth_mib(X: str, y: str, action: str) -> float:
    script = SCRIPT.format(n_rows=N_ROWS, n_features=N_FEATURES, X=X, y=y, action=action)
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=100
    )
    assert run.returncode == 0, run.stderr
    return float(run.stdout)


@pytest.mark.parametrize("form", FORMS)
def test_binning_needs_the_bins_and_little_more(form: str) -> None:
    assert growth_mib(FORMS[form], "None", "tg.Dataset(X, y)") < LIMIT_MIB


def test_targets_and_weights_are_within_the_limit() -> None:
    y = "np.ones(N_ROWS, np.float32)"
    assert growth_mib(FORMS["float32 tensor"], y, "tg.Dataset(X, y, y)") < LIMIT_MIB


def test_the_measurement_sees_a_copy() -> None:
    copied = growth_mib(FORMS["float32 tensor"], "None", "tg.Dataset(X.clone(), y)")
    assert copied > LIMIT_MIB

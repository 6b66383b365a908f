"""Fits in one process leave no memory behind, neither of the kernels nor of Python.

In a process of its own, whose memory no other test changes. `make test` fits some dozens of times,
pytest --exhaustive 1,000 times.
"""

import json
import os
import subprocess
import sys

import pytest

SCRIPT = """
import ctypes, gc, json, resource, sys
import numpy as np
from support.runs import Rows, Scenario, train
from torchgbdt import GBDTClassifier, GBDTRegressor
from torchgbdt.backends.native import NativeBackend
from torchgbdt.backends.stored_rows import Grouping

N_WARM, N_FITS = int(sys.argv[1]), int(sys.argv[2])
rng = np.random.default_rng(0)
X = rng.normal(size=(9000, 4))  # three blocks of rows: helpers take part
X[::7, 0] = np.nan
weights = rng.random(9000) + 0.5
LABELS = {
    "squared_error": X[:, 1] + X[:, 2],
    "logistic": (X[:, 1] > 0).astype(int),
    "softmax": np.digitize(X[:, 1], [-0.5, 0.5]),
}

def session(objective, backend):
    y = LABELS[objective]
    settings = {"objective": objective, "n_estimators": 3, "max_depth": 4}
    one = Scenario(Rows(X, y, weights), settings, [Rows(X[:5000], y[:5000])])
    return lambda: train(backend(), one)

def estimator(one, y):
    return lambda: one(n_estimators=3).fit(X, y, eval_set=[(X[:5000], y[:5000])]).predict(X)

def plain():
    return NativeBackend(2)

def grouped():
    return NativeBackend(3, Grouping(trees=1, min_bytes=0))

KINDS = [session(one, backend) for one in LABELS for backend in (plain, grouped)]
KINDS += [estimator(GBDTRegressor, LABELS["squared_error"])]
KINDS += [estimator(GBDTClassifier, LABELS[one]) for one in ("logistic", "softmax")]

class Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd",
        "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")]

def allocated():
    gc.collect()
    found = {
        "objects": sys.getallocatedblocks(),
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        * (1 if sys.platform == "darwin" else 1024),
    }
    mallinfo2 = getattr(ctypes.CDLL(None), "mallinfo2", None)
    if mallinfo2 is not None:  # glibc
        mallinfo2.restype = Mallinfo
        info = mallinfo2()
        found["malloc"] = info.uordblks + info.hblkhd
    return found

def fit(n):
    for i in range(n):
        KINDS[i % len(KINDS)]()

fit(N_WARM)
before = allocated()
fit(N_FITS)
after = allocated()
print(json.dumps({name: after[name] - before[name] for name in before}))
"""

LIMITS = {"objects": 300, "malloc": 32 * 2**10, "peak": 4 * 2**20}
"""Blocks of Python's own, bytes, bytes of resident memory: what free lists and allocators may still
grow by after the warm-up. So 1,000 fits show a leak of 33 bytes each, or of an object in three."""


def test_memory_does_not_grow_with_the_number_of_fits(pytestconfig: pytest.Config) -> None:
    n_warm, n_fits = (90, 1000) if pytestconfig.getoption("--exhaustive") else (45, 54)
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, str(n_warm), str(n_fits)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    grown = json.loads(result.stdout)
    assert {"objects", "peak"} <= grown.keys()
    assert {name: by for name, by in grown.items() if by > LIMITS[name]} == {}, grown

"""The workloads: which rows, which settings, and how good a model of them must be to count.

``FULL`` is what the table of README.md is about; the quick versions have the same shapes with fewer
rows and rounds, to try things out and to test the benchmarks themselves.
"""

import sys
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import synthetic
from synthetic import Float32Array

OBJECTIVES = ("squared_error", "logistic", "softmax")
SEED = 2026


@dataclass(frozen=True)
class Workload:
    """One training problem; every contender gets these numbers.

    Attributes
    ----------
    name, title : what files and tables call it.
    n_rows, n_test : training and test rows.
    n_rounds : boosting rounds; softmax grows ``n_classes`` trees in each.
    n_groups, noise : of ``synthetic.make_rows``.
    flights : the flights of demo/ instead of synthetic rows; then n_rows limits them, if positive.
    must_beat : the test metric must be below this share of that of the best constant prediction.
    aim : training shall be so many times as fast as that of the fastest peer.
    """

    name: str
    title: str
    objective: str = "squared_error"
    n_rows: int = 1_000_000
    n_test: int = 100_000
    n_features: int = 28
    n_classes: int = 0
    n_rounds: int = 100
    max_depth: int = 6
    n_groups: int = 4
    noise: float = 1.0
    flights: bool = False
    must_beat: float = 0.9
    aim: float = 3.0


@dataclass(frozen=True)
class Data:
    """Training and test rows: float32, C order; labels of classes are 0, 1, ..."""

    X: Float32Array
    y: Float32Array
    X_test: Float32Array
    y_test: Float32Array


_ALL = (
    Workload("W1", "1M x 28, 100 trees, depth 6"),
    Workload("W2", "flights, 200 trees, depth 8", n_rows=0, n_features=11, n_rounds=200,
             max_depth=8, flights=True, must_beat=0.6, aim=2.5),
    Workload("W3", "100k x 500, 50 trees, depth 6", n_rows=100_000, n_features=500, n_rounds=50,
             aim=2.5),
    Workload("W4", "10k x 20, 200 trees, depth 6", n_rows=10_000, n_features=20, n_rounds=200,
             aim=1.5),
    Workload("W5", "200k x 50, 7 classes, 30 rounds, depth 6", objective="softmax",
             n_rows=200_000, n_features=50, n_classes=7, n_rounds=30, n_groups=2,
             aim=2.0),
    Workload("W6", "1M x 28, 50 trees, depth 10, logistic", objective="logistic", n_classes=2,
             n_rounds=50, max_depth=10, aim=2.0),
)  # fmt: skip
FULL = {workload.name: workload for workload in _ALL}
# What other rows of the table train on.
MANY_ROWS = replace(FULL["W1"], name="W1x4", title="4M x 28, 100 trees, depth 6", n_rows=4_000_000)
BUSY = replace(FULL["W1"], name="W1/10", title="100k x 28, 100 trees, depth 6", n_rows=100_000)


def make_data(workload: Workload) -> Data:
    """Generate the rows, or read the flights."""
    if workload.flights:
        return _flights(workload)
    X, y = synthetic.make_rows(
        SEED,
        workload.n_rows + workload.n_test,
        workload.n_features,
        workload.n_groups,
        workload.n_classes,
        workload.noise,
    )
    n = workload.n_rows
    return Data(X[:n], y[:n], X[n:], y[n:])


def _flights(workload: Workload) -> Data:
    sys.path.append(str(Path(__file__).parents[1] / "demo"))
    from flights_data import load_flights  # needs pandas and torch, which the other rows do not

    sys.path.pop()
    flights = load_flights(workload.n_rows or None)
    parts = (flights.train.X, flights.train.y, flights.test.X, flights.test.y)
    return Data(*(np.ascontiguousarray(part.numpy()) for part in parts))


def save_data(data: Data, folder: Path) -> None:
    """Write one .npy file per array, so that processes that run a benchmark need not make them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, array in vars(data).items():
        np.save(folder / f"{name}.npy", array)


def load_data(folder: Path) -> Data:
    """What ``save_data`` wrote; reading needs no more memory than the arrays have."""
    return Data(*(np.load(folder / f"{name}.npy") for name in Data.__dataclass_fields__))


def quick_version(workload: Workload) -> Workload:
    """The same shape with a tenth of the rows, or a quarter of few, and a fifth of the rounds."""
    return replace(
        workload,
        n_rows=20_000 if workload.flights else max(workload.n_rows // 10, 2_500),
        n_test=20_000,
        n_rounds=max(10, workload.n_rounds // 5),
        must_beat=1.0,
    )


def find_workload(name: str, quick: bool) -> Workload:
    """By its name; the two that are no rows of the first table as well."""
    named = FULL | {MANY_ROWS.name: MANY_ROWS, BUSY.name: BUSY}
    if name not in named:
        raise SystemExit(f"no workload is called {name!r}; there are {', '.join(named)}.")
    return quick_version(named[name]) if quick else named[name]

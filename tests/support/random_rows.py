"""Random features, and targets and classes that depend on them."""

from typing import Any

import numpy as np

Random = np.random.Generator

TINY = np.float64(2.0**-140)
"""Subnormal in float32: counts as 0 wherever the contract speaks of labels and weights."""


def smooth(rng: Random, n_rows: int, n_features: int = 4) -> tuple[np.ndarray, np.ndarray]:
    """Normal features, and a target that depends on the first three of them."""
    X = rng.normal(size=(n_rows, n_features))
    return X, target(X, rng)


def target(X: np.ndarray, rng: Random) -> np.ndarray:
    seen = np.nan_to_num(X, nan=1.5, posinf=3.0, neginf=-3.0)
    signal = np.sin(2 * seen[:, 0]) + 0.5 * seen[:, 1 % X.shape[1]]
    return signal + 0.3 * rng.normal(size=X.shape[0])


def classes_of(targets: np.ndarray, n_classes: int) -> np.ndarray:
    """Codes 0..n_classes - 1: equally frequent stretches of ascending targets, in any order."""
    ranks = np.argsort(np.argsort(targets))
    in_order = ranks * n_classes // targets.size
    return np.random.default_rng(n_classes).permutation(n_classes)[in_order]


LABELS: dict[str, Any] = {
    "codes": lambda k: k,
    "text": lambda k: f"class {chr(ord('A') + k)}",
    "negative": lambda k: k - 3,
    "gapped": lambda k: 10 * k * k - 7,
    "beyond int64": lambda k: 2**63 + k,
    "floats": lambda k: 2.0 * k - 3.0,
    "bools": bool,
}
"""Kinds of label: code -> label, all in ascending order; bools are for two classes."""


def labels_of(codes: np.ndarray, kind: str) -> np.ndarray:
    """Labels of a kind, whose order is that of the codes."""
    if kind == "beyond int64":
        return np.array([LABELS[kind](k) for k in codes.tolist()], np.uint64)
    return np.array([LABELS[kind](k) for k in codes.tolist()])

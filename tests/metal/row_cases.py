"""Search cases made of random rows."""

from collections.abc import Sequence

import numpy as np
from metal.split_searches import SearchCase, split_rules

from torchgbdt.core.arrays import Int64Array
from torchgbdt.core.splits import SplitRules


def sums_of_rows(
    n_value_bins: Sequence[int], codes: Int64Array, gradients: Int64Array, hessians: Int64Array
) -> Int64Array:
    """Histogram of one node, int64 (3, total_bins); codes (n_rows, n_features)."""
    words = np.stack((np.ones_like(gradients), gradients, hessians))
    planes = []
    for feature, n in enumerate(n_value_bins):
        cells = np.zeros((3, n + 1), np.int64)
        np.add.at(cells.T, codes[:, feature], words.T)
        planes.append(cells)
    return np.concatenate(planes, axis=1)


def random_case(
    seed: int,
    n_nodes: int,
    n_value_bins: Sequence[int],
    n_rows: int = 200,
    missing: float = 0.2,
    rules: SplitRules | None = None,
    hessian_unit: int | None = None,
    gradient_limit: int = 2**30,
) -> SearchCase:
    """Uniform codes, gradients and Hessians. Every third feature has no missing rows."""
    rng = np.random.default_rng(seed)
    nodes = []
    for _ in range(n_nodes):
        codes = np.stack(
            [rng.integers(0, n, n_rows) if n else np.zeros(n_rows, int) for n in n_value_bins], 1
        )
        is_missing = rng.random(codes.shape) < missing
        is_missing[:, ::3] = False
        n_bins = np.array(n_value_bins)
        codes = np.where(is_missing | (n_bins == 0), n_bins, codes)
        gradients = rng.integers(-gradient_limit, gradient_limit, n_rows, endpoint=True)
        # The first feature says something about the gradient, so that some nodes split well.
        gradients = np.where(codes[:, 0] % 2 == 0, np.abs(gradients), gradients)
        hessians = rng.integers(1, 2**29, n_rows, endpoint=True)
        if hessian_unit is not None:
            hessians[:] = hessian_unit
        nodes.append(sums_of_rows(n_value_bins, codes, gradients, hessians))
    rules = rules or split_rules(scales=(30, 29))
    return SearchCase(tuple(n_value_bins), np.stack(nodes), rules, hessian_unit)

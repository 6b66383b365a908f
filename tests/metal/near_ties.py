"""Nodes whose candidates gain almost the same: what a filter in float32 is most likely to lose.

Every feature has two value bins and no missing rows, hence one candidate. Its left Hessian is
drawn, its left gradient solved for: with a = HL + lambda, b = HR + lambda, S = a + b, mean = G / S,

    GL = mean * a +- sqrt(D * a * b),    which gains S/2 * D less what is the same for all.
"""

import numpy as np
from metal.split_searches import SearchCase

from torchgbdt.core.arrays import Int64Array
from torchgbdt.core.splits import SplitRules

N_FEATURES = 8


def near_ties(
    seed: int,
    n_nodes: int,
    rules: SplitRules,
    offset: float,
    spread: float,
    rows: int = 2**31,
    constant_hessian: bool = False,
) -> SearchCase:
    """A case of ``n_nodes`` nodes with N_FEATURES candidates each, whose D are nearly the same.

    Parameters
    ----------
    offset : mean / sqrt(D): how large the node's gradient is against differences of its sides.
    spread : the D differ by up to this factor of the largest D.
    rows : of a node, about; sums are as large as it allows, to leave D as exact as can be.
    constant_hessian : every row has the Hessian 2^28.
    """
    rng = np.random.default_rng(seed)
    shape = (n_nodes, N_FEATURES)
    counts = rng.integers(rows // 2, rows, n_nodes)[:, None]
    left_counts = (counts * rng.uniform(0.001, 0.999, shape)).astype(np.int64)
    left_counts = np.clip(left_counts, 1, counts - 1)
    unit = np.full(n_nodes, 2**28) if constant_hessian else rng.integers(2**27, 2**28, n_nodes)
    hessians = counts * unit[:, None]
    left_hessians = left_counts * unit[:, None]
    if not constant_hessian:
        smaller = np.minimum(left_hessians, hessians - left_hessians)
        left_hessians += (smaller * rng.uniform(-0.5, 0.5, shape)).astype(np.int64)

    wide = np.longdouble  # 64 bits: sums are exact
    reg_lambda = np.ldexp(wide(rules.reg_lambda), int(rules.scales[0, 1]))
    a = left_hessians.astype(wide) + reg_lambda
    b = (hessians - left_hessians).astype(wide) + reg_lambda
    # The largest sqrt(D) that leaves no side with more than 2^30 per row.
    sides = ((a, left_counts), (b, counts - left_counts))
    limits = [n * wide(2) ** 29 / (offset * side + np.sqrt(a * b)) for side, n in sides]
    limit = np.minimum(*limits).min(axis=1, keepdims=True)
    root = limit * rng.uniform(0.5, 1, (n_nodes, 1))  # of the largest D
    sign = rng.choice([-1, 1], (n_nodes, 1))
    gradients = np.rint(sign * offset * root * (a + b)[:, :1]).astype(np.int64)
    mean = gradients.astype(wide) / (a + b)
    distance = np.sqrt(root * root * (1 - rng.uniform(0, spread, shape)) * a * b)
    left_gradients = np.rint(mean * a + rng.choice([-1, 1], shape) * distance).astype(np.int64)
    left = np.stack((left_counts, left_gradients, left_hessians), axis=1)
    parent = np.stack((counts, gradients, hessians), axis=1)
    return two_bin_case(left, parent, rules, 2**28 if constant_hessian else None)


def two_bin_case(
    left: Int64Array, parent: Int64Array, rules: SplitRules, hessian_unit: int | None = None
) -> SearchCase:
    """One candidate per feature, of the given left sums.

    Parameters
    ----------
    left : int64, (n_nodes, 3, n_features); counts, gradients and Hessians.
    parent : int64, (n_nodes, 3, 1).
    """
    cells = np.stack((left, parent - left, np.zeros_like(left)), axis=-1)
    n_nodes, _, n_features, _ = cells.shape
    return SearchCase((2,) * n_features, cells.reshape(n_nodes, 3, -1), rules, hessian_unit)

"""The arithmetic of the split search: wide products, and ranks against exact fractions."""

import random
from fractions import Fraction

import numpy as np
import pytest
import torch
from metal.emulator.device import EmulatedDevice, EmulatedLibrary, EmulatorOptions
from metal.split_searches import split_rules

from torchgbdt.backends.metal_library import assemble
from torchgbdt.backends.split_candidates import SearchedNodes, node_lists
from torchgbdt.core.arrays import Float64Array, Int64Array

PROBES = """
kernel void probe_products(device const long* factors [[buffer(0)]],
                           device int* equal [[buffer(1)]], uint i [[thread_position_in_grid]]) {
    device const long* f = factors + 4 * i;
    equal[i] = int(equal_products(f[0], f[1], f[2], f[3]));
}

// left and right: count, gradient, Hessian. OUT float32 (n, 3): rank, lower and upper rank.
kernel void probe_ranks(device const long* sums [[buffer(0)]],
                        device const int* ratios [[buffer(1)]],
                        device const int* limits [[buffer(2)]], device float* ranks [[buffer(3)]],
                        uint i [[thread_position_in_grid]]) {
    NodeSums left = no_sums();
    NodeSums right = no_sums();
    left.gradient = sums[4 * i];
    left.hessian = sums[4 * i + 1];
    right.gradient = sums[4 * i + 2];
    right.hessian = sums[4 * i + 3];
    RankTerms terms;
    terms.mean.high = as_type<float>(ratios[4 * i]);
    terms.mean.low = as_type<float>(ratios[4 * i + 1]);
    terms.reg_lambda.high = as_type<float>(ratios[4 * i + 2]);
    terms.reg_lambda.low = as_type<float>(ratios[4 * i + 3]);
    terms.gradient_exponent = limits[4 * i + 2];
    terms.hessian_exponent = limits[4 * i + 3];
    const float tolerance = as_type<float>(limits[4 * i]);
    const float rank = split_rank(left, right, terms);
    ranks[3 * i] = rank;
    ranks[3 * i + 1] = lower_rank(rank, tolerance);
    ranks[3 * i + 2] = upper_rank(rank, tolerance);
}
"""


def probes(options: EmulatorOptions) -> EmulatedLibrary:
    """The text of scan_splits as shipped, with kernels behind it that call its functions."""
    source = assemble("scan_splits", {"CONSTANT_HESSIAN": 0}) + PROBES
    return EmulatedDevice(options).compile_shader(source)


def equal_products(factors: list[tuple[int, int, int, int]]) -> list[bool]:
    words = torch.tensor(factors, dtype=torch.int64)
    equal = torch.zeros(len(factors), dtype=torch.int32)
    library = probes(EmulatorOptions())
    library.probe_products(words, equal, threads=len(factors), group_size=32)
    return [bool(one) for one in equal.tolist()]


def test_products_are_compared_in_128_bits() -> None:
    rng = random.Random(1)
    factors = []
    for _ in range(400):
        a, b, c = (rng.randrange(1, 2 ** rng.randrange(1, 31)) for _ in range(3))
        d = rng.randrange(1, 2 ** rng.randrange(1, 31))
        sign = rng.choice([1, -1])
        factors += [(sign * a * b, c * d, sign * a * c, b * d)]  # equal
        factors += [(sign * a * b, c * d, -sign * a * c, b * d)]
        factors += [(sign * a * b, c * d, sign * a * c + 1, b * d)]
    big = 2**62
    factors += [(0, 5, 0, 7), (0, 5, 3, 0), (-3, 0, 3, 0), (0, 0, 0, 0), (1, 0, 1, 1), (0, 1, 1, 1)]
    factors += [(big, 2**61, -big, 2**61), (-big, 2**61, -big, 2**61), (1 - big, 1, big - 1, 1)]
    # Equal in the low 64 bits, and in the high ones.
    factors += [(2**40, 2**30, 2**40, 2**30 + 2**24), (2**32, 2**32, 0, 1)]
    factors += [(2**58, 2**58, 2**58 - 1, 2**58 + 1), (-(2**58), 2**58, 1 - 2**58, 2**58 + 1)]
    factors += [(2**32 - 1, 2**32 - 1, 2**32, 2**32 - 2), (2**33 - 1, 2**33 + 1, 2**33, 2**33)]
    assert equal_products(factors) == [a * b == c * d for a, b, c, d in factors]


def random_sides(rng: np.random.Generator, n: int) -> tuple[Int64Array, Int64Array]:
    """Counts (n, 2) and sums (n, 2 sides, 2) of all sizes, near and far from proportional."""
    counts = np.floor(2 ** rng.uniform(0, 31, (n, 2))).astype(np.int64)
    hessians = np.floor(counts * 2 ** rng.uniform(-20, 29, (n, 2))).astype(np.int64)
    hessians = np.maximum(hessians, 1)
    largest = counts.astype(np.float64) * 2**30
    gradients = largest * 2 ** rng.uniform(-61, 0, (n, 2)) * rng.choice([-1, 1], (n, 2))
    distance = 2 ** rng.uniform(-40, 0, n) * rng.choice([-1, 0, 1], n)
    along = gradients[:, 0] * (hessians[:, 1] / hessians[:, 0]) * (1 + distance)
    kind = rng.integers(0, 3, n)
    gradients[:, 1] = np.where(kind == 0, along, gradients[:, 1])
    gradients[:, 1] = np.where(
        kind == 1, -gradients[:, 0] + rng.integers(-2, 3, n), gradients[:, 1]
    )
    gradients = np.rint(np.clip(gradients, -largest, largest)).astype(np.int64)
    return counts, np.stack((gradients, hessians), axis=2)


@pytest.mark.parametrize("flush", [False, True])
@pytest.mark.parametrize("units", [0.0, 2.0**-1000, 2.0**-20, 1.0, 2.0**50, 2.0**100])
def test_ranks_are_as_exact_as_the_proof_says(units: float, flush: bool) -> None:
    n = 400
    counts, sums = random_sides(np.random.default_rng(7), n)
    parents = sums.sum(axis=1)
    nodes = SearchedNodes(np.zeros(n, np.int32), counts.sum(axis=1), parents[:, None])
    lists = node_lists(nodes, split_rules(units))
    limits = torch.tensor(lists.limits, dtype=torch.int32)
    ranks = torch.zeros(n, 3)
    library = probes(EmulatorOptions(flush_subnormals=flush))
    words = (torch.from_numpy(sums.reshape(n, 4)), torch.tensor(lists.ratios, dtype=torch.int32))
    library.probe_ranks(*words, limits, ranks, threads=n, group_size=32)
    exponents = limits.reshape(n, 4)[:, 2:].tolist()
    for i in range(n):
        _check(sums[i].tolist(), Fraction(units), exponents[i], ranks[i].double().numpy())


def _check(
    sides: list[list[int]], reg_lambda: Fraction, exponents: list[int], ranks: Float64Array
) -> None:
    """The inequalities of csrc/metal/split_bound.h, in exact numbers."""
    (left_g, left_h), (right_g, right_h) = sides
    a, b = left_h + reg_lambda, right_h + reg_lambda
    unit = Fraction(2) ** (exponents[1] - exponents[0])
    mean = Fraction(left_g + right_g) / (a + b) * unit
    c = (left_g * b - right_g * a) / (a + b) * unit
    d = c * c / (a * b)
    u, v = Fraction(1, 2**24), Fraction(1, 2**53)
    rank, lower, upper = (Fraction(float(one)) for one in ranks)
    assert abs(rank - d) <= Fraction(71, 10) * u * d + Fraction(22, 10) * v * mean**2 + u**5
    rounding = 11 * v * (mean**2 + d)
    assert upper >= d + rounding
    assert lower <= max(d - rounding, 0)

"""Portable exp, log and log1p: how far from the real functions, at their ends, and with torch."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from support.tolerances import PORTABLE_MATH_ULPS

from torchgbdt.backends.torch_operations import TORCH
from torchgbdt.core import portable_math
from torchgbdt.core.fixed_point import flush_subnormals

FUNCTIONS = ("exp", "log", "log1p")
NAN_BITS = 0x7FC00000
TINY = np.float32(2.0**-126)
BELOW = np.nextafter(TINY, np.float32(0))


def function(name: str) -> Callable[..., Any]:
    result: Callable[..., Any] = getattr(portable_math, name)
    return result


def float32_numbers(stride: int) -> np.ndarray:
    """Every stride-th bit pattern, and the ends of what float32 holds."""
    patterns = np.arange(0, 2**32, stride, dtype=np.uint64).astype(np.uint32)
    ends = [0.0, -0.0, TINY, -TINY, BELOW, -BELOW, 1.0, -1.0, np.inf, -np.inf, np.nan]
    return np.concatenate((np.array(ends, np.float32), patterns.view(np.float32)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_the_real_functions_within_an_ulp(name: str) -> None:
    x = float32_numbers(10007)
    with np.errstate(all="ignore"):
        exact = getattr(np, name)(flush_subnormals(x).astype(np.float64))
        exact[np.abs(exact) < TINY] = 0
        rounded = exact.astype(np.float32)
    results = function(name)(x)
    assert results.dtype == np.float32
    special = ~np.isfinite(rounded) | (rounded == 0)
    np.testing.assert_array_equal(results[special], rounded[special])
    _, exponents = np.frexp(exact[~special])
    errors = np.abs(results[~special].astype(np.float64) - exact[~special])
    assert np.ldexp(errors, 24 - exponents).max() < PORTABLE_MATH_ULPS


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("exp", 0.0, 1.0),
        ("exp", -BELOW, 1.0),
        ("exp", np.inf, np.inf),
        ("exp", -np.inf, 0.0),
        ("exp", 88.7228317, 3.40279851e38),
        ("exp", 88.7228394, np.inf),
        ("exp", -87.3365402, 1.17549967e-38),
        ("exp", -87.3365479, 0.0),
        ("log", 1.0, 0.0),
        ("log", np.inf, np.inf),
        ("log", 0.0, -np.inf),
        ("log", -0.0, -np.inf),
        ("log", BELOW, -np.inf),
        ("log", -BELOW, -np.inf),
        ("log", -TINY, np.nan),
        ("log", -np.inf, np.nan),
        ("log1p", 0.0, 0.0),
        ("log1p", -0.0, 0.0),
        ("log1p", TINY, TINY),
        ("log1p", -TINY, -TINY),
        ("log1p", -BELOW, 0.0),
        ("log1p", np.inf, np.inf),
        ("log1p", -1.0, -np.inf),
        ("log1p", -1.0000001, np.nan),
        ("log1p", -np.inf, np.nan),
        *((name, sign * np.nan, np.nan) for name in FUNCTIONS for sign in (1, -1)),
    ],
)
def test_ends_of_the_functions(name: str, x: float, expected: float) -> None:
    bits = function(name)(np.array([x], np.float32)).view(np.uint32)
    expected_bits = NAN_BITS if np.isnan(expected) else np.float32(expected).view(np.uint32)
    assert bits.tolist() == [int(expected_bits)]


@pytest.mark.parametrize("name", FUNCTIONS)
def test_torch_gives_the_same_bits(name: str) -> None:
    x = float32_numbers(1021)
    with_torch = function(name)(torch.from_numpy(x), TORCH).numpy()
    assert np.array_equal(with_torch.view(np.uint32), function(name)(x).view(np.uint32))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("shape", [(0,), (), (3, 0), (2, 3)])
def test_any_shape_is_kept(name: str, shape: tuple[int, ...]) -> None:
    result = function(name)(np.full(shape, 0.5, np.float32))
    assert (result.shape, result.dtype) == (shape, np.float32)


def test_number_of_numpy_is_enough() -> None:
    assert portable_math.log(np.float32(1)) == 0

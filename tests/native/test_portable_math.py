"""The portable functions in C++ and in numpy: the same bits, NaN included.

pytest --exhaustive tries every float32 number, a few minutes.
"""

from collections.abc import Iterator

import numpy as np
import pytest

from torchgbdt import _native
from torchgbdt.core import portable_math

FUNCTIONS = {"exp": 0, "log": 1, "log1p": 2}
STRIDE = 1021
"""A prime: sampled bit patterns have every exponent, with every kind of mantissa."""
BLOCK = 2**20


def blocks_of_numbers(stride: int) -> Iterator[np.ndarray]:
    """Every stride-th bit pattern as float32, a block at a time."""
    for first in range(0, 2**32, stride * BLOCK):
        end = min(first + stride * BLOCK, 2**32)
        yield np.arange(first, end, stride, dtype=np.uint64).astype(np.uint32).view(np.float32)


@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_native_results_are_those_of_numpy(name: str, pytestconfig: pytest.Config) -> None:
    stride = 1 if pytestconfig.getoption("--exhaustive") else STRIDE
    for x in blocks_of_numbers(stride):
        results = np.empty_like(x)
        _native.portable_math(FUNCTIONS[name], x, results, 2)
        expected = getattr(portable_math, name)(x)
        assert np.array_equal(results.view(np.uint32), expected.view(np.uint32))

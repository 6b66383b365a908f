"""The floating-point environment of a run: plain IEEE arithmetic, whatever the process switched on.

``torch.set_flush_denormal(True)`` makes this thread treat subnormal numbers as zero, and
``numpy.seterr`` turns roundings into exceptions. Either would change a model, or lose it.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

_SUBNORMALS = np.full(4, 1e-40, np.float32)


@contextmanager
def ieee_arithmetic() -> Iterator[None]:
    """Compute with subnormals and numpy's default warnings; put everything back on every path."""
    flushed = subnormals_are_flushed()
    if flushed:
        torch.set_flush_denormal(False)
    try:
        with np.errstate(all="warn", under="ignore"):
            yield
    finally:
        if flushed:
            torch.set_flush_denormal(True)


def subnormals_are_flushed() -> bool:
    """Whether this thread treats subnormal numbers as zero."""
    with np.errstate(all="ignore"):
        return not (_SUBNORMALS * np.float32(1)).any()

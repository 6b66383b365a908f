"""The environment of a run: IEEE arithmetic and plain tensors, whatever the process switched on.

``torch.set_flush_denormal(True)`` makes this thread treat subnormal numbers as zero, and
``numpy.seterr`` turns roundings into exceptions. Either would change a model, or lose it. What is
made in torch's inference mode cannot be written to after it, such as sums between two stages.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import numpy as np
import torch

_SUBNORMALS = np.full(4, 1e-40, np.float32)


@contextmanager
def ieee_arithmetic() -> Iterator[None]:
    """Compute with subnormals, numpy's default warnings and no inference mode.

    Everything is put back on every path.
    """
    flushed = subnormals_are_flushed()
    if flushed:
        torch.set_flush_denormal(False)
    plain_tensors = (
        torch.inference_mode(False) if torch.is_inference_mode_enabled() else nullcontext()
    )
    try:
        with np.errstate(all="warn", under="ignore"), plain_tensors:
            yield
    finally:
        if flushed:
            torch.set_flush_denormal(True)


def subnormals_are_flushed() -> bool:
    """Whether this thread treats subnormal numbers as zero."""
    with np.errstate(all="ignore"):
        return not (_SUBNORMALS * np.float32(1)).any()

"""Whether torch computes the bits on a device that models of equal bits rest on.

    the same numbers --formulas of the core, on the device--> bits == bits <--on numpy--

A division that is not correctly rounded, or a half that is rounded up, would make another model and
say nothing. Kernels of our own are asked by ``conformance``; the mps backend asks both, since auc
and probabilities are torch operations there, too.
"""

from functools import lru_cache
from typing import Any

import numpy as np
import torch

from torchgbdt.backends.torch_operations import TORCH
from torchgbdt.backends.torch_transfers import to_device, to_host
from torchgbdt.core import portable_math
from torchgbdt.core.array_ops import NUMPY, Array, ArrayOps
from torchgbdt.core.errors import BackendUnavailableError
from torchgbdt.core.fixed_point import round_gradients
from torchgbdt.core.probabilities import logistic_terms
from torchgbdt.core.ranking import order_keys

_N_CASES = 4_096


def _sums(x: Array, ops: ArrayOps) -> Array:
    return (x + 0.3) - x * 1.7


def _halves(x: Array, ops: ArrayOps) -> Array:
    return round_gradients(round_gradients(x, 3, ops) * 0.5, 0, ops)


_FORMULAS: dict[str, Any] = {
    "addition and multiplication": _sums,
    "division": lambda x, ops: logistic_terms(x, ops).small,
    "reciprocal": lambda x, ops: logistic_terms(x, ops).large,
    "exp": lambda x, ops: portable_math.exp(x, ops),
    "log": lambda x, ops: portable_math.log(abs(x), ops),
    "log1p": lambda x, ops: portable_math.log1p(abs(x), ops),
    "rounding": _halves,
    "bits": order_keys,
}
"""What it is called in messages -> the formula; all numbers on the way are normal, or 0."""


@lru_cache
def check_arithmetic(device: torch.device, ops: ArrayOps = TORCH) -> None:
    """Raise BackendUnavailableError, naming the operation, unless the device computes our bits."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-80, 80, _N_CASES).astype(np.float32)
    on_device = to_device(x, device)
    for name, formula in _FORMULAS.items():
        expected, found = formula(x, NUMPY), to_host(formula(on_device, ops))
        if found.tobytes() != expected.tobytes():
            raise BackendUnavailableError(
                f"device '{device}' computes other bits than the host in {name}, so it would train "
                f"another model. Pass device='cpu' to train on a copy of the data there, and "
                f"please report this with the versions of torch and of the device's driver."
            )

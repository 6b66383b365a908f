"""torch's part of the core's formulas, and the integer scatter that histograms are made of.

Every operation here gives the same bits on every device: comparisons of bits, IEEE basic
operations, and sums of integers.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from torchgbdt.core.array_ops import Array, ArrayOps


def _where(condition: Array, a: Array, b: Array) -> Array:
    """A number becomes no tensor of its own: it is filled in."""
    if isinstance(a, int | float):
        return b.masked_fill(condition, a)
    if isinstance(b, int | float):
        return a.masked_fill(~condition, b)
    return torch.where(condition, a, b)


def _first_largest(tensor: Array) -> Array:
    """``torch.argmax`` promises no particular one of several."""
    n_columns = tensor.shape[1]
    is_largest = (tensor == tensor.amax(dim=1, keepdim=True)) | (tensor != tensor)
    columns = torch.arange(n_columns, dtype=torch.int32, device=tensor.device)
    found = columns.expand_as(is_largest).masked_fill(~is_largest, n_columns)
    return found.amin(dim=1).to(torch.int64)


TORCH = ArrayOps(
    where=_where,
    bits=lambda tensor: tensor.view(torch.int32),
    from_bits=lambda tensor: tensor.view(torch.float32),
    to_float32=lambda tensor: tensor.to(torch.float32),
    to_float64=lambda tensor: tensor.to(torch.float64),
    to_int32=lambda tensor: tensor.to(torch.int32),
    to_int64=lambda tensor: tensor.to(torch.int64),
    round_half_even=torch.round,
    zeros_like=torch.zeros_like,
    empty=lambda shape, tensor: torch.empty(shape, dtype=tensor.dtype, device=tensor.device),
    first_largest=_first_largest,
)

MAGNITUDE_BITS = 0x7FFFFFFF
INFINITY_BITS = 0x7F800000
"""Magnitudes, as bits, from which on a float32 number is not finite."""


class _OrderIsNoMatter:
    """Switches torch's alert about scatter off while any thread is inside.

    The switch is one for the whole process: the first thread that enters turns it, and the last one
    that leaves turns it back.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_inside = 0
        self._was_on = False
        self._warned_only = False

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if self._n_inside == 0:
                self._was_on = torch.are_deterministic_algorithms_enabled()
                self._warned_only = torch.is_deterministic_algorithms_warn_only_enabled()
                if self._was_on:
                    torch.use_deterministic_algorithms(False)
            self._n_inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._n_inside -= 1
                if self._n_inside == 0 and self._was_on:
                    torch.use_deterministic_algorithms(True, warn_only=self._warned_only)


_order_is_no_matter = _OrderIsNoMatter()


def add_integers(sums: torch.Tensor, index: torch.Tensor, values: torch.Tensor) -> None:
    """``sums[index] += values``, whatever the order: integers add up to the same.

    torch alerts, or takes a slower way, under ``torch.use_deterministic_algorithms(True)``, because
    on a device the order of additions is not fixed, which changes sums of floats. It changes none
    of these: the mode is off for this operation alone, and is put back whatever happens. Other
    threads of the process see it off meanwhile.

    Parameters
    ----------
    sums : int64, (n,), contiguous. IN-OUT.
    index : int64, (n_added,); 0 <= index < n.
    values : int64, (n_added,).
    """
    with _order_is_no_matter():
        sums.scatter_add_(0, index, values)


def place(target: torch.Tensor, index: torch.Tensor, values: torch.Tensor) -> None:
    """``target[index] = values``; no index comes twice, so their order is no matter either.

    All are (n,) and contiguous, target and values of one dtype, index int64. target : IN-OUT.
    """
    with _order_is_no_matter():
        target.scatter_(0, index, values)

"""A second torch device without hardware, and what comes back from it to the host.

Torch's lazy tensors are no view of the host's memory, and torch moves nothing between the two by
itself: what computes there is as far from numpy as on a GPU.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
import torch._lazy
import torch._lazy.ts_backend
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_leaves

SECOND_DEVICE = "lazy:0"


@cache
def start_second_device() -> None:
    torch._lazy.ts_backend.init()


def elsewhere(tensor: torch.Tensor) -> torch.Tensor:
    """A copy of a tensor on the second device."""
    start_second_device()
    return tensor.to("lazy")


_READ_NUMBERS = {
    getattr(torch.Tensor, name)
    for name in ("item", "tolist", "numpy", "__bool__", "__int__", "__float__", "__index__")
}


class _CopiesToHost(TorchFunctionMode):
    """Notes every call that takes tensors of another device and leaves numbers on the host."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: list[int] = []

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        given = [one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
        if any(one.device.type != "cpu" for one in given):
            made = [one for one in tree_leaves(result) if isinstance(one, torch.Tensor)]
            self.sizes += [one.numel() for one in made if one.device.type == "cpu"]
            if function in _READ_NUMBERS:
                self.sizes.append(given[0].numel())
        return result


@contextmanager
def copies_to_host() -> Iterator[list[int]]:
    """How many numbers each copy to the host took within the block, in order."""
    with _CopiesToHost() as watching:
        yield watching.sizes

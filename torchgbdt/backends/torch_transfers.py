"""Between host and device: the only two ways, what they moved, and what the device refuses.

Nothing else in the torch backends moves an array or reads a number of a tensor: each transfer waits
for all work that was queued.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import torch

from torchgbdt.core.arrays import AnyArray
from torchgbdt.core.errors import (
    BackendUnavailableError,
    DeviceMemoryError,
    InvalidParameterError,
)

_P = ParamSpec("_P")
_T = TypeVar("_T")

_NO_MEMORY = ("out of memory", "can't allocate memory", "invalid buffer size")
"""How messages of torch's allocators say it; CUDA's has a type of its own."""


def to_host(tensor: torch.Tensor) -> AnyArray:
    """A host copy of a tensor."""
    array: AnyArray = tensor.to("cpu", copy=True).numpy()
    return array


def to_device(array: AnyArray, device: torch.device) -> torch.Tensor:
    """A copy of an array on a device, contiguous."""
    return torch.tensor(array.copy(order="C"), device=device)


class Transfers:
    """Moves arrays to and from one device, and counts.

    Attributes
    ----------
    synchronizations : copies to the host so far; each waits for the device.
    bytes_to_host : that they moved.
    uploads : copies to the device.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self.restart()

    def restart(self) -> None:
        """Count from 0, for a new run."""
        self.synchronizations = 0
        self.bytes_to_host = 0
        self.uploads = 0

    def to_host(self, tensor: torch.Tensor) -> AnyArray:
        """A host copy."""
        self.synchronizations += 1
        self.bytes_to_host += tensor.nbytes
        return to_host(tensor)

    def to_device(self, array: AnyArray) -> torch.Tensor:
        """A copy on the device, contiguous."""
        self.uploads += 1
        return to_device(array, self.device)

    def resident(self, values: Any) -> torch.Tensor:
        """A tensor of the device as it is, an array as a copy there."""
        return values if isinstance(values, torch.Tensor) else self.to_device(values)

    def write(self, result: torch.Tensor, target: Any, rows: slice) -> None:
        """``target[rows] = result``: on the device if target is a tensor, on the host if an array.

        Nothing moves where ``result`` is that part of target already.
        """
        if not isinstance(target, torch.Tensor):
            target[rows] = self.to_host(result)
        else:
            target[rows] = result


def find_device(name: str) -> torch.device:
    """The device of this name, once it has shown that it holds tensors; with its index, if any.

    Raises
    ------
    InvalidParameterError : there is no such kind of device, or it holds no numbers.
    BackendUnavailableError : it is not here.
    """
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise InvalidParameterError(
            f"device must name a torch device, such as 'cpu', 'cuda:0' or 'mps'; found {name!r}."
        ) from error
    if device.type == "meta":
        raise InvalidParameterError("device 'meta' holds no numbers; pass one that does.")
    try:
        return torch.zeros(1, dtype=torch.int32, device=device).device
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).partition("\n")[0]
        raise BackendUnavailableError(
            f"device {name!r} cannot be used here: {reason} Move the data with .cpu(), or pass "
            f"device='cpu' to train on a copy of it there."
        ) from error


class _EstimatesMemory(Protocol):
    def memory_estimate(self) -> int: ...


_S = TypeVar("_S", bound=_EstimatesMemory)


def reports_memory(
    method: Callable[Concatenate[_S, _P], _T],
) -> Callable[Concatenate[_S, _P], _T]:
    """A method of a backend that says DeviceMemoryError, with an estimate, where memory is short.

    The backend's ``memory_estimate`` says what its run needs, in bytes.
    """

    @wraps(method)
    def with_memory_errors(self: _S, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        try:
            return method(self, *args, **kwargs)
        except RuntimeError as error:
            if not _is_about_memory(error):
                raise
            reason = str(error).partition("\n")[0]
            raise DeviceMemoryError(
                f"the device's memory does not suffice in {method.__name__} ({reason}). The "
                f"buffers of the run need about {self.memory_estimate() / 2**20:.0f} MiB. Lower "
                f"histogram_budget_mb, max_depth or max_bins, train on fewer rows, or on a device "
                f"with more memory."
            ) from error

    return with_memory_errors


def _is_about_memory(error: RuntimeError) -> bool:
    """Whether an allocator of torch raised it; errors of this package say what they mean."""
    if isinstance(error, torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    return type(error) is RuntimeError and any(words in text for words in _NO_MEMORY)


def facts_of(device: torch.device) -> dict[str, Any]:
    """What decides results on a device, for diagnostics."""
    facts = {"device": str(device), "torch": str(torch.__version__)}
    if device.type == "cuda":
        facts |= {"device_name": torch.cuda.get_device_name(device)}
    return facts

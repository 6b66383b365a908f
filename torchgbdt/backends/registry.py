"""Which backends exist, which can run here, and which one a run gets.

The only place that compares backend names. A backend is imported when it is asked for, so that a
broken or absent one costs the others nothing. Nothing falls back silently.
"""

from collections.abc import Callable

from torchgbdt.core.backend import ComputeBackend
from torchgbdt.core.errors import BackendError, BackendUnavailableError, InvalidParameterError

AUTO = "auto"
"""The backend, or the device, that the data suggests."""

_HOST_DEVICE = "cpu"
_APPLE_DEVICE = "mps"


def _make_oracle(device: str, n_threads: int) -> ComputeBackend:
    from torchgbdt.backends.oracle import OracleBackend

    return OracleBackend()


def _make_cpu(device: str, n_threads: int) -> ComputeBackend:
    try:
        from torchgbdt.backends.native import NativeBackend
    except ImportError as error:
        raise BackendUnavailableError(
            f"backend 'cpu' cannot run here: its compiled module does not load ({error}). "
            f"If this is the source folder of an installed torchgbdt, run elsewhere; otherwise "
            f"reinstall torchgbdt, or pass backend='oracle' (slow)."
        ) from error
    return NativeBackend(n_threads)


def _make_torch(device: str, n_threads: int) -> ComputeBackend:
    try:
        from torchgbdt.backends.torch_scatter import TorchBackend
    except ImportError as error:
        raise BackendUnavailableError(
            f"backend 'torch' cannot run here: torch does not load ({error})."
        ) from error
    return TorchBackend(_HOST_DEVICE if device == AUTO else device)


def _make_mps(device: str, n_threads: int) -> ComputeBackend:
    try:
        from torchgbdt.backends.mps_device import make_mps_backend
    except ImportError as error:
        raise BackendUnavailableError(
            f"backend 'mps' cannot run here: torch does not load ({error})."
        ) from error
    return make_mps_backend(_APPLE_DEVICE if device == AUTO else device)


_MAKERS: dict[str, Callable[[str, int], ComputeBackend]] = {
    "oracle": _make_oracle,
    "cpu": _make_cpu,
    "torch": _make_torch,
    "mps": _make_mps,
}
_ONLY_DEVICE = {"oracle": _HOST_DEVICE, "cpu": _HOST_DEVICE, "mps": _APPLE_DEVICE}
"""Of backends that run on one kind of device."""


def available() -> dict[str, str | None]:
    """Each backend's name -> None, or the reason why it cannot run here."""
    return {name: _reason(make) for name, make in _MAKERS.items()}


def _reason(make: Callable[[str, int], ComputeBackend]) -> str | None:
    try:
        make(AUTO, 1)
    except (BackendUnavailableError, BackendError) as error:
        return str(error)
    return None


def make_backend(backend: str, device: str, n_threads: int) -> ComputeBackend:
    """The backend for one run or prediction.

    Parameters
    ----------
    backend : a name, or "auto" for the one that belongs to the device; never the oracle.
    device : where the run takes place, such as "cpu" or "cuda:0"; "auto" where the data is not
        known yet, which asks about the host.
    n_threads : >= 1.

    Raises
    ------
    InvalidParameterError : there is no such backend, or it does not run on that device.
    BackendUnavailableError : it cannot run here; the message says why and what to do.
    """
    allowed = [AUTO, *_MAKERS]
    if backend not in allowed:
        raise InvalidParameterError(
            f"backend must be one of {', '.join(map(repr, allowed))}; found {backend!r}."
        )
    device_type = device.partition(":")[0]
    if backend == AUTO:
        make = {_HOST_DEVICE: _make_cpu, _APPLE_DEVICE: _make_mps}.get(device_type, _make_torch)
        return make(device, n_threads)
    only = _ONLY_DEVICE.get(backend, device_type)
    if device_type not in (only, AUTO):
        raise InvalidParameterError(
            f"backend {backend!r} runs on device {only!r}; found device {device!r}. "
            f"Pass device={only!r}, or leave backend out."
        )
    return _MAKERS[backend](device, n_threads)

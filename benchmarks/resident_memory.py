"""How much memory this process has had resident at most, on Linux and macOS."""

import resource
import sys
from contextlib import suppress
from pathlib import Path

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def restart_peak() -> None:
    """Let the peak begin at what is resident now, where the system can; elsewhere it goes on."""
    with suppress(OSError):
        _RESET.write_text("5")


def peak_bytes() -> int:
    """The most that was resident since ``restart_peak``."""
    if _STATUS.is_file():
        return _kilobytes("VmHWM") * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def resident_bytes() -> int:
    """What is resident now; the peak so far where the system does not say."""
    return _kilobytes("VmRSS") * 1024 if _STATUS.is_file() else peak_bytes()


def _kilobytes(name: str) -> int:
    for line in _STATUS.read_text("ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise RuntimeError(f"{_STATUS} has no {name}.")

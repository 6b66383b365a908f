"""How much memory this process has had resident at most: as Linux says it."""

from pathlib import Path

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def restart_peak() -> bool:
    """Let the peak begin at what is resident now; False where the system cannot.

    Not every system is Linux, and not every container may write there.
    """
    try:
        _RESET.write_text("5")
    except OSError:
        return False
    return True


def peak_bytes() -> int:
    """The most that was resident since ``restart_peak``."""
    return _kilobytes("VmHWM") * 1024


def resident_bytes() -> int:
    """What is resident now."""
    return _kilobytes("VmRSS") * 1024


def _kilobytes(name: str) -> int:
    for line in _STATUS.read_text("ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise RuntimeError(f"{_STATUS} has no {name}.")

"""What a figure depends on besides the code: processor, system, versions."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]

# What figures depend on. Results do not count: a run of a clean tree writes them.
SOURCES = ("torchgbdt", "csrc", "CMakeLists.txt", "pyproject.toml", "constraints.txt",
           "benchmarks", ":!benchmarks/results", "demo")  # fmt: skip


def machine_facts() -> dict[str, Any]:
    """The machine and the state of the code, for people to read."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "numpy": metadata.version("numpy"),
        "torch": metadata.version("torch"),
        "commit": _commit(),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
    }


def has_processor_flag(name: str) -> bool:
    """Whether Linux lists it; False on other systems."""
    return name in _cpuinfo("flags").split()


def _processor() -> str:
    """Its name where the system says so."""
    return _cpuinfo("model name") or platform.processor() or platform.machine()


def _cpuinfo(field: str) -> str:
    """What Linux says of the first processor; nothing on other systems."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        for line in cpuinfo.read_text("utf-8").splitlines():
            if line.startswith(field):
                return line.partition(":")[2].strip()
    return ""


def _commit() -> str:
    """Short hash; with a + if any of ``SOURCES`` differs from it; "unknown" outside of a clone."""
    try:
        commit = _git("rev-parse", "--short", "HEAD")
        return commit + ("+" if _git("status", "--porcelain", "--", *SOURCES) else "")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

"""Run the fixed workloads under valgrind; instructions of each workload and each kernel in it."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from machine import ROOT

from instructions.fixed_workloads import MARK, NAMES

Counts = dict[str, dict[str, int]]
"""By workload and kernel; "all" is the whole workload, Python and numpy included."""

ALL = "all"
_LINE = re.compile(r"^\s*([\d,]+)\s+\S*?:?torchgbdt::(\w+)\(")


def valgrind() -> str:
    """Where it is; SystemExit where it is not."""
    found = shutil.which("valgrind")
    if found is None or shutil.which("callgrind_annotate") is None:
        raise SystemExit(
            "valgrind is not installed, and nothing was checked. It is a package of most Linux "
            "distributions (apt install valgrind); it does not run on Apple processors."
        )
    return found


def valgrind_version() -> str:
    """E.g. ``3.19.0``."""
    command = [valgrind(), "--version"]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    return result.stdout.strip().removeprefix("valgrind-")


def count(extension: Path, kernels: frozenset[str]) -> Counts:
    """Run, and add up; a minute or two.

    Parameters
    ----------
    kernels : names of functions of the extension.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        script = Path(__file__).parent / "fixed_workloads.py"
        command = [valgrind(), "-q", "--tool=callgrind", f"--callgrind-out-file={out}"]
        command += [f"--dump-before=torchgbdt::{MARK}*", sys.executable, str(script)]
        # dictionaries and sets in the same order every time
        path = os.pathsep.join((str(ROOT), str(ROOT / "benchmarks")))
        environment = {"PATH": os.environ["PATH"], "PYTHONHASHSEED": "0", "PYTHONPATH": path}
        result = subprocess.run(
            [*command, str(extension)], env=environment, capture_output=True, text=True, check=False
        )
        if result.returncode != 0:
            raise SystemExit(f"the workloads failed under valgrind:\n{result.stderr}")
        # a part ends at each mark: one before the first, then a workload and a gap in turn
        parts = [Path(f"{out}.{2 * index + 2}") for index in range(len(NAMES))]
        return {
            name: kernel_counts(annotate(part), kernels)
            for name, part in zip(NAMES, parts, strict=True)
        }


def annotate(part: Path) -> str:
    """What callgrind_annotate says about a part: inclusive counts by function."""
    command = ["callgrind_annotate", "--inclusive=yes", "--threshold=100", "--show-percs=no"]
    result = subprocess.run([*command, str(part)], capture_output=True, text=True, check=True)
    return result.stdout


def kernel_counts(text: str, kernels: frozenset[str]) -> dict[str, int]:
    """The lines of kernels, with all that they call, and the line of the whole program."""
    counts: dict[str, int] = {}
    for line in text.splitlines():
        if line.endswith("PROGRAM TOTALS"):
            counts[ALL] = int(line.split()[0].replace(",", ""))
        match = _LINE.match(line)
        if match and match.group(2) in kernels:
            name = match.group(2)  # a part of it that the compiler set aside has a line of its own
            counts[name] = max(counts.get(name, 0), int(match.group(1).replace(",", "")))
    if ALL not in counts:
        raise SystemExit("callgrind_annotate printed no totals.")
    return counts

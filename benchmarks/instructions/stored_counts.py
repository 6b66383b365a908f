"""Counts that were stored, one set per toolchain, and what has changed since."""

import json
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from machine import has_processor_flag

from instructions.callgrind import Counts

FILE = Path(__file__).parent / "counts.json"
TOLERANCE = 0.02
"""What may be added without being told. Counts repeat to a few in ten thousand."""

LEAST = 100_000
"""Kernels with fewer instructions in a workload are not worth a red check."""


def toolchain(compiler: str, valgrind: str) -> str:
    """What counts depend on besides our sources; others are not comparable."""
    python = ".".join(platform.python_version_tuple()[:2])
    # valgrind knows no wider vectors: these decide which versions of functions are loaded
    vectors = "with AVX2" if has_processor_flag("avx2") else "without AVX2"
    return (
        f"{compiler}, {platform.system()} {platform.machine()} {vectors}, valgrind {valgrind}, "
        f"Python {python}, numpy {metadata.version('numpy')}"
    )


@dataclass(frozen=True)
class Change:
    """One count that is stored, measured, or both."""

    workload: str
    kernel: str
    stored: int | None
    found: int | None

    @property
    def ratio(self) -> float | None:
        """Found by stored; None where one of them is missing."""
        return self.found / self.stored if self.found and self.stored else None

    @property
    def is_more(self) -> bool:
        """Whether it became more than the tolerance allows."""
        if self.ratio is None or self.stored is None or self.stored < LEAST:
            return False
        return self.ratio > 1 + TOLERANCE


def failures(found: list[Change]) -> list[str]:
    """What is wrong, a line each; nothing if every count is stored and did not grow too much.

    A kernel that takes over another's work takes its instructions along. If one that is gone or
    new were passed over, nobody would watch that work any more.
    """
    lines = [f"{one.workload}: {one.kernel} is stored, but was not counted now."
             for one in found if one.found is None]  # fmt: skip
    lines += [f"{one.workload}: {one.kernel} was counted, but is not stored."
              for one in found if one.stored is None]  # fmt: skip
    if lines:
        lines.append("If that is meant: `make bench-check CHECK_OPTIONS=--store`, and say why.")
    if n_more := sum(one.is_more for one in found):
        lines.append(f"{n_more} counts grew by more than {100 * TOLERANCE:g}%.")
    return lines


def load(file: Path = FILE) -> dict[str, Counts]:
    """By toolchain."""
    stored: dict[str, Counts] = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    return stored


def store(chain: str, counts: Counts, file: Path = FILE) -> None:
    """Keep the counts of one toolchain; those of others stay."""
    file.write_text(json.dumps(load(file) | {chain: counts}, indent=1) + "\n", "utf-8")


def changes(stored: Counts, found: Counts) -> Iterator[Change]:
    """Every count of either, workload by workload."""
    for workload in {**stored, **found}:
        before, now = stored.get(workload, {}), found.get(workload, {})
        for kernel in {**now, **before}:
            yield Change(workload, kernel, before.get(kernel), now.get(kernel))


def table(found: list[Change]) -> str:
    """One line per count, those that became more marked."""
    lines = [f"{'workload':<15}{'kernel':<24}{'stored':>14}{'found':>14}{'change':>9}"]
    for one in found:
        change = "" if one.ratio is None else f"{100 * (one.ratio - 1):+.1f}%"
        numbers = ["" if n is None else f"{n:,}" for n in (one.stored, one.found)]
        mark = "  <-- more" if one.is_more else ""
        lines.append(f"{one.workload:<15}{one.kernel:<24}{numbers[0]:>14}{numbers[1]:>14}"
                     f"{change:>9}{mark}")  # fmt: skip
    return "\n".join(lines)

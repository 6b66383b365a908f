"""What one process measured, and one file of many of them."""

import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Measurement:
    """One run of one contender; what does not belong to its task is None.

    Attributes
    ----------
    task : train; predict: trained as well, then timed on the training rows; bin: nothing else.
    busy : as many other processes as threads never rested at the time.
    seconds : binning and training; of task ``bin`` binning alone.
    binning_seconds : as far as a library bins apart from training.
    processor_seconds : of all threads, system calls included.
    peak_bytes, growth_bytes : resident at most while binning and training; the same less what was
        resident before, rows and library included. None where the system cannot tell that peak from
        an earlier one.
    metric : on the test rows; lower is better.
    """

    contender: str
    workload: str
    task: str
    threads: int
    version: str
    seconds: float
    busy: bool = False
    binning_seconds: float | None = None
    processor_seconds: float | None = None
    peak_bytes: int | None = None
    growth_bytes: int | None = None
    metric: float | None = None
    digest: str | None = None
    predict_seconds: float | None = None


@dataclass(frozen=True)
class Comparison:
    """Measurements of one machine and one state of the code.

    Attributes
    ----------
    facts : machine, versions, commit, date and options, as texts and numbers.
    """

    facts: dict[str, Any]
    measurements: list[Measurement]

    def save(self, path: Path) -> None:
        """Write JSON, one measurement per line."""
        lines = ",\n  ".join(json.dumps(asdict(one)) for one in self.measurements)
        facts = json.dumps(self.facts, indent=1)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'{{"facts": {facts},\n "measurements": [\n  {lines}\n]}}\n', "utf-8")

    @classmethod
    def load(cls, path: Path) -> "Comparison":
        """What ``save`` wrote."""
        content = json.loads(path.read_text("utf-8"))
        return cls(content["facts"], [Measurement(**one) for one in content["measurements"]])


def under_load(measurement: Measurement) -> Measurement:
    """The same, marked as busy."""
    return replace(measurement, busy=True)

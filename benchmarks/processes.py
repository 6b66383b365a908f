"""Starting one measurement, alone on the machine or beside others that want all its cores."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from measurement import Measurement, under_load
from plan import Run

HERE = Path(__file__).parent
LIMIT_SECONDS = 1200

# Switches of OpenBLAS that a machine's owner may have set; users of the libraries have not.
_NOT_INHERITED = {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_NUM_THREADS"}
_NOT_INHERITED |= {"OMP_WAIT_POLICY", "OMP_PROC_BIND", "OMP_DYNAMIC", "GOMP_CPU_AFFINITY"}

# Ends by itself, should nobody be left to end it.
_BURN = f"import time\nend = time.time() + {LIMIT_SECONDS}\nwhile time.time() < end: pass"


class FailedRunError(Exception):
    """A process did not measure anything; the message is what it printed."""


def child_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment of a measurement: the given one without what would change speed."""
    child = {name: value for name, value in environment.items() if name not in _NOT_INHERITED}
    return child | {"PYTHONWARNINGS": "ignore"}


def measure(run: Run, quick: bool, data: Path, environment: Mapping[str, str]) -> Measurement:
    """Start the process of a run, wait for it, read what it measured."""
    command = [sys.executable, str(HERE / "one_run.py"), run.contender, run.workload]
    command += ["--task", run.task, "--threads", str(run.threads), "--data", str(data)]
    command += ["--quick"] if quick else []
    with _burning(run.threads if run.busy else 0):
        try:
            result = subprocess.run(
                command,
                env=child_environment(environment),
                capture_output=True,
                text=True,
                timeout=LIMIT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise FailedRunError(f"no result within {LIMIT_SECONDS} s.") from error
    if result.returncode != 0:
        raise FailedRunError(result.stderr.strip() or f"exit status {result.returncode}.")
    measured = Measurement(**json.loads(result.stdout.splitlines()[-1]))
    return under_load(measured) if run.busy else measured


@contextmanager
def _burning(n_processes: int) -> Iterator[None]:
    """So many other processes that never rest."""
    others = [subprocess.Popen([sys.executable, "-S", "-c", _BURN]) for _ in range(n_processes)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()

"""Starting one measurement, alone or beside as many processes that never rest as it has threads."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from measurement import Measurement, under_load
from plan import Run

HERE = Path(__file__).parent
LIMIT_SECONDS = 1200

# Switches of OpenBLAS that a machine's owner may have set; users of the libraries have not.
_NOT_INHERITED = {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OPENBLAS_NUM_THREADS"}
_NOT_INHERITED |= {"OMP_WAIT_POLICY", "OMP_PROC_BIND", "OMP_DYNAMIC", "GOMP_CPU_AFFINITY"}

# Ends by itself soon after the process with this id, should that have had no time to end it.
_BURN = "import os\nwhile os.getppid() == {}:\n    for _ in range(100_000): pass"


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
    with burning(run.threads if run.busy else 0):
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
def burning(n_processes: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """So many other processes that never rest; they are gone when the block is left."""
    command = [sys.executable, "-S", "-c", _BURN.format(os.getpid())]
    others: list[subprocess.Popen[bytes]] = []
    with ExitStack() as stack:
        for _ in range(n_processes):
            # Ctrl-C reaches them as well; what they would say of it is nobody's business.
            others.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))
            stack.callback(_end, others[-1])
        yield others


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()

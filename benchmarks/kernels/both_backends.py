"""The same run on the native backend and on the oracle; each is made once and kept."""

from functools import cache

from kernels.staged_run import Shape, StagedRun
from torchgbdt.backends.native import NativeBackend
from torchgbdt.backends.oracle import OracleBackend


@cache
def oracle_run(shape: Shape) -> StagedRun:
    """What the answers are."""
    return StagedRun(OracleBackend(), shape)


@cache
def native_run(shape: Shape, n_threads: int) -> StagedRun:
    """What is timed."""
    return StagedRun(NativeBackend(n_threads), shape)

"""A process may end, or wait for its threads first, while daemon threads are in kernels."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PATIENCE = 45
WATCH = f"import faulthandler; faulthandler.dump_traceback_later({PATIENCE})"

PREDICTING = """
import threading
import numpy as np
from torchgbdt import _native

stop, started = threading.Event(), threading.Event()
tree = (
    np.array([0, 3]), np.array([0, -1, -1], np.int32), np.zeros(3), np.array([1, -1, -1], np.int32),
    np.array([0, 1, 1], np.uint8), np.ones((3, 1), np.float32),
)

def predict(n_rows, n_threads):
    X, sums = np.zeros((n_rows, 2)), np.zeros((n_rows, 1), np.float32)
    while not stop.is_set():
        _native.predict(*tree, X, False, sums, n_threads)
        started.set()

def start(n_rows, n_threads):
    thread = threading.Thread(target=predict, args=(n_rows, n_threads), daemon=True)
    thread.start()
    return thread
"""


@pytest.fixture
def output_of(tmp_path: Path) -> Callable[..., str]:
    """Runs a program that must end with exit code 0 and say nothing on stderr."""

    def run(*code: str) -> str:
        path = os.pathsep.join(entry for entry in sys.path if entry)
        try:
            result = subprocess.run(
                [sys.executable, "-c", "\n".join((WATCH, *code))],
                cwd=tmp_path,
                env={**os.environ, "PYTHONPATH": path},
                capture_output=True,
                text=True,
                check=False,
                timeout=60,
            )
        except subprocess.TimeoutExpired as error:
            where = (error.stderr or b"").decode() or "outside of Python: the interpreter had gone"
            pytest.fail(f"the process did not end; after {PATIENCE} s its threads were\n{where}")
        assert (result.returncode, result.stderr) == (0, "")
        return result.stdout

    return run


def test_a_process_ends_while_daemon_threads_train(output_of: Callable[..., str]) -> None:
    code = """
import threading
from support.runs import train
from support.scenarios import scenario
from torchgbdt.backends.native import NativeBackend
started = threading.Event()
def work():
    while True:
        train(NativeBackend(3), scenario("many rows"))
        started.set()
for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
started.wait()
"""
    for _ in range(3):
        output_of(code)


@pytest.mark.parametrize("n_rows", [10, 3000])
def test_a_process_ends_while_daemon_threads_ask_for_the_gil(
    output_of: Callable[..., str], n_rows: int
) -> None:
    for n_threads in (1, 2, 3):
        output_of(PREDICTING, f"for _ in range(8): start({n_rows}, {n_threads})", "started.wait()")


def test_exit_handlers_registered_before_the_import_may_join_daemon_threads(
    output_of: Callable[..., str],
) -> None:
    early = """
import atexit
def finish():
    stop.set()
    thread.join()
    print("joined")
atexit.register(finish)
"""
    for n_rows in (10, 30_000):
        code = (early, PREDICTING, f"thread = start({n_rows}, 2)", "started.wait()")
        assert output_of(*code) == "joined\n"


def test_a_kernel_called_by_the_thread_that_shuts_the_interpreter_down_returns(
    output_of: Callable[..., str],
) -> None:
    code = """
class Last:
    def __init__(self):
        self.call = (_native.predict, np.zeros((30_000, 2)), np.zeros((30_000, 1), np.float32))
        self.tree, self.print = tree, print
    def __del__(self):
        predict, X, sums = self.call
        predict(*self.tree, X, False, sums, 2)
        self.print(float(sums[-1, 0]), flush=True)
last = Last()
"""
    assert output_of(PREDICTING, code) == "1.0\n"

"""Threads of the native backend: any number, from any caller, in forked children."""

import multiprocessing
import os
import threading
from collections.abc import Callable

import pytest
from support.runs import train
from support.scenarios import scenario

from torchgbdt import _native
from torchgbdt.backends.native import NativeBackend

SCENARIO = "many rows"


def digest(n_threads: int = 2) -> str:
    return train(NativeBackend(n_threads), scenario(SCENARIO)).model.digest()


def in_child(work: Callable[[], bool]) -> bool:
    """Whether ``work`` succeeds in a forked child."""
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if work() else 1)
        finally:
            os._exit(2)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) == 0


def test_concurrent_runs_do_not_disturb_each_other() -> None:
    expected = digest(1)
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda n=n: found.extend(digest(n) for _ in range(3)))
        for n in (1, 2, 3, 7)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 12


def test_more_threads_than_cores_are_used_and_kept() -> None:
    n_threads = 2 * (os.cpu_count() or 1) + 3
    expected = digest(1)
    assert digest(n_threads) == expected
    grown = _native.pool_size()
    assert grown >= n_threads - 1
    assert digest(n_threads) == expected
    assert _native.pool_size() == grown


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_forked_child_trains_the_same_model_and_so_does_the_parent_afterwards() -> None:
    expected = digest(3)
    assert in_child(lambda: _native.pool_size() == 0 and digest(3) == expected)
    assert in_child(lambda: in_child(lambda: digest(2) == expected))
    assert digest(3) == expected


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_forking_pool_of_processes() -> None:
    expected = digest(2)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map(digest, [1, 2, 3]) == [expected] * 3

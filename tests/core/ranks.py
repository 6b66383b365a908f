"""Several ranks in one process: each runs the same function in a thread of its own."""

import threading
from collections.abc import Callable
from typing import TypeVar

from torchgbdt.core.communicator import Communicator, InProcessRanks
from torchgbdt.core.errors import BackendError

Result = TypeVar("Result")

_TIMEOUT_SECONDS = 20


def on_ranks(size: int, work: Callable[[Communicator], Result]) -> list[Result]:
    """Return ``work(communicator)`` of each rank; raise the error that came first.

    A rank that fails wakes the others, whose BackendError is not what the caller wants to see.
    """
    group = InProcessRanks(size)
    results: dict[int, Result] = {}
    errors: list[BaseException] = []

    def run(rank: int) -> None:
        try:
            results[rank] = work(group.rank(rank))
        except BaseException as error:
            errors.append(error)
            group.abort()

    threads = [threading.Thread(target=run, args=(rank,), daemon=True) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_TIMEOUT_SECONDS)
    waiting = [rank for rank, thread in enumerate(threads) if thread.is_alive()]
    group.abort()
    if errors:
        raise next((e for e in errors if not isinstance(e, BackendError)), errors[0])
    assert not waiting, f"ranks {waiting} wait for ever"
    return [results[rank] for rank in range(size)]

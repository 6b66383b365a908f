"""Every benchmark of this folder runs on one thread and on two."""

import pytest


@pytest.fixture(params=(1, 2), ids=("1-thread", "2-threads"))
def n_threads(request: pytest.FixtureRequest) -> int:
    threads: int = request.param
    return threads

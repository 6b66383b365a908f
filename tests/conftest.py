"""What every test may use: hypothesis profiles, and a loud way to need a backend."""

from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest
from support.backends import BACKENDS, BackendUnderTest
from support.sanitized import load_sanitized

from torchgbdt.core.backend import ComputeBackend

# "fast" runs with every `make test`: the same examples each time, so that a red run stays red.
# "slow" searches: pytest --hypothesis-profile=slow; it prints what reproduces a failure.
hypothesis.settings.register_profile(
    "fast", max_examples=25, derandomize=True, database=None, deadline=None
)
hypothesis.settings.register_profile("slow", max_examples=1000, print_blob=True, deadline=None)
hypothesis.settings.load_profile("fast")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require-backend",
        action="append",
        default=[],
        metavar="NAME",
        help="fail, instead of skipping, where a test needs backend NAME and it cannot run here",
    )
    parser.addoption(
        "--exhaustive",
        action="store_true",
        help="try every float32 number, fit 1,000 times and take all backends where a test does "
        "some; takes minutes",
    )
    parser.addoption(
        "--sanitized-module",
        nargs=2,
        metavar=("FILE", "SANITIZERS"),
        help="test this build of torchgbdt._native; fail unless it was made with -fsanitize=...",
    )


def pytest_configure(config: pytest.Config) -> None:
    sanitized = config.getoption("--sanitized-module")
    if sanitized is not None:
        load_sanitized(Path(sanitized[0]), sanitized[1])
    required = config.getoption("--require-backend")
    if required:
        from torchgbdt.backends import available

        unknown = sorted(set(required) - set(available()))
        if unknown:
            raise pytest.UsageError(
                f"--require-backend: no backend is called {', '.join(unknown)}; "
                f"there are {', '.join(available())}"
            )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what ``BackendUnderTest.is_second`` says; pytest counts it as deselected."""
    if config.getoption("--exhaustive"):
        return
    second = [one for one in items if _is_second(one) and one.get_closest_marker("core_laws")]
    config.hook.pytest_deselected(items=second)
    left_out = set(second)
    items[:] = [one for one in items if one not in left_out]


def _is_second(item: pytest.Item) -> bool:
    parameters = item.callspec.params if hasattr(item, "callspec") else {}
    backend = parameters.get("under_test")
    return isinstance(backend, BackendUnderTest) and backend.is_second


def pytest_runtest_setup(item: pytest.Item) -> None:
    if item.get_closest_marker("mps") is not None:
        _need_backend(item.config, "mps")


@pytest.fixture(scope="session")
def need_backend(pytestconfig: pytest.Config) -> Callable[[BackendUnderTest], None]:
    """Skip where a backend cannot run here; fail instead if --require-backend names it."""

    def need(one: BackendUnderTest) -> None:
        if not one.runs_here:
            _need_backend(pytestconfig, one.name)

    return need


def _need_backend(config: pytest.Config, name: str) -> None:
    from torchgbdt.backends import available

    reason = available().get(name, "it is not built yet")
    if reason is None:
        return
    if name in config.getoption("--require-backend"):
        pytest.fail(f"backend {name!r} is required and cannot run here: {reason}", pytrace=False)
    pytest.skip(f"backend {name!r} cannot run here: {reason}")


@pytest.fixture(scope="session", params=BACKENDS, ids=lambda one: one.id)
def under_test(
    request: pytest.FixtureRequest, need_backend: Callable[[BackendUnderTest], None]
) -> BackendUnderTest:
    """Each backend of the contract suite in turn."""
    one: BackendUnderTest = request.param
    need_backend(one)
    return one


@pytest.fixture
def backend(under_test: BackendUnderTest) -> Iterator[ComputeBackend]:
    """A fresh backend; its run, if any, is released afterwards."""
    one = under_test.make()
    yield one
    one.release()

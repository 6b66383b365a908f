"""What tests on hardware share."""

from collections.abc import Callable

import pytest


@pytest.fixture
def print_report(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Print in spite of pytest: times and counters are told, never asserted."""

    def report(text: str) -> None:
        with capsys.disabled():
            print(f"\n{text}")

    return report

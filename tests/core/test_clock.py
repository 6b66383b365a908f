"""The phase clock adds up seconds by name, whatever happens inside."""

import time

import pytest

from torchgbdt.core.clock import PhaseClock


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A list of times that the clock reads one after the other."""
    times: list[float] = []
    monkeypatch.setattr(time, "perf_counter", lambda: times.pop(0))
    return times


def test_a_phase_that_never_ran_has_no_entry() -> None:
    assert PhaseClock().seconds == {}


def test_a_phase_counts_the_seconds_of_its_block(ticking: list[float]) -> None:
    ticking += [10.0, 12.5]
    clock = PhaseClock()
    with clock.phase("binning"):
        assert clock.seconds == {}
    assert clock.seconds == {"binning": 2.5}


def test_repeated_phases_add_up_and_others_stay_apart(ticking: list[float]) -> None:
    ticking += [0.0, 1.0, 5.0, 7.0, 10.0, 14.0]
    clock = PhaseClock()
    for name in ("gradients", "histograms", "gradients"):
        with clock.phase(name):
            pass
    assert clock.seconds == {"gradients": 5.0, "histograms": 2.0}


def test_a_block_that_raises_is_counted_and_raises_on(ticking: list[float]) -> None:
    ticking += [1.0, 4.0]
    clock = PhaseClock()
    with pytest.raises(KeyError, match="inside"), clock.phase("evaluate"):
        raise KeyError("inside")
    assert clock.seconds == {"evaluate": 3.0}


def test_two_clocks_share_nothing(ticking: list[float]) -> None:
    ticking += [0.0, 1.0]
    with PhaseClock().phase("binning"):
        pass
    assert PhaseClock().seconds == {}

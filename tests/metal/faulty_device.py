"""A device some of whose dispatches go wrong without a word, as with torch when a GPU fails."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from metal.emulator.device import EmulatedDevice, EmulatedLibrary

Dispatch = Callable[[], None]


@cache
def _emulated(source: str) -> EmulatedLibrary:
    return EmulatedDevice().compile_shader(source)


class FaultyDevice:
    """Runs kernels in the emulator, but for what ``faults`` says.

    Attributes
    ----------
    calls : names of the kernels of all dispatches so far.
    faults : number of a dispatch -> what is done with it, given itself and its tensors.
    late : dispatches that are still to run, behind the next one.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.faults: dict[int, Callable[[FaultyDevice, Dispatch, list[torch.Tensor]], None]] = {}
        self.late: list[Dispatch] = []

    def restart(self, faults: dict[int, Any]) -> None:
        """Count from 0, with these faults."""
        self.calls, self.faults, self.late = [], faults, []

    def compile_shader(self, source: str) -> "_FaultyLibrary":
        """As ``torch.mps.compile_shader``."""
        return _FaultyLibrary(_emulated(source), self)

    def dispatch(self, name: str, run: Dispatch, tensors: list[torch.Tensor]) -> None:
        """Do, or fail to do, the next dispatch."""
        fault = self.faults.get(len(self.calls))
        self.calls.append(name)
        late, self.late = self.late, []
        if fault is None:
            run()
        else:
            fault(self, run, tensors)
        for one in late:
            one()


class _FaultyLibrary:
    def __init__(self, library: EmulatedLibrary, device: FaultyDevice) -> None:
        self._library = library
        self._device = device

    def __getattr__(self, name: str) -> Callable[..., None]:
        kernel, device = getattr(self._library, name), self._device

        def call(*arguments: Any, **options: Any) -> None:
            tensors = [one for one in arguments if isinstance(one, torch.Tensor)]
            device.dispatch(name, lambda: kernel(*arguments, **options), tensors)

        return call


def lose(device: FaultyDevice, run: Dispatch, tensors: list[torch.Tensor]) -> None:
    """It does not run."""


def delay(device: FaultyDevice, run: Dispatch, tensors: list[torch.Tensor]) -> None:
    """It runs behind the next one, which sees what was there before."""
    device.late.append(run)


def corrupt(tensor: int, word: int, bit: int = 0) -> Any:
    """It runs, and one bit of what it wrote is turned over; ``tensor`` : among its tensors."""

    def turn_over(device: FaultyDevice, run: Dispatch, tensors: list[torch.Tensor]) -> None:
        run()
        words = tensors[tensor].view(-1).view(torch.int32)
        words[word % words.shape[0]] ^= 1 << bit

    return turn_over

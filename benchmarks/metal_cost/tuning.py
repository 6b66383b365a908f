"""What the model says of MetalTuning: every choice gives the same trees."""

from dataclasses import dataclass, replace
from itertools import product

from metal_cost.cases import Case
from metal_cost.devices import Device
from torchgbdt.backends.metal_run import MetalTuning

WANTED_GROUPS = (1_024, 128, 256, 512, 2_048, 4_096)
HISTOGRAM_ROWS = (16_384, 2_048, 4_096, 8_192, 32_768, 65_536)
"""The default first: it is kept where others are no better."""


@dataclass(frozen=True)
class Choice:
    """A tuning and its predicted seconds per tree."""

    tuning: MetalTuning
    seconds: float


def best_choice(case: Case, device: Device, atomic_rate: float) -> tuple[Choice, Choice]:
    """The default, and the fastest of the grid."""
    default = case.default_tuning()
    tunings = [
        replace(default, wanted_groups=groups, histogram_rows=rows)
        for groups, rows in product(WANTED_GROUPS, HISTOGRAM_ROWS)
    ]
    choices = [
        Choice(tuning, case.predict(device, atomic_rate, tuning).seconds)
        for tuning in [default, *tunings]
    ]
    return choices[0], min(choices, key=lambda choice: choice.seconds)

"""Published figures of Apple's GPUs, and what is assumed of all of them; nothing is measured."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    """One GPU.

    Attributes
    ----------
    bandwidth : bytes per second, as published.
    cores : GPU cores.
    clock : cycles per second.
    """

    name: str
    bandwidth: float
    cores: int
    clock: float


# Bandwidth and cores: Apple's announcements, as reported by notebookcheck.net and macrumors.com
# (M4 Max, 2024-10-30: 546 GB/s, 40 cores), blog.patti.tech and propakistani.pk (M2 Ultra,
# 2023-06-05: 800 GB/s, up to 76 cores); M1: LPDDR4X-4266 and 8 cores (askgeek.io), on 128 bits
# (from memory), so 16 bytes * 4.267 GHz = 68.3 GB/s.
# Clocks: philipturner/metal-benchmarks (M1 1278 MHz, M2 family 1398 MHz); hmc-tech.com has 1578 MHz
# for the M4's GPU. That the M4 Max runs at the clock of the M4, and that there is an M2 Ultra with
# 60 cores at the same bandwidth, are from memory.
DEVICES = (
    Device("M1, 8 cores", 68.3e9, 8, 1.278e9),
    Device("M2 Ultra, 60 cores", 800e9, 60, 1.398e9),
    Device("M2 Ultra, 76 cores", 800e9, 76, 1.398e9),
    Device("M4 Max, 40 cores", 546e9, 40, 1.578e9),
)

BANDWIDTH_SHARE = 0.7
"""Of the published bandwidth that kernels get: an assumption."""

LINE_BYTES = 128
"""What memory moves at least, as is said to follow from philipturner/metal-benchmarks; traffic.h
counts such lines. ferasboulala/G13 found 32 bytes on an M1 Max: gathered words would then cost
less than half of what they do here."""

ATOMIC_RATES = (2.0, 4.0, 8.0)
"""Additions to threadgroup memory per clock and core, over all lanes. Nobody has published one: the
unknown of this model. Lanes that meet in a bank are in it: 32 banks would make it about 9 with
uniform bins."""

PLAIN_RATE = 32.0
"""Loads and stores of threadgroup memory per clock and core: one per bank, an assumption."""

DEVICE_ATOMIC_RATE = 1.0
"""Atomics of device memory per clock, all cores together: an assumption for a few addresses that
all simdgroups join their extremes in."""

INTEGER_RATE = 128.0
"""Additions and logic of 32-bit integers per clock and core (philipturner/metal-benchmarks)."""

SYNCHRONIZATION_SECONDS = 222e-6
"""A small torch operation took 245 us with a synchronisation and 22.7 us without one
(pytorch/pytorch#152199)."""

DISPATCH_SECONDS = 22.7e-6
"""The same: until torch has queued one operation. Work starts when the host waits for it, so the
two do not overlap."""

INSTRUCTIONS = {
    ("build_histograms", "cells"): 12.0,  # codes, place of the cell, carry: per row and feature
    ("scan_splits", "cells"): 250.0,  # per node and bin: long sums, two sides, double-float ranks
    ("update_predictions", "steps"): 20.0,  # per row and level
    ("compute_gradients", "rows"): 60.0,  # logistic, with exp; less for squared error
    ("round_gradients", "rows"): 30.0,
}
"""Integer and float instructions, counted by reading the kernels; good to a factor of two."""

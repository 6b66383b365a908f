"""The only tolerances of the test suite, each with its reason. Everything else is compared exactly.

Two laws of the design hold only up to rounding; see tests/contract/test_laws_up_to_rounding.py.
"""

REPEATED_ROWS = 2.0**-18
"""Relative to the largest |y - baseline|. A row of weight 2 and two rows of weight 1 give the same
sums of real numbers, but gradients are rounded on another scale (the largest weighted gradient is
larger) and float32(w * g) rounds: about 2^-24 per row and round, over some tens of them."""

OFFSET_ADDED = 2.0**-18
"""Relative to the largest |y - mean|. float64(y + offset) rounds y by 2^-53 * offset, and the
fitted baseline is rounded once; both shift labels by less than 2^-24 of their spread for the
offsets tested. float32 leaf values then differ by some ulps, over some tens of rounds."""

LOSS_RISE = 2.0**-20
"""Relative. A round lowers the squared loss by at least gain >= 0 in real numbers; float32 leaf
values, prediction sums and row losses round by 2^-24 each, so a loss near its floor may wander up
by a few of those."""

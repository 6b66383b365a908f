"""The only tolerances of the test suite, each with its reason. Everything else is compared exactly.

Three laws of the design hold only up to rounding; see tests/contract/test_laws_up_to_rounding.py.
tests/architecture/test_tolerances.py keeps others from appearing elsewhere.
"""

REPEATED_ROWS = 2.0**-21
"""Relative to the largest |y - mean|, for classes to the largest |raw prediction - baseline|. A row
of weight 2 and two rows of weight 1 give the same sums of real numbers, but gradients are rounded
on another scale (the largest weighted gradient is larger) and float32(w * g) rounds by 2^-25: ten
rounds stay below 2^-25 * 10 < 2^-21."""

OFFSET_ADDED = 2.0**-21
"""Relative to the largest |y - mean|. For offsets up to 1e9, float64(y + offset) and the fitted
baseline round by 2^-24 each, where y is about 1; float32 leaf values follow. Ten rounds at a
learning rate of 0.3 shrink that error as they shrink the residuals. So does a single round of full
steps to leaves of one row, which leaves only the rounding of float32(y - baseline), 2^-24."""

LOSS_RISE = 2.0**-23
"""Relative to the largest |y - baseline|. A round lowers the squared loss in real numbers, whatever
the learning rate <= 1; but a prediction sum rounds by 2^-25 of itself, so a loss that has reached
that floor may wander by as much."""

PORTABLE_MATH_ULPS = 0.9
"""Units in the last place of float32. Over all float32 numbers exp errs by at most 0.899 of them,
log and log1p by 0.888; see csrc/shared/portable_math.h. Only their distance from the real functions
is a matter of tolerance: implementations are compared bit for bit."""

RANDOM_COUNT = 5
"""Standard deviations that a count of random draws may lie from its mean. The draws are fixed by
their keys, so the count is one number: chance would put it further off once in two million."""

SAME_STEP = 2.0**-20
"""Of probabilities after one round beside scikit-learn's booster at the same step: both round
gradients to float32, 2^-24, and their sums of at most 150 of them; ours are exact from there on."""

COST_ARITHMETIC = 2.0**-40
"""Relative, of predicted costs: sums and quotients of a few float64 numbers, and least squares on
counters that are exact sums; 2^-53 each, times the condition of small systems."""

TOUCHED_LINES = 0.01
"""Relative: the expected number of memory lines that 100,000 random rows touch, beside one draw."""

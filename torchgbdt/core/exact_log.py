"""The natural logarithm of a rational number as a float64, computed in integers.

Baselines of classifiers are logarithms of quotients of exact sums. The log of a C library differs
from system to system in the last bit; integers do not.
"""

from fractions import Fraction

_GUARD_BITS = 128
"""Bits beyond the first one of the result. Each of at most a few hundred terms is off by less than
one unit, so about 115 of them hold: the rounding to 53 bits is that of the true value, unless it
lies within 2^-115 of itself to the middle of two float64."""


def exact_log(x: Fraction) -> float:
    """``ln x`` rounded to float64; ValueError unless x > 0.

    x = m * 2^e with m in [3/4, 3/2), and ln m = 2 artanh((m - 1) / (m + 1)).
    """
    if x <= 0:
        raise ValueError(f"x must be > 0; found {x}.")
    exponent = x.numerator.bit_length() - x.denominator.bit_length()
    mantissa = x / Fraction(2) ** exponent  # in (1/2, 2)
    if mantissa >= Fraction(3, 2):
        mantissa, exponent = mantissa / 2, exponent + 1
    elif mantissa < Fraction(3, 4):
        mantissa, exponent = mantissa * 2, exponent - 1
    # |ln x| >= |x - 1| / 2 >= 1 / (2 * denominator) where x is near 1
    bits = _GUARD_BITS + x.denominator.bit_length()
    log = 2 * _artanh((mantissa - 1) / (mantissa + 1), bits)
    log += exponent * 2 * _artanh(Fraction(1, 3), bits)
    return float(Fraction(log, 1 << bits))


def _artanh(z: Fraction, bits: int) -> int:
    """``artanh z = z + z^3/3 + z^5/5 + ...`` in units of 2^-bits; |z| <= 1/3."""
    power = (z.numerator << bits) // z.denominator
    square = (z.numerator**2 << bits) // z.denominator**2
    total, divisor = 0, 1
    while power not in (0, -1):  # floor division brings negative powers to -1
        total += power // divisor
        power = (power * square) >> bits
        divisor += 2
    return total

"""The logarithm of an exact number, as a fraction that is right to 2000 bits."""

from fractions import Fraction

import mpmath

BITS = 2000


def log(x: Fraction) -> Fraction:
    with mpmath.workprec(BITS):
        return _fraction(mpmath.log(mpmath.mpf(x.numerator) / x.denominator))


def _fraction(x: mpmath.mpf) -> Fraction:
    sign, mantissa, exponent, _ = x._mpf_
    return (-1) ** sign * int(mantissa) * Fraction(2) ** exponent

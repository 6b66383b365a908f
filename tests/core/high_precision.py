"""Elementary functions of exact numbers, as fractions that are right to 2000 bits."""

from fractions import Fraction

import mpmath

BITS = 2000


def exp(x: Fraction) -> Fraction:
    with mpmath.workprec(BITS):
        return _fraction(mpmath.exp(_mpf(x)))


def log(x: Fraction) -> Fraction:
    with mpmath.workprec(BITS):
        return _fraction(mpmath.log(_mpf(x)))


def _mpf(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


def _fraction(x: mpmath.mpf) -> Fraction:
    sign, mantissa, exponent, _ = x._mpf_
    return (-1) ** sign * int(mantissa) * Fraction(2) ** exponent

"""Thresholds as integers: devices flush subnormals, so they compare keys of numbers, never floats.

    x <= threshold   exactly if   key(x) <= threshold key

The key of a float is its magnitude's bits, negative for negative numbers, so -0 equals +0; that of
an integer is itself. csrc/metal/feature_keys.h reads X that way, with the constants given here.
Metal has no float64: the keys of such an X are made on the host.
"""

from dataclasses import dataclass

import numpy as np

from torchgbdt.core.arrays import AnyArray, Float64Array, Int64Array

_INTEGERS, _BOOLS, _FLOAT_BITS, _KEYS = range(4)
"""VALUE_KIND of csrc/metal/feature_keys.h."""

_MISSING_KEY = np.iinfo(np.int64).max
"""Of float64 NaN; no number has it."""


@dataclass(frozen=True)
class KeyForm:
    """How kernels read X of one dtype; see csrc/metal/feature_keys.h.

    Attributes
    ----------
    dtype : name of the dtype.
    value : Metal type of an element; for floats, the integer that holds its bits.
    key : Metal type of keys: int, or long where int does not reach beyond X's range.
    kind : what ``value`` holds.
    bits_of_infinity : of +inf in that float type; else 0.
    """

    dtype: str
    value: str
    key: str
    kind: int
    bits_of_infinity: int = 0

    def constants(self) -> dict[str, int | str]:
        """Constants of the kernels that read X."""
        return {
            "VALUE": self.value,
            "KEY": self.key,
            "VALUE_KIND": self.kind,
            "BITS_OF_INFINITY": self.bits_of_infinity,
        }

    def threshold_keys(self, thresholds: Float64Array) -> AnyArray:
        """Keys of the largest numbers of X's dtype that are <= the thresholds.

        Parameters
        ----------
        thresholds : float64, any shape, infinities included, no NaN. IN.

        Returns
        -------
        int32 or int64 as ``key`` says, same shape. Integers beyond 2^62 are cut off there: no X
        has them, as ``check_exact_integers`` sees to.
        """
        if self.kind == _KEYS:
            return float64_keys(thresholds)
        if self.kind == _FLOAT_BITS:
            return _keys_of_floats(thresholds, self.dtype).astype(np.int32)
        dtype, limit = (np.int32, 2.0**31 - 1) if self.key == "int" else (np.int64, 2.0**62)
        return np.clip(np.floor(thresholds), -limit, limit).astype(dtype)


def float64_keys(values: Float64Array) -> Int64Array:
    """Keys of float64 numbers, int64, same shape; that of NaN is the largest int64."""
    keys = _keys_of_bits(values.view(np.int64))
    return np.where(np.isnan(values), _MISSING_KEY, keys)


def _keys_of_floats(thresholds: Float64Array, dtype: str) -> AnyArray:
    """Keys of the largest numbers of a float dtype that are <= the thresholds; int64."""
    if dtype == "float16":
        return _keys_below(thresholds, np.float16, np.int16)
    keys = _keys_below(thresholds, np.float32, np.int32)
    # bfloat16 is the upper half of a float32; a shift rounds down, negative keys too.
    return keys >> 16 if dtype == "bfloat16" else keys


def _keys_below(
    thresholds: Float64Array, dtype: type[np.floating], bits: type[np.signedinteger]
) -> AnyArray:
    with np.errstate(over="ignore", under="ignore"):
        nearest = thresholds.astype(dtype)
    keys = _keys_of_bits(nearest.view(bits)).astype(np.int64)
    return keys - (nearest > thresholds)  # the next number below has the next key below


def _keys_of_bits(bits: AnyArray) -> AnyArray:
    """Signed integers of float bits -> keys, by the sign and the magnitude."""
    magnitude = bits & np.iinfo(bits.dtype).max
    return np.where(bits < 0, -magnitude, magnitude)


KEY_FORMS: dict[str, KeyForm] = {
    form.dtype: form
    for form in (
        KeyForm("float32", "int", "int", _FLOAT_BITS, bits_of_infinity=0x7F800000),
        KeyForm("float16", "short", "int", _FLOAT_BITS, bits_of_infinity=0x7C00),
        KeyForm("bfloat16", "short", "int", _FLOAT_BITS, bits_of_infinity=0x7F80),
        KeyForm("float64", "long", "long", _KEYS),
        KeyForm("bool", "uchar", "int", _BOOLS),
        KeyForm("int8", "char", "int", _INTEGERS),
        KeyForm("int16", "short", "int", _INTEGERS),
        KeyForm("int32", "int", "long", _INTEGERS),
        KeyForm("int64", "long", "long", _INTEGERS),
        KeyForm("uint8", "uchar", "int", _INTEGERS),
        KeyForm("uint16", "ushort", "int", _INTEGERS),
        KeyForm("uint32", "uint", "long", _INTEGERS),
        KeyForm("uint64", "ulong", "long", _INTEGERS),
    )
}
"""By name of X's dtype; of float64, the kernels read ``float64_keys``."""

"""Whether a device computes the bits that models of equal bits rest on.

    inputs --kernel conformance_probe--> words  ==  words that numpy computes here

One small dispatch, before anything is trained on a device. What may differ from device to device,
whether subnormal numbers are flushed, is reported; everything else must be equal.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from torchgbdt.backends.metal_library import MetalLibrary
from torchgbdt.core import portable_math
from torchgbdt.core.arrays import AnyArray, Float32Array, Int32Array, Int64Array
from torchgbdt.core.errors import BackendError, BackendUnavailableError

N_CASES = 256
"""Of each operation: one per thread of the one group that runs."""

SIMDGROUP_WIDTH = 32
"""What kernels assume."""

_NONCE = 0x5EED


@dataclass(frozen=True)
class Conformance:
    """What a device does in its own way: whether it flushes subnormal numbers to 0."""

    flushes_subnormals: bool


@dataclass(frozen=True)
class ProbeInputs:
    """Cases of the operations, (N_CASES,) each.

    Attributes
    ----------
    x, y, z : float32; normal, and so are x + y, x * y, x / y and x * y + z, or 0.
    special : float32, infinities and NaN among them.
    rounded : float32 within int32, halfway cases among them.
    exponent, positive : float32, what exp and log, log1p are asked.
    a, b : int64. shift : int32, 0..63.
    """

    x: Float32Array
    y: Float32Array
    z: Float32Array
    special: Float32Array
    rounded: Float32Array
    exponent: Float32Array
    positive: Float32Array
    a: Int64Array
    b: Int64Array
    shift: Int32Array

    def words(self) -> Int32Array:
        """All inputs in the order of the kernel; int32, (12, N_CASES)."""
        floats = (self.x, self.y, self.z, self.special, self.rounded, self.exponent, self.positive)
        integers = (*_halves(self.a), *_halves(self.b), self.shift)
        return np.stack([*(column.view(np.int32) for column in floats), *integers])


def check_conformance(library: MetalLibrary, device: torch.device) -> Conformance:
    """Run the probe on a device.

    Raises
    ------
    BackendUnavailableError : an operation gives other bits than here; it is named.
    BackendError : the probe did not run, or did not finish.
    """
    inputs = probe_inputs()
    expected = list(expected_words(inputs))
    results = torch.zeros((len(expected) + 2, N_CASES), dtype=torch.int32, device=device)
    in_device = torch.zeros(2, dtype=torch.int32, device=device)
    arguments = (torch.from_numpy(inputs.words()).to(device), results, in_device, _NONCE)
    library.kernel("conformance_probe")(*arguments, threads=N_CASES, group_size=N_CASES)
    words = results.cpu().numpy()
    if (words[-1] != _NONCE).any():
        raise BackendError(f"the conformance probe did not finish on {device}.")
    for (name, right), found in zip(expected, words, strict=False):
        _compare(name, right, found, device)
    largest, joined = in_device.cpu().numpy().reshape(2, 1)
    low = inputs.a.astype(np.uint32)
    _compare("atomic_fetch_max in device memory", _bits(low.max(keepdims=True)), largest, device)
    bits = np.bitwise_or.reduce(low & 0x5A5A5A5A, keepdims=True)
    _compare("atomic_fetch_or in device memory", _bits(bits), joined, device)
    return Conformance(flushes_subnormals=not words[-2].any())


def _compare(name: str, right: Int32Array, found: Int32Array, device: torch.device) -> None:
    wrong = np.flatnonzero(right != found)
    if wrong.size:
        case = int(wrong[0])
        words = [f"{int(word.view(np.uint32)):#010x}" for word in (found[case], right[case])]
        raise BackendUnavailableError(
            f"{device} computes {name} otherwise than other devices: {wrong.size} of {right.size} "
            f"cases differ, case {case} is {words[0]} and should be {words[1]}. Models would "
            f"differ; backend='cpu' trains on a copy of the data."
        )


@np.errstate(all="ignore")
def expected_words(inputs: ProbeInputs) -> Iterator[tuple[str, Int32Array]]:
    """Operations and what they should give, int32, (N_CASES,), in the order of the kernel."""
    x, y, z, a, b = inputs.x, inputs.y, inputs.z, inputs.a, inputs.b
    yield "float addition", _bits(x + y)
    yield "float multiplication", _bits(x * y)
    yield "float division", _bits(x / y)
    yield "x * y + z (it must not be fused)", _bits(x * y + z)
    exact = x.astype(np.float64) * y + z  # inputs are such that float64 rounds nothing
    yield "fma", _bits(exact.astype(np.float32))
    comparisons = (inputs.special < x, inputs.special > x, inputs.special == inputs.special)
    yield "comparison of floats", _flags(*comparisons)
    yield "rint", np.rint(inputs.rounded).astype(np.int32)
    yield "rounding by addition", _bits(np.rint(inputs.rounded))
    yield "conversion of float to int", inputs.rounded.astype(np.int32)
    yield "exp", _bits(portable_math.exp(inputs.exponent))
    yield "log", _bits(portable_math.log(inputs.positive))
    yield "log1p", _bits(portable_math.log1p(inputs.positive))
    yield from _expected_of_integers(a, b, inputs.shift)
    yield from _expected_of_groups(a.astype(np.uint32))


def _expected_of_integers(
    a: Int64Array, b: Int64Array, shift: Int32Array
) -> Iterator[tuple[str, Int32Array]]:
    low, other = a.astype(np.int32), b.astype(np.int32)
    wrapped, factor = a.view(np.uint64), b.view(np.uint64)
    yield "conversion of int to float", _bits((low >> 7).astype(np.float32))
    yield from _both_words("addition of longs", wrapped + factor)
    yield from _both_words("multiplication of longs", wrapped * factor)
    yield from _both_words("multiplication of ints as long", low.astype(np.int64) * other)
    yield from _both_words("left shift of longs", wrapped << shift.astype(np.uint64))
    yield from _both_words("right shift of longs", a >> shift.astype(np.int64))
    yield "comparison of longs", _flags(a < b, a == b, wrapped < factor)


def _expected_of_groups(word: AnyArray) -> Iterator[tuple[str, Int32Array]]:
    """Of uint32 words, one per thread."""
    lanes = np.arange(N_CASES, dtype=np.int32) % SIMDGROUP_WIDTH
    groups = word.reshape(-1, SIMDGROUP_WIDTH)
    sums = np.cumsum(groups, axis=1, dtype=np.uint32)
    from_below = np.concatenate((groups[:, :1], groups[:, :-1]), axis=1)
    following = np.roll(word, -1)
    total = int(word.sum(dtype=np.uint64))
    yield "the simdgroup width", _everywhere(SIMDGROUP_WIDTH)
    yield "the lane of a thread", lanes
    yield "simd_prefix_exclusive_sum", _bits((sums - groups).ravel())
    yield "simd_sum", _bits(np.repeat(sums[:, -1], SIMDGROUP_WIDTH))
    yield "simd_max", _bits(np.repeat(groups.max(axis=1), SIMDGROUP_WIDTH))
    yield "simd_shuffle", _bits(groups[:, (5 * lanes[:SIMDGROUP_WIDTH] + 3) % 32].ravel())
    yield "simd_shuffle_up", _bits(from_below.ravel())
    yield "what atomic_fetch_add returns in threadgroup memory", _bits(following)
    yield "atomic_fetch_add in threadgroup memory", _bits(word + np.roll(word, 1))
    yield "an atomic sum's low word", _everywhere(total & 0xFFFFFFFF)
    yield "the carries of an atomic sum", _everywhere(total >> 32)
    yield "atomic_fetch_max in threadgroup memory", _everywhere(int(word.max()))
    yield "atomic_fetch_min in threadgroup memory", _everywhere(int(word.min()))


def _everywhere(word: int) -> Int32Array:
    return _bits(np.full(N_CASES, word, np.uint32))


def _bits(values: AnyArray) -> Int32Array:
    return values.view(np.int32)


def _flags(*conditions: AnyArray) -> Int32Array:
    """Each condition in a bit of its own."""
    result = np.zeros(N_CASES, np.int32)
    for place, condition in enumerate(conditions):
        result |= condition.astype(np.int32) << place
    return result


def _halves(values: AnyArray) -> tuple[Int32Array, Int32Array]:
    """The low and the high word of 64-bit integers."""
    words = np.ascontiguousarray(values.astype("<i8")).view("<i4").reshape(-1, 2)
    return words[:, 0].astype(np.int32), words[:, 1].astype(np.int32)


def _both_words(name: str, values: AnyArray) -> Iterator[tuple[str, Int32Array]]:
    low, high = _halves(values.view(np.int64))
    yield f"{name} (low word)", low
    yield f"{name} (high word)", high


# --- inputs ---------------------------------------------------------------------------------------


def probe_inputs() -> ProbeInputs:
    """Awkward cases first, then random ones, the same in every process."""
    random = np.random.Generator(np.random.Philox(0))
    x, y = _floats(random, 30), _floats(random, 30)
    product = (x * y).astype(np.float32)
    z = -product  # what is left is the rounding error: 0 unless fused
    z[::2] *= random.choice(np.array([0.5, 1.0, 2.0], np.float32), N_CASES // 2)
    return ProbeInputs(
        x,
        y,
        z,
        special=_cases(_floats(random, 120), [np.nan, np.inf, -np.inf, 0.0, *x[4:8]]),
        rounded=_cases(_floats(random, 29), _HALFWAY),
        exponent=_cases(random.uniform(-90, 90, N_CASES), _EXPONENTS),
        positive=_cases(np.exp2(random.uniform(-126, 126, N_CASES)), _POSITIVE),
        a=_cases(random.integers(-(2**63), 2**63 - 1, N_CASES) >> _shifts(random), _INTEGERS),
        b=_cases(random.integers(-(2**63), 2**63 - 1, N_CASES) >> _shifts(random), _OTHERS),
        shift=_shifts(random).astype(np.int32),
    )


_HALFWAY = [0.0, 0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 0.49999997, 0.50000006, 4194303.5, -4194304.5]
_HALFWAY += [8388607.5, 8388608.0, -8388609.0, 16777216.0, 2147483520.0, -2147483648.0]
"""Of rounding: ties, their neighbours, and where the fraction ends."""

_EXPONENTS = [0.0, -86.0, 88.7, 88.73, -87.3, -87.4, 1e-7, -1e-7, np.inf, -np.inf, np.nan]
_POSITIVE = [0.0, 1.0, 0.75, 1.5, 1e-7, 2.0**-126, 2.0**24, 3e38, np.inf, np.nan]

_INTEGERS = [2**24 + 1, 2**24 + 3, -(2**24) - 1, 2**31 - 1, -(2**31), 2**31, 2**32 - 1, 2**32]
_INTEGERS += [2**40 + 2**16, 2**40 + 2**16 + 1, 2**40 + 3 * 2**16, -(2**40) - 2**16, 2**53 + 1]
_INTEGERS += [2**62, 2**62 - 1, 2**63 - 1, -(2**63), 0, -1, 1]
"""Around powers of two: where words carry, and where floats run out of bits."""

_OTHERS = [1, -1, 1, 1, -1, -1, 1, -1, 2**31, -(2**31), 2**40, 2**40, 1, 2**62, -1, 1, -1, 0, -1, 1]


def _floats(random: np.random.Generator, largest_exponent: int) -> Float32Array:
    """Of all magnitudes up to 2^largest_exponent and down to its inverse, both signs."""
    mantissas = random.uniform(1, 2, N_CASES) * random.choice([-1.0, 1.0], N_CASES)
    exponents = random.integers(-largest_exponent, largest_exponent, N_CASES)
    result: Float32Array = np.ldexp(mantissas, exponents).astype(np.float32)
    return result


def _shifts(random: np.random.Generator) -> Int64Array:
    return random.integers(0, 64, N_CASES)


def _cases(values: AnyArray, first: Sequence[float]) -> AnyArray:
    """Values with the first ones replaced; float64 becomes float32."""
    result = values.astype(np.int64 if values.dtype == np.int64 else np.float32)
    result[: len(first)] = first
    return result

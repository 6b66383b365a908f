"""The conformance probe: a device that computes other bits is refused, and the operation named."""

import re

import numpy as np
import pytest
import torch
from metal.emulator.device import EmulatedDevice, EmulatorOptions
from metal.row_buffers import CHECKED, library_of

from torchgbdt.backends import conformance
from torchgbdt.backends.conformance import check_conformance
from torchgbdt.backends.metal_library import MetalLibrary, assemble
from torchgbdt.core.arrays import SMALLEST_NORMAL
from torchgbdt.core.errors import BackendError, BackendUnavailableError

CPU = torch.device("cpu")


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("flush", [False, True])
def test_a_device_conforms_and_tells_whether_it_flushes(seed: int | None, flush: bool) -> None:
    library = library_of(EmulatorOptions(shuffle_seed=seed, flush_subnormals=flush))
    assert check_conformance(library, CPU).flushes_subnormals == flush


def test_under_the_checks_of_the_emulator() -> None:
    check_conformance(library_of(CHECKED), CPU)


def altered(old: str, new: str) -> MetalLibrary:
    """A device on which one expression of the probe means something else."""

    def compile_shader(source: str):
        assert source.count(old) == 1
        return EmulatedDevice().compile_shader(source.replace(old, new))

    return MetalLibrary(compile_shader)


WRONG = {
    "float addition": ("add_float(x + y)", "add_float(x + y * 1.0000001f)"),
    "float multiplication": ("add_float(x * y)", "add_float(x * y * 1.0000001f)"),
    "float division": ("x / y", "x * (1.0f / y)"),
    "x * y + z (it must not be fused)": ("x * y + z", "fma(x, y, z)"),
    "fma": ("add_float(fma(x, y, z))", "add_float(x * y + z)"),
    "comparison of floats": ("special > x ? 2u", "!(special <= x) ? 2u"),
    "rint": ("(rint(rounded))", "(floor(rounded + 0.5f))"),
    "rounding by addition": ("(round_half_even(rounded))", "(round(rounded))"),
    "conversion of float to int": ("static_cast<int>(rounded)", "static_cast<int>(rint(rounded))"),
    "exp": ("q * r + 0.166665345f", "q * r + 0.166665375f"),
    "log": ("add_float(portable_log(positive))", "add_float(-portable_log(1.0f / positive))"),
    "log1p": ("portable_log1p(positive)", "portable_log(1.0f + positive)"),
    "conversion of int to float": ("(static_cast<float>(low))", "(static_cast<float>(low & ~1))"),
    "conversion of long to float": ("static_cast<float>(a)", "4294967296.0f * (a >> 32)"),
    "addition of longs (high word)": (
        "add_long(static_cast<ulong>(a) + static_cast<ulong>(b))",
        "add_long((static_cast<ulong>((a >> 32) + (b >> 32)) << 32) | static_cast<uint>(a + b))",
    ),
    "multiplication of longs (high word)": (
        "add_long(static_cast<ulong>(a) * static_cast<ulong>(b))",
        "add_long(static_cast<uint>(a * b))",
    ),
    "multiplication of ints as long (high word)": (
        "static_cast<long>(low) * other",
        "static_cast<int>(static_cast<uint>(low) * static_cast<uint>(other))",
    ),
    "left shift of longs (low word)": (
        "static_cast<ulong>(a) << shift",
        "static_cast<ulong>(static_cast<uint>(a) << (shift & 31))",
    ),
    "right shift of longs (low word)": ("a >> shift", "static_cast<ulong>(a) >> shift"),
    "comparison of longs": ("(a < b ? 1u : 0u)", "(low < other ? 1u : 0u)"),
    "the simdgroup width": ("found.add(width)", "found.add(width / 2)"),
    "the lane of a thread": ("found.add(lane)", "found.add(index)"),
    "simd_prefix_exclusive_sum": ("simd_prefix_exclusive_sum(word)", "simd_sum(word)"),
    "simd_sum": ("add(simd_sum(word))", "add(word)"),
    "simd_max": ("simd_max(word)", "simd_max(word & 0xffffu)"),
    "what atomic_fetch_add returns in threadgroup memory": (
        "found.add(atomic_fetch_add_explicit(&cells[other], word, memory_order_relaxed))",
        "found.add(atomic_fetch_add_explicit(&cells[other], word, memory_order_relaxed) + word)",
    ),
    "the carries of an atomic sum": ("before + word < word", "before < word"),
    "simd_shuffle": ("(5 * lane + 3) % 32", "(5 * lane + 4) % 32"),
    "simd_shuffle_up": ("lane == 0 ? word : from_below", "from_below + lane"),
    "atomic_fetch_max in threadgroup memory": ("smallest[0], word,", "smallest[0], word >> 1,"),
    "atomic_fetch_min in threadgroup memory": ("smallest[1], word,", "smallest[1], word | 1u,"),
    "atomic_fetch_max in device memory": ("in_device, word,", "in_device, word >> 1,"),
    "atomic_fetch_or in device memory": ("word & 0x5a5a5a5au", "word & 0x1a5a5a5au"),
}


@pytest.mark.parametrize("operation", WRONG)
def test_an_operation_that_differs_is_named(operation: str) -> None:
    with pytest.raises(BackendUnavailableError, match=re.escape(f"computes {operation} other")):
        check_conformance(altered(*WRONG[operation]), CPU)


def test_a_probe_that_does_nothing_is_no_proof() -> None:
    class Idle:
        def __getattr__(self, name: str):
            return lambda *arguments, **options: None

    with pytest.raises(BackendError, match="did not finish"):
        check_conformance(MetalLibrary(lambda source: Idle()), CPU)


def test_inputs_are_the_same_every_time_and_leave_no_subnormal_result() -> None:
    inputs, again = conformance.probe_inputs(), conformance.probe_inputs()
    assert (inputs.words() == again.words()).all()
    for result in (inputs.x + inputs.y, inputs.x * inputs.y, inputs.x / inputs.y):
        assert (np.abs(result) >= SMALLEST_NORMAL).all()


def test_the_kernel_takes_no_constants() -> None:
    assert "#define" not in assemble("conformance_probe", {})

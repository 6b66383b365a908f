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
    "float division": ("x / y", "x * (1.0f / y)"),
    "x * y + z (it must not be fused)": ("x * y + z", "fma(x, y, z)"),
    "fma": ("add_float(fma(x, y, z))", "add_float(x * y + z)"),
    "comparison of floats": ("special > x ? 2u", "!(special <= x) ? 2u"),
    "rint": ("(rint(rounded))", "(floor(rounded + 0.5f))"),
    "exp": ("q * r + 0.166665345f", "q * r + 0.166665375f"),
    "conversion of int to float": ("float>(low >> 7)", "float>((low >> 7) & ~1)"),
    "multiplication of longs (high word)": (
        "add_long(static_cast<ulong>(a) * static_cast<ulong>(b))",
        "add_long(static_cast<uint>(a * b))",
    ),
    "right shift of longs (low word)": ("a >> shift", "static_cast<ulong>(a) >> shift"),
    "simd_prefix_exclusive_sum": ("simd_prefix_exclusive_sum(word)", "simd_sum(word)"),
    "what atomic_fetch_add returns in threadgroup memory": (
        "found.add(atomic_fetch_add_explicit(&cells[other], word, memory_order_relaxed))",
        "found.add(atomic_fetch_add_explicit(&cells[other], word, memory_order_relaxed) + word)",
    ),
    "the carries of an atomic sum": ("before + word < word", "before < word"),
    "atomic_fetch_max in device memory": ("in_device, word,", "in_device, word >> 1,"),
    "atomic_fetch_or in device memory": ("word & 0x5a5a5a5au", "word & 0x1a5a5a5au"),
}


@pytest.mark.parametrize("operation", WRONG)
def test_an_operation_that_differs_is_named(operation: str) -> None:
    with pytest.raises(BackendUnavailableError, match=re.escape(f"computes {operation} other")):
        check_conformance(altered(*WRONG[operation]), CPU)


OPERATIONS = [name for name, _ in conformance.expected_words(conformance.probe_inputs())]


@pytest.mark.parametrize("row", range(len(OPERATIONS)), ids=OPERATIONS)
def test_one_wrong_bit_of_one_case_is_seen(row: int) -> None:
    class Device:
        def __init__(self, source: str) -> None:
            self.library = EmulatedDevice().compile_shader(source)

        def conformance_probe(self, inputs, results, *arguments, **options) -> None:
            self.library.conformance_probe(inputs, results, *arguments, **options)
            results[row, 255] ^= 1

    with pytest.raises(BackendUnavailableError, match=re.escape(f"computes {OPERATIONS[row]} ")):
        check_conformance(MetalLibrary(Device), CPU)


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

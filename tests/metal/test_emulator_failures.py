"""Kernels that must not run to their end: each is a RuntimeError, and the next kernel runs."""

import pytest
import torch
from metal.emulator.device import EmulatedDevice, EmulatedLibrary, EmulatorOptions

SOURCE = """
#include <metal_stdlib>
using namespace metal;

kernel void sound(device uint* out, uint i [[thread_position_in_grid]]) {
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = 100u + i;
}
kernel void one_ends(device uint* out, uint i [[thread_position_in_grid]]) {
    if (i == 21u) {
        return;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);  // not all come
    out[i] = i;
}
kernel void first_ends(device uint* out, uint i [[thread_position_in_grid]]) {
    if (i > 0u) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    out[i] = i;
}
kernel void two_barriers(device uint* out, uint i [[thread_position_in_grid]]) {
    if (i < 5u) {
        threadgroup_barrier(mem_flags::mem_threadgroup);  // some here
    } else {
        threadgroup_barrier(mem_flags::mem_threadgroup);  // some there
    }
    out[i] = i;
}
kernel void simd_or_barrier(device uint* out, uint i [[thread_position_in_grid]]) {
    if (i < 5u) {
        out[i] = simd_sum(i);
    } else {
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
}
kernel void two_simd_functions(device uint* out, uint i [[thread_position_in_grid]]) {
    if (i < 5u) {
        out[i] = simd_sum(i);
    } else {
        out[i] = simd_max(i);
    }
}
kernel void no_such_lane(device uint* out, uint i [[thread_position_in_grid]]) {
    out[i] = simd_shuffle(i, ushort(lanes_read()));
}
kernel void float_in_threadgroup(device float* out, uint i [[thread_position_in_grid]]) {
    threadgroup atomic_float sum;
    atomic_fetch_add_explicit(&sum, 1.0f, memory_order_relaxed);
    out[i] = atomic_load_explicit(&sum, memory_order_relaxed);
}
kernel void long_in_threadgroup(device float* out, uint i [[thread_position_in_grid]]) {
    threadgroup atomic_ulong largest;
    atomic_max_explicit(&largest, 5ul, memory_order_relaxed);
    out[i] = 1.0f;
}
kernel void far_away(device uint* out, uint i [[thread_position_in_grid]]) {
    out[1l << 40] = 1u;
}
kernel void division_by_zero(device uint* out, uint i [[thread_position_in_grid]]) {
    out[i] = 7u / out[i];
}
kernel void endless(device uint* out, uint i [[thread_position_in_grid]]) {
    volatile uint one = 1u;
    while (one == 1u) {
        one = 1u;
    }
    out[i] = i;
}
kernel void endless_barriers(device uint* out, uint i [[thread_position_in_grid]]) {
    while (true) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
}
uint deeper(uint n) {
    volatile uint numbers[64];
    numbers[n % 64u] = n;
    return n == 0u ? 0u : deeper(n - 1u) + numbers[n % 64u];
}
kernel void bottomless(device uint* out, uint i [[thread_position_in_grid]]) {
    out[i] = deeper(1000000u);
}
""".replace("lanes_read()", "36u")

FAILURES = {
    "one_ends": r"thread \(\d+, 0, 0\).* at line 13: threadgroup_barrier.*// not all come",
    "first_ends": "but thread .* of the group (has ended|waits at a barrier of line 18); in",
    "two_barriers": "a barrier, but thread .* of the group waits at a barrier of line (24|26); in",
    "simd_or_barrier": "but thread .* waits",
    "two_simd_functions": "a simd function, but thread .* waits in a simd function of line",
    "no_such_lane": "reads from a lane that is not there; in group .* simd_shuffle",
    "float_in_threadgroup": "an atomic type that threadgroup memory cannot have",
    "long_in_threadgroup": "an atomic type that threadgroup memory cannot have",
    "far_away": "memory that is not there",
    "division_by_zero": "divides an integer by 0",
    "endless": "does not end in the time",
    "endless_barriers": "does not end in the time",
    "bottomless": "memory that is not there",
}

OPTIONS = {
    "ascending": EmulatorOptions(max_seconds=0.2),
    "shuffled": EmulatorOptions(max_seconds=0.2, shuffle_seed=3),
    "ucontext": EmulatorOptions(max_seconds=0.2, ucontext=True),
}


@pytest.fixture(scope="module", params=OPTIONS.values(), ids=OPTIONS)
def library(request: pytest.FixtureRequest) -> EmulatedLibrary:
    return EmulatedDevice(request.param).compile_shader(SOURCE)


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_is_an_error_and_leaves_no_trace(library: EmulatedLibrary, name: str) -> None:
    out = torch.zeros(40, dtype=torch.int32)
    with pytest.raises(RuntimeError, match=FAILURES[name]) as caught:
        getattr(library, name)(out, threads=40, group_size=40)
    assert str(caught.value).startswith(f"kernel {name!r}: ")
    library.sound(out, threads=40, group_size=40)
    assert out.tolist() == list(range(100, 140))


def test_a_failure_says_which_group_and_thread(library: EmulatedLibrary) -> None:
    out = torch.zeros(40, dtype=torch.int32)
    with pytest.raises(RuntimeError, match=r"in group \(2, 0, 0\), thread \(\d, 0, 0\)"):
        library.one_ends(out, threads=40, group_size=10)


REFUSED = {
    "unknown name": (
        "device uint* out",
        "out[0] = unknown;",
        "'unknown'",
    ),
    "more than 32 KB": (
        "device uint* out",
        "threadgroup uint a[4096]; threadgroup uint b[4097]; a[0] = b[0] = 1u;",
        "threadgroup memory exceeds 32768 bytes",
    ),
    "a thread named thread": ("uint thread [[thread_position_in_grid]]", "", "cannot read"),
    "no address space": ("uint* out", "", "needs device or constant"),
    "dynamic memory": ("threadgroup uint* a [[threadgroup(0)]]", "", "dynamic threadgroup memory"),
    "a buffer twice": (
        "device uint* a [[buffer(0)]], device uint* b [[buffer(0)]]",
        "",
        "is not free",
    ),
    "buffer 31": ("device uint* a [[buffer(31)]]", "", "is not free"),
    "unknown attribute": ("uint i [[thread_position]]", "", "no known attribute"),
    "writing a constant": ("constant int& n", "n = 1;", "read-only|const"),
    "writing device const": ("device const int* n", "n[0] = 1;", "read-only|const"),
    "simd of 64 bits": ("device long* a", "a[0] = simd_sum(a[1]);", "64-bit"),
    "simd of bool": ("device bool* a", "a[0] = simd_shuffle(a[1], 0u);", "bool"),
    "float sum": ("device float* a", "a[0] = simd_sum(a[1]);", "not here"),
    "another memory order": (
        "device atomic_uint* a",
        "atomic_store_explicit(a, 1u, memory_order_seq_cst);",
        "memory_order_seq_cst",
    ),
    "atomic without explicit": ("device atomic_uint* a", "a[0] = 1u;", "deleted|no match|operator"),
    "reading an atomic": ("device atomic_uint* a", "uint b = a[0];", "cannot convert|conversion"),
    "64-bit atomic add": (
        "device atomic_ulong* a",
        "atomic_fetch_add_explicit(a, 1ul, memory_order_relaxed);",
        "of this type",
    ),
    "exp": ("device float* a", "a[0] = exp(a[1]);", "exp"),
    "text": ("device char* a", "a[0] = 'ä';", "not ASCII"),
}


@pytest.mark.parametrize(("parameters", "body", "message"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_compile_is_a_syntax_error(parameters: str, body: str, message: str) -> None:
    source = f"""#include <metal_stdlib>
using namespace metal;
kernel void refused({parameters}) {{
    {body}
}}
"""
    with pytest.raises(SyntaxError, match=message) as caught:
        EmulatedDevice().compile_shader(source)
    assert "kernel.metal:" in str(caught.value) or "ASCII" in message


def test_threadgroup_variables_belong_to_kernels() -> None:
    source = "void helper() {\n    threadgroup int a[4];\n}\n"
    with pytest.raises(SyntaxError, match=r"kernel.metal:2: error: threadgroup variables belong"):
        EmulatedDevice().compile_shader(source)

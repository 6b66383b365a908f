"""What the checked build finds: a fault planted in a kernel, and the kernel without it."""

import pytest
import torch
from metal.emulator.device import EmulatedDevice, EmulatedLibrary, EmulatorOptions

CHECKED = EmulatorOptions(shuffle_seed=5, checked=True)

# Parts that a test may replace are named by macros.
KERNEL = """
#include <metal_stdlib>
using namespace metal;

[[max_total_threads_per_threadgroup(64)]] kernel void reverse(
    device const uint* numbers [[buffer(0)]],
    device uint* reversed [[buffer(1)]],
    constant int* bounds [[buffer(2)]],
    uint group [[threadgroup_position_in_grid]],
    uint index [[thread_index_in_threadgroup]]) {
    threadgroup uint before[64];
    threadgroup atomic_uint total;
    threadgroup uint after[64];
    if (index == 0u) {
        ZERO_TOTAL;
    }
    before[index WRITE_OFFSET] = (numbers READ_START)[group * 64u + index READ_OFFSET];
    after[63u - index] = index;
    FIRST_BARRIER;
    atomic_fetch_add_explicit(&total, 1u, memory_order_relaxed);
    const uint value = before[63u - index];
    threadgroup_barrier(mem_flags::mem_threadgroup);
    TOTAL_AGAIN;
    if (atomic_load_explicit(&total, memory_order_relaxed) == uint(bounds[0])) {
        reversed[group * 64u + index OUT_OFFSET] = value + after[index] - (63u - index);
    }
    AT_THE_END;
}
"""

SOUND = {
    "ZERO_TOTAL": "atomic_store_explicit(&total, 0u, memory_order_relaxed)",
    "WRITE_OFFSET": "",
    "READ_START": "",
    "READ_OFFSET": "",
    "OUT_OFFSET": "",
    "FIRST_BARRIER": "threadgroup_barrier(mem_flags::mem_threadgroup)",
    "TOTAL_AGAIN": "",
    "AT_THE_END": "",
}

# What is replaced, and what the failure says.
FAULTS = {
    "missing barrier": ({"FIRST_BARRIER": ""}, "threadgroup memory|reads threadgroup memory"),
    "barrier for other memory": (
        {"FIRST_BARRIER": "threadgroup_barrier(mem_flags::mem_device)"},
        r"race: (reads|writes) what .* touches since the last barrier for it, in '(before|after)'",
    ),
    "barrier for no memory": (
        {"FIRST_BARRIER": "threadgroup_barrier(mem_flags::mem_none)"},
        "race: (reads|writes)",
    ),
    "not initialised": (
        {"ZERO_TOTAL": ""},
        "reads threadgroup memory that nobody has written: 'total'",
    ),
    "plain and atomic": (
        {"TOTAL_AGAIN": "((threadgroup uint*)&total)[0] = 64u"},
        "race: .*'total'",
    ),
    "one element past a threadgroup array": (
        {"WRITE_OFFSET": "+ 1u"},
        "writes 4 bytes out of bounds, at byte 256 of the threadgroup array 'before' of 256 bytes",
    ),
    "one element before a buffer": (
        {"READ_START": "- 1"},
        r"reads 4 bytes out of bounds, at byte -4 of buffer\(0\) of 512 bytes",
    ),
    "an index below 0": (
        {"READ_OFFSET": "- 1u"},
        "reads 4 bytes out of bounds, far from all buffers",
    ),
    "one element past a buffer that is written": (
        {"OUT_OFFSET": "+ 1u"},
        r"writes 4 bytes out of bounds, at byte 512 of buffer\(1\) of 512 bytes",
    ),
    "one word past a list": (
        {"TOTAL_AGAIN": "if (bounds[1] == 7) { return; }"},
        r"reads 4 bytes out of bounds, at byte 4 of buffer\(2\) of 4 bytes",
    ),
    "device const is written": (
        {"AT_THE_END": "((device uint*)numbers)[group * 64u + index] = 0u"},
        r"writes buffer\(0\), which it may only read",
    ),
    "constant is written": (
        {"AT_THE_END": "((device int*)bounds)[0] = 0"},
        r"writes buffer\(2\), which it may only read",
    ),
    "groups exchange": (
        {"AT_THE_END": "if (group == 1u && index == 0u) { reversed[64] = reversed[0]; }"},
        r"race: (reads|writes) what another group touches in the same dispatch, in buffer\(1\)",
    ),
    "groups write the same": (
        {"AT_THE_END": "if (index == 0u) { reversed[0] = 1u; }"},
        r"race: writes what .* touches .*, in buffer\(1\)",
    ),
    "one group adds, the other reads": (
        {
            "AT_THE_END": "if (index == 0u) { device atomic_uint* one = (device atomic_uint*)"
            "reversed; if (group == 0u) { reversed[70] = 1u; } else { "
            "atomic_fetch_add_explicit(one, 1u, memory_order_relaxed); } }"
        },
        r"race: .* another group .*, in buffer\(1\)",
    ),
}


def library_with(changes: dict[str, str]) -> EmulatedLibrary:
    constants = {**SOUND, **changes}
    defines = "".join(f"#define {name} {value}\n" for name, value in constants.items())
    return EmulatedDevice(CHECKED).compile_shader(defines + KERNEL)


def reversed_groups(library: EmulatedLibrary) -> list[int]:
    numbers = torch.arange(128, dtype=torch.int32)
    result = torch.zeros(128, dtype=torch.int32)
    library.reverse(numbers, result, [64], threads=128, group_size=64, arg_casts="int32")
    return result.tolist()


def test_a_sound_kernel_passes() -> None:
    assert reversed_groups(library_with({})) == [*range(63, -1, -1), *range(127, 63, -1)]


@pytest.mark.parametrize(("changes", "message"), FAULTS.values(), ids=FAULTS)
def test_a_fault_is_found(changes: dict[str, str], message: str) -> None:
    with pytest.raises(RuntimeError, match=message) as caught:
        reversed_groups(library_with(changes))
    assert "kernel 'reverse': " in str(caught.value)
    assert " at line " in str(caught.value)


# Each thread reads what the next one wrote: in its simdgroup, or in the next simdgroup.
HAND_OVER = """
#include <metal_stdlib>
using namespace metal;
kernel void hand_over(device uint* first, device uint* second, device uint* out,
                      uint i [[thread_index_in_threadgroup]]) {
    threadgroup uint words[64];
    words[i] = i;
    first[i] = i;
    ORDER;
    out[i] = READ;
}
"""
NEXT_LANE = "(i ^ 1u)"
NEXT_SIMDGROUP = "(i ^ 32u)"


@pytest.mark.parametrize(
    ("barrier", "memory", "next_one", "is_sound"),
    [
        ("threadgroup_barrier(mem_flags::mem_threadgroup)", "words", NEXT_SIMDGROUP, True),
        ("threadgroup_barrier(mem_flags::mem_threadgroup)", "first", NEXT_SIMDGROUP, False),
        ("threadgroup_barrier(mem_flags::mem_device)", "first", NEXT_SIMDGROUP, True),
        ("simdgroup_barrier(mem_flags::mem_threadgroup)", "words", NEXT_LANE, True),
        ("simdgroup_barrier(mem_flags::mem_threadgroup)", "first", NEXT_LANE, False),
        ("simdgroup_barrier(mem_flags::mem_device)", "first", NEXT_LANE, True),
        ("simdgroup_barrier(mem_flags::mem_threadgroup)", "words", NEXT_SIMDGROUP, False),
        ("second[i] = simd_sum(i)", "first", NEXT_LANE, False),
    ],
)
def test_what_a_barrier_orders(barrier: str, memory: str, next_one: str, is_sound: bool) -> None:
    source = f"#define ORDER {barrier}\n#define READ {memory}[{next_one}]\n{HAND_OVER}"
    library = EmulatedDevice(CHECKED).compile_shader(source)
    first, second, out = torch.zeros(3, 64, dtype=torch.int32)
    if is_sound:
        library.hand_over(first, second, out)
        assert out.tolist() == [i ^ (1 if next_one == NEXT_LANE else 32) for i in range(64)]
    else:
        # Who comes first fails: the writer, or the reader of words that nobody has written yet.
        with pytest.raises(RuntimeError, match=r"race|nobody has written"):
            library.hand_over(first, second, out)


def test_views_of_one_tensor_are_bounded_each() -> None:
    source = """kernel void shift(device const int* a, device int* b, constant int& by,
                                  uint i [[thread_position_in_grid]]) { b[i] = a[int(i) + by]; }"""
    library = EmulatedDevice(CHECKED).compile_shader(source)
    storage = torch.arange(10, dtype=torch.int32)
    library.shift(storage[:4], storage[4:8], 0, threads=4, arg_casts="int32")
    assert storage.tolist() == [0, 1, 2, 3, 0, 1, 2, 3, 8, 9]
    with pytest.raises(RuntimeError, match=r"at byte 16 of buffer\(0\) of 16 bytes"):
        library.shift(storage[:4], storage[4:8], 1, threads=4, arg_casts="int32")
    # Overlapping views are one memory: here a thread reads what another writes.
    with pytest.raises(RuntimeError, match="race"):
        library.shift(storage[:4], storage[1:5], 0, threads=4, arg_casts="int32")

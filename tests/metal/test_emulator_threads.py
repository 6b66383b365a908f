"""Threads of a group: barriers, threadgroup memory, simdgroups, and the order they run in."""

import pytest
import torch
from metal.emulator.device import EmulatedDevice, EmulatedLibrary, EmulatorOptions

OPTIONS = {
    "ascending": EmulatorOptions(),
    "shuffled": EmulatorOptions(shuffle_seed=7),
    "ucontext": EmulatorOptions(shuffle_seed=7, ucontext=True),
    "checked": EmulatorOptions(shuffle_seed=7, checked=True),
    "c++17": EmulatorOptions(standard="c++17"),
}

SOURCE = """
#include <metal_stdlib>
using namespace metal;
#define N_CELLS 64

kernel void count(device const uint* codes [[buffer(0)]],
                  device uint* counts [[buffer(1)]],
                  constant int& n_rows [[buffer(2)]],
                  uint row [[thread_position_in_grid]],
                  uint group [[threadgroup_position_in_grid]],
                  uint index [[thread_index_in_threadgroup]],
                  uint size [[threads_per_threadgroup]]) {
    threadgroup atomic_uint cells[N_CELLS];
    for (uint cell = index; cell < N_CELLS; cell += size) {
        atomic_store_explicit(&cells[cell], 0u, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (row < uint(n_rows)) {
        atomic_fetch_add_explicit(&cells[codes[row]], 1u, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint cell = index; cell < N_CELLS; cell += size) {
        counts[group * N_CELLS + cell] = atomic_load_explicit(&cells[cell], memory_order_relaxed);
    }
}

// A helper with barriers inside.
inline uint total(threadgroup uint* numbers, uint index, uint size) {
    for (uint stride = size / 2u; stride > 0u; stride /= 2u) {
        threadgroup_barrier(mem_flags::mem_threadgroup);
        if (index < stride) {
            numbers[index] += numbers[index + stride];
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    return numbers[0];
}

kernel void add_up(device const uint* numbers, device uint* totals,
                   uint i [[thread_position_in_grid]],
                   uint index [[thread_index_in_threadgroup]],
                   uint size [[threads_per_threadgroup]]) {
    threadgroup uint values[1024], twice[2][512], other;
    values[index] = numbers[i];
    twice[index % 2u][index / 2u] = 2u * numbers[i];
    if (index == 0u) {
        other = 1u;
    }
    const uint sum = total(values, index, size);
    totals[i] = sum + 1000u * twice[1][0] + other;
}

kernel void memory_at_start(device uint* out, uint i [[thread_position_in_grid]]) {
    threadgroup uint words[4];
    out[i] = words[i % 4u];
    words[i % 4u] = 7u;
}

// The place of each thread in the order of threads, once at the start and once behind a barrier.
kernel void place(device atomic_uint* clock, device uint* places,
                  uint i [[thread_position_in_grid]], uint n [[threads_per_grid]]) {
    places[i] = atomic_fetch_add_explicit(&clock[0], 1u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_none);
    places[n + i] = atomic_fetch_add_explicit(&clock[0], 1u, memory_order_relaxed);
}

kernel void simd(device const int* numbers, device int* out, uint i [[thread_position_in_grid]],
                 uint n [[threads_per_grid]], uint lane [[thread_index_in_simdgroup]]) {
    const int x = numbers[i];
    const uint2 pair = simd_shuffle_xor(uint2(uint(x), lane), 1u);
    const int results[20] = {
        simd_sum(x), simd_min(x), simd_max(x), simd_and(x), simd_or(x), simd_xor(x),
        simd_prefix_exclusive_sum(x), simd_prefix_inclusive_sum(x), simd_shuffle(x, 3u),
        simd_shuffle_up(x, 2u), simd_shuffle_down(x, 2u), simd_shuffle_xor(x, 5u),
        simd_broadcast(x, 7u), simd_broadcast_first(x), int(pair.x), int(pair.y),
        int(ulong(simd_vote::vote_t(simd_ballot(x > 0)))), int(simd_any(x > 90)),
        int(simd_all(x > -100)), int(simd_is_first())};
    for (uint j = 0u; j < 20u; ++j) {
        out[j * n + i] = results[j];
    }
}

// What the tail of a grid may do: fewer lanes.
kernel void simd_tail(device const int* numbers, device int* out,
                      uint i [[thread_position_in_grid]]) {
    out[i] = 1000 * simd_sum(numbers[i]) + simd_prefix_exclusive_sum(1);
}
"""


@pytest.fixture(scope="module", params=OPTIONS.values(), ids=OPTIONS)
def library(request: pytest.FixtureRequest) -> EmulatedLibrary:
    return EmulatedDevice(request.param).compile_shader(SOURCE)


def test_groups_count_codes_in_threadgroup_memory(library: EmulatedLibrary) -> None:
    codes = torch.arange(1000, dtype=torch.int32) * 7 % 64
    counts = torch.zeros(4, 64, dtype=torch.int32)
    library.count(codes, counts, 1000, threads=1024, group_size=256, arg_casts="int32")
    expected = [torch.bincount(part, minlength=64).tolist() for part in codes.split(256)]
    assert counts.tolist() == expected


def test_barriers_in_a_loop_of_a_helper(library: EmulatedLibrary) -> None:
    numbers = torch.arange(2048, dtype=torch.int32)
    totals = torch.zeros(2048, dtype=torch.int32)
    library.add_up(numbers, totals, threads=2048, group_size=1024)
    halves = numbers.split(1024)
    expected = [int(half.sum()) + 2000 * int(half[1]) + 1 for half in halves]
    assert totals.tolist() == [expected[0]] * 1024 + [expected[1]] * 1024


def test_simd_functions(library: EmulatedLibrary) -> None:
    n = 64
    numbers = (torch.arange(n) * 37 % 101 - 50).to(torch.int32)
    out = torch.zeros(20, n, dtype=torch.int32)
    library.simd(numbers, out, threads=n, group_size=n)
    for first in (0, 32):
        x = numbers[first : first + 32].tolist()
        ands = ors = xors = x[0]
        for value in x[1:]:
            ands, ors, xors = ands & value, ors | value, xors ^ value
        ballot = sum((value > 0) << lane for lane, value in enumerate(x))
        ballot -= 2**32 if ballot >= 2**31 else 0
        expected = [
            *([sum(x)] * 32, [min(x)] * 32, [max(x)] * 32, [ands] * 32, [ors] * 32, [xors] * 32),
            [sum(x[:lane]) for lane in range(32)],
            [sum(x[: lane + 1]) for lane in range(32)],
            [x[3]] * 32,
            [x[lane - 2] if lane >= 2 else x[lane] for lane in range(32)],
            [x[lane + 2] if lane < 30 else x[lane] for lane in range(32)],
            [x[lane ^ 5] for lane in range(32)],
            *([x[7]] * 32, [x[0]] * 32),
            [x[lane ^ 1] for lane in range(32)],
            [lane ^ 1 for lane in range(32)],
            *([ballot] * 32, [int(max(x) > 90)] * 32, [1] * 32, [1] + [0] * 31),
        ]
        assert out[:, first : first + 32].tolist() == expected


def test_a_tail_has_fewer_lanes(library: EmulatedLibrary) -> None:
    out = torch.zeros(40, dtype=torch.int32)
    library.simd_tail(torch.ones(40, dtype=torch.int32), out, threads=40, group_size=40)
    assert out.tolist() == [32000 + i for i in range(32)] + [8000 + i for i in range(8)]


def test_threadgroup_memory_is_poisoned_at_the_start_of_each_group() -> None:
    library = EmulatedDevice().compile_shader(SOURCE)
    out = torch.zeros(8, dtype=torch.int32)
    library.memory_at_start(out, threads=8, group_size=4)
    poison = 0xA5A5A5A5 - 2**32
    assert out.tolist() == [poison] * 8


def places(options: EmulatorOptions, n_calls: int) -> list[list[int]]:
    library = EmulatedDevice(options).compile_shader(SOURCE)
    results = []
    for _ in range(n_calls):
        clock = torch.zeros(1, dtype=torch.int32)
        result = torch.zeros(2 * 64, dtype=torch.int32)
        library.place(clock, result, threads=64, group_size=16)
        results.append(result.tolist())
    return results


def test_without_a_seed_groups_and_threads_run_in_order() -> None:
    expected = [32 * (i // 16) + i % 16 for i in range(64)]
    assert places(EmulatorOptions(), 1) == [[*expected, *(place + 16 for place in expected)]]


def test_a_seed_shuffles_groups_and_threads_and_each_dispatch_anew() -> None:
    first, second = places(EmulatorOptions(shuffle_seed=1), 2)
    assert first != second
    for result in (first, second):
        assert sorted(result) == list(range(128))
        group = [place // 32 for place in result[:64:16]]
        assert sorted(group) == [0, 1, 2, 3]
        before, after = result[:16], result[64:80]
        assert max(before) < min(after)  # a barrier lies between
        assert sorted(before) != before
        assert [place - before[0] for place in before] != [place - after[0] for place in after]
    assert places(EmulatorOptions(shuffle_seed=1), 2) == [first, second]
    assert places(EmulatorOptions(shuffle_seed=2), 1) != [first]

"""Threads, groups, barriers and threadgroup memory of the emulator."""

import pytest
import torch
from metal.emulator.device import EmulatedDevice, EmulatorOptions

OPTIONS = {
    "ascending": EmulatorOptions(),
    "shuffled": EmulatorOptions(shuffle_seed=7),
    "ucontext": EmulatorOptions(shuffle_seed=7, ucontext=True),
    "c++17": EmulatorOptions(standard="c++17"),
}

COUNT = """
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
"""


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_groups_count_codes_in_threadgroup_memory(options: EmulatorOptions) -> None:
    library = EmulatedDevice(options).compile_shader(COUNT)
    codes = torch.arange(1000, dtype=torch.int32) * 7 % 64
    counts = torch.zeros(4, 64, dtype=torch.int32)
    library.count(codes, counts, 1000, threads=1024, group_size=256, arg_casts="int32")
    expected = [torch.bincount(part, minlength=64).tolist() for part in codes.split(256)]
    assert counts.tolist() == expected

"""What the emulator counts for a model of cost."""

import pytest
import torch
from metal.emulator.device import EmulatedDevice, EmulatorOptions

# Each thread reads 4 + 8 bytes and writes 1.
SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void work(device const uint* words [[buffer(0)]],
                 device const uint2* pairs [[buffer(1)]],
                 device uchar* out [[buffer(2)]],
                 device atomic_uint* counter [[buffer(3)]],
                 constant int* list [[buffer(4)]],
                 uint i [[thread_position_in_grid]],
                 uint index [[thread_index_in_threadgroup]]) {
    threadgroup atomic_uint sums[2];
    threadgroup uint plain[16];
    if (index < 2u) {
        atomic_store_explicit(&sums[index], 0u, memory_order_relaxed);
    }
    plain[index] = words[i] + uint(list[0]);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint2 pair = pairs[i];
    const uint old = atomic_fetch_add_explicit(&sums[0], pair.x, memory_order_relaxed);
    atomic_fetch_add_explicit(&sums[1], pair.y + old, memory_order_relaxed);
    atomic_fetch_add_explicit(&counter[0], 1u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    out[i] = uchar(plain[15u - index]);
}
"""

N_THREADS = 48
EXPECTED = {
    "dispatches": 1,
    "groups": 3,
    "threads": N_THREADS,
    "barriers": 2 * N_THREADS,
    "device_bytes_read": 12 * N_THREADS,
    "device_bytes_written": N_THREADS,
    "threadgroup_bytes_read": 4 * N_THREADS,
    "threadgroup_bytes_written": 4 * N_THREADS,
    "device_atomics": N_THREADS,
    "threadgroup_atomics": 2 * N_THREADS + 3 * 2,
    "returning_threadgroup_atomics": N_THREADS,
    "threadgroup_updates": 2 * N_THREADS,
}
ALWAYS = ("dispatches", "groups", "threads", "barriers")


@pytest.mark.parametrize(
    "options",
    [EmulatorOptions(), EmulatorOptions(counting=True), EmulatorOptions(checked=True)],
    ids=["fast", "counting", "checked"],
)
def test_work_is_counted(options: EmulatorOptions) -> None:
    device = EmulatedDevice(options)
    library = device.compile_shader(SOURCE)
    words = torch.zeros(N_THREADS, dtype=torch.int32)
    pairs = torch.zeros(N_THREADS, 2, dtype=torch.int32)
    out = torch.zeros(N_THREADS, dtype=torch.uint8)
    counter = torch.zeros(1, dtype=torch.int32)
    arguments = (words, pairs, out, counter, [1, 2])
    library.work(*arguments, threads=N_THREADS, group_size=16, arg_casts="int32")
    everything = options.counting or options.checked
    expected = {name: n * (everything or name in ALWAYS) for name, n in EXPECTED.items()}
    assert device.counters() == expected
    library.work(*arguments, threads=N_THREADS, group_size=16, arg_casts="int32")
    assert device.counters() == {name: 2 * n for name, n in expected.items()}
    assert EmulatedDevice(options).counters()["dispatches"] == 0
    assert (out.tolist(), counter.tolist()) == ([1] * N_THREADS, [2 * N_THREADS])

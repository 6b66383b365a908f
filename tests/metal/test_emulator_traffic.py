"""Lines of memory that a counting emulator finds moved, per argument."""

import torch
from metal.emulator.device import EmulatedDevice, EmulatorOptions

KERNEL = """
#include <metal_stdlib>
using namespace metal;

kernel void gather(device const uint* order [[buffer(0)]], device const uchar* codes [[buffer(1)]],
                   device uint* found [[buffer(2)]], constant int* table [[buffer(3)]],
                   uint i [[thread_position_in_grid]]) {
    found[i] = uint(codes[order[i]]) + uint(table[0]);
}
"""


def test_lines_are_counted_once_per_group_and_once_per_dispatch() -> None:
    device = EmulatedDevice(EmulatorOptions(counting=True))
    order = (torch.arange(64, dtype=torch.int32) * 64) % 1024  # 8 lines of 128 bytes, 4 times
    codes = torch.zeros(1024, dtype=torch.uint8)
    found = torch.zeros(64, dtype=torch.int32)
    kernel = device.compile_shader(KERNEL).gather
    for _ in range(2):  # another dispatch finds no line in a cache
        kernel(order, codes, found, [3], threads=64, group_size=32, arg_casts="int32")
    rows, gathered, written, table = device.traffic()[:4]
    assert rows == {"bytes": (512, 0), "group_lines": (4, 0), "dispatch_lines": (4, 0)}
    assert gathered == {"bytes": (128, 0), "group_lines": (32, 0), "dispatch_lines": (16, 0)}
    assert written == {"bytes": (0, 512), "group_lines": (0, 4), "dispatch_lines": (0, 4)}
    assert not any(sum(counts) for counts in table.values())  # passed by value
    assert device.counters()["device_bytes_read"] == 640

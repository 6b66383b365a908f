"""How threads and groups are counted, and what a kernel is told about them."""

import pytest
import torch
from metal.emulator.device import EmulatedDevice, EmulatedLibrary, EmulatorOptions

SOURCE = """
#include <metal_stdlib>
using namespace metal;

// Eight numbers per thread of a line.
kernel void line(device uint* out,
                 uint position [[thread_position_in_grid]],
                 uint n_threads [[threads_per_grid]],
                 uint inside [[thread_position_in_threadgroup]],
                 uint size [[threads_per_threadgroup]],
                 uint asked [[dispatch_threads_per_threadgroup]],
                 uint group [[threadgroup_position_in_grid]],
                 uint n_groups [[threadgroups_per_grid]],
                 uint index [[thread_index_in_threadgroup]]) {
    const uint numbers[8] = {position, n_threads, inside, size, asked, group, n_groups, index};
    for (uint i = 0u; i < 8u; ++i) {
        out[8u * position + i] = numbers[i];
    }
}

kernel void simd(device ushort* out, ushort position [[thread_position_in_grid]],
                 ushort lane [[thread_index_in_simdgroup]],
                 ushort simdgroup [[simdgroup_index_in_threadgroup]],
                 ushort width [[threads_per_simdgroup]],
                 ushort n_simdgroups [[simdgroups_per_threadgroup]]) {
    out[4 * position] = lane;
    out[4 * position + 1] = simdgroup;
    out[4 * position + 2] = width;
    out[4 * position + 3] = n_simdgroups;
}

kernel void plane(device uint* out, uint2 at [[thread_position_in_grid]],
                  uint2 n [[threads_per_grid]], ushort2 inside [[thread_position_in_threadgroup]],
                  uint2 group [[threadgroup_position_in_grid]],
                  uint index [[thread_index_in_threadgroup]]) {
    out[at.y * n.x + at.x] = group.y * 1000u + group.x * 100u + inside.y * 10u + inside.x;
    out[n.x * n.y + at.y * n.x + at.x] = index;
}

kernel void space(device uint* out, uint3 at [[thread_position_in_grid]],
                  uint3 n [[threads_per_grid]], uint3 size [[threads_per_threadgroup]],
                  uint3 group [[threadgroup_position_in_grid]],
                  uint3 n_groups [[threadgroups_per_grid]]) {
    out[(at.z * n.y + at.y) * n.x + at.x] =
        ((group.z * n_groups.y + group.y) * n_groups.x + group.x) * 100u
        + size.x * size.y * size.z;
}

[[max_total_threads_per_threadgroup(64)]] kernel void small(
    device uint* out, uint i [[thread_position_in_grid]], uint n [[threads_per_threadgroup]]) {
    out[i] = n;
}

kernel void sizes(device uint* out, uint i [[thread_position_in_grid]],
                  uint n [[threads_per_threadgroup]]) {
    threadgroup uint memory[10];
    memory[0] = n;
    out[i] = memory[0];
}

namespace inner {
kernel void named(device uint* out) { out[0] = 5u; }
}
"""


@pytest.fixture(scope="module", params=[None, 3], ids=["ascending", "shuffled"])
def library(request: pytest.FixtureRequest) -> EmulatedLibrary:
    return EmulatedDevice(EmulatorOptions(shuffle_seed=request.param)).compile_shader(SOURCE)


def zeros(n: int) -> torch.Tensor:
    return torch.zeros(n, dtype=torch.int32)


def test_the_last_group_of_a_line_is_smaller(library: EmulatedLibrary) -> None:
    out = zeros(8 * 10)
    library.line(out, threads=10, group_size=4)
    expected = [[i, 10, i % 4, 4 if i < 8 else 2, 4, i // 4, 3, i % 4] for i in range(10)]
    assert out.reshape(10, 8).tolist() == expected


def test_simdgroups_have_32_lanes(library: EmulatedLibrary) -> None:
    out = torch.zeros(4 * 70, dtype=torch.int16)
    library.simd(out, threads=70, group_size=70)
    assert out.reshape(70, 4).tolist() == [[i % 32, i // 32, 32, 3] for i in range(70)]


def test_a_plane_of_threads(library: EmulatedLibrary) -> None:
    out = zeros(2 * 15)
    library.plane(out, threads=[5, 3], group_size=(2, 2))
    at = [(x, y) for y in range(3) for x in range(5)]
    assert out[:15].tolist() == [
        1000 * (y // 2) + 100 * (x // 2) + 10 * (y % 2) + x % 2 for x, y in at
    ]
    assert out[15:].tolist() == [y % 2 * (1 if x == 4 else 2) + x % 2 for x, y in at]


def test_a_space_of_threads(library: EmulatedLibrary) -> None:
    out = zeros(3 * 3 * 2)
    library.space(out, threads=(3, 3, 2), group_size=(2, 2, 1))
    expected = [
        ((z * 2 + y // 2) * 2 + x // 2) * 100 + (1 if x == 2 else 2) * (1 if y == 2 else 2)
        for z in range(2)
        for y in range(3)
        for x in range(3)
    ]
    assert out.tolist() == expected


def test_by_default_there_is_a_thread_per_element_of_the_first_tensor(
    library: EmulatedLibrary,
) -> None:
    out = zeros(100)
    library.small(out[:70])
    assert out.tolist() == [64] * 64 + [6] * 6 + [0] * 30


def test_by_default_a_group_is_as_large_as_can_be(library: EmulatedLibrary) -> None:
    out = zeros(2000)
    library.sizes(out, threads=1500)
    assert out.tolist() == [1024] * 1024 + [476] * 476 + [0] * 500
    library.sizes(out, threads=700)
    assert out[:700].tolist() == [700] * 700
    out = zeros(8 * 10)
    library.line(out, threads=10)
    assert out.reshape(10, 8)[:, 4].tolist() == [10] * 10  # what was asked for
    out = zeros(64 * 2)
    library.plane(out, threads=(32, 2))  # a group is (1024, 1)
    assert out[64:].tolist() == [*range(32), *range(32)]


def test_the_largest_group_is_an_option() -> None:
    library = EmulatedDevice(EmulatorOptions(max_total_threads=512)).compile_shader(SOURCE)
    out = zeros(600)
    library.sizes(out)
    assert out.tolist() == [512] * 512 + [88] * 88
    assert library.sizes.max_threads_per_threadgroup == 512
    assert library.small.max_threads_per_threadgroup == 64
    with pytest.raises(ValueError, match="Threadgroup size exceeds 512 limit"):
        library.sizes(out, threads=600, group_size=600)


def test_the_attributes_of_a_kernel(library: EmulatedLibrary) -> None:
    assert library.sizes.max_threads_per_threadgroup == 1024
    assert library.sizes.thread_execution_width == 32
    assert library.sizes.static_thread_group_memory_length == 48
    assert library.line.static_thread_group_memory_length == 0


def test_a_group_beyond_the_limit_is_refused(library: EmulatedLibrary) -> None:
    with pytest.raises(ValueError, match="Threadgroup size exceeds 64 limit"):
        library.small(zeros(200), threads=200, group_size=65)
    with pytest.raises(ValueError, match="Threadgroup size exceeds 1024 limit"):
        library.plane(zeros(2), threads=(1, 1), group_size=(64, 17))


@pytest.mark.parametrize(
    ("threads", "group_size"),
    [
        ((2, 2), 2),
        (4, (2, 2)),
        ((), ()),
        ((1, 1, 1, 1), (1, 1, 1, 1)),
        (0, 1),
        (4, 0),
        ((4, 0), (1, 1)),
    ],
)
def test_sizes_that_make_no_sense_are_refused(
    library: EmulatedLibrary, threads: int, group_size: int
) -> None:
    with pytest.raises(RuntimeError):
        library.sizes(zeros(4), threads=threads, group_size=group_size)


def test_the_number_of_threads_must_be_known(library: EmulatedLibrary) -> None:
    with pytest.raises(RuntimeError, match="Number of threads is undefined"):
        library.sizes(5)


def test_a_missing_kernel_is_a_runtime_error(library: EmulatedLibrary) -> None:
    with pytest.raises(RuntimeError, match="Failed to create function state object for: nothing"):
        library.nothing  # noqa: B018
    with pytest.raises(RuntimeError):
        hasattr(library, "nothing")


def test_kernels_are_listed_and_namespaces_are_part_of_the_name(library: EmulatedLibrary) -> None:
    assert "inner::named" in dir(library)
    assert "line" in dir(library)
    out = zeros(1)
    getattr(library, "inner::named")(out)
    assert out.tolist() == [5]


def test_work_is_counted() -> None:
    device = EmulatedDevice()
    library = device.compile_shader(SOURCE)
    library.sizes(zeros(10), threads=10, group_size=4)
    library.sizes(zeros(10), threads=3)
    counters = device.counters()
    assert (counters["dispatches"], counters["groups"], counters["threads"]) == (2, 4, 13)

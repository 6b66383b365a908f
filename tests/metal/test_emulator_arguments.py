"""How arguments reach a kernel, as torch.mps.compile_shader passes them on."""

import math
from typing import Any

import pytest
import torch
from metal.emulator.device import EmulatedDevice, EmulatedLibrary

# What was bound, byte by byte.
SOURCE = """
#include <metal_stdlib>
using namespace metal;
kernel void copy_bytes(constant uchar* bound [[buffer(0)]], device uchar* bytes [[buffer(1)]],
                       uint i [[thread_position_in_grid]]) {
    bytes[i] = bound[i];
}
kernel void copy_tensor(device const uchar* bound [[buffer(0)]], device uchar* bytes [[buffer(1)]],
                        uint i [[thread_position_in_grid]]) {
    bytes[i] = bound[i];
}
kernel void implicit(device int* first, constant int& second, constant int2& third,
                     device int* fourth, uint i [[thread_position_in_grid]]) {
    first[i] = second;
    fourth[i] = third.x + 10 * third.y;
}
kernel void any_order(constant int& b [[buffer(1)]], device int* a [[buffer(0)]]) { a[0] = b; }
kernel void many(device int* a, BUFFERS constant int& last) { a[0] = last; }
""".replace("BUFFERS", "".join(f"constant int& b{i}, " for i in range(29)))


@pytest.fixture(scope="module")
def library() -> EmulatedLibrary:
    return EmulatedDevice().compile_shader(SOURCE)


def bound(library: EmulatedLibrary, value: Any, n_bytes: int, arg_casts: Any = None) -> bytes:
    result = torch.zeros(n_bytes, dtype=torch.uint8)
    library.copy_bytes(value, result, threads=n_bytes, arg_casts=arg_casts)
    return bytes(result.tolist())


def little_endian(*values: int, n_bytes: int) -> bytes:
    return b"".join(value.to_bytes(n_bytes, "little", signed=value < 0) for value in values)


@pytest.mark.parametrize("value", [0, 1, -1, 2**40 + 5, -(2**63), 2**63 - 1, True, False])
def test_integers_and_bools_are_8_bytes(library: EmulatedLibrary, value: int) -> None:
    assert bound(library, value, 8) == little_endian(int(value), n_bytes=8)


@pytest.mark.parametrize(
    ("value", "bits"),
    [(1.0, 0x3F800000), (-0.1, 0xBDCCCCCD), (1e300, 0x7F800000), (-math.inf, 0xFF800000)],
)
def test_floats_are_float32(library: EmulatedLibrary, value: float, bits: int) -> None:
    assert bound(library, value, 4) == little_endian(bits, n_bytes=4)


def test_lists_are_packed_by_the_type_of_their_first_number(library: EmulatedLibrary) -> None:
    assert bound(library, [1, -2], 16) == little_endian(1, -2, n_bytes=8)
    assert bound(library, (True, 3), 16) == little_endian(1, 3, n_bytes=8)
    assert bound(library, [1.0, 2], 8) == little_endian(0x3F800000, 0x40000000, n_bytes=4)


@pytest.mark.parametrize(
    ("cast", "value", "expected"),
    [
        ("int32", -2, little_endian(-2, n_bytes=4)),
        ("int32", 2**32 + 7, little_endian(7, n_bytes=4)),
        ("int32", [1, -1, 2**31], little_endian(1, -1, 2**31, n_bytes=4)),
        ("int32", -2.75, little_endian(-2, n_bytes=4)),
        ("int16", -3, little_endian(-3, n_bytes=2)),
        ("int8", [1, -1], little_endian(1, -1, n_bytes=1)),
        ("uint8", 257, little_endian(1, n_bytes=1)),
        ("fp16", 1.5, little_endian(0x3E00, n_bytes=2)),
        ("fp16", 2, little_endian(0x4000, n_bytes=2)),
        ("bf16", 1.5, little_endian(0x3FC0, n_bytes=2)),
        ("bf16", [1.0, 1.00390625, 1.01171875], little_endian(0x3F80, 0x3F80, 0x3F82, n_bytes=2)),
    ],
)
def test_casts(library: EmulatedLibrary, cast: str, value: Any, expected: bytes) -> None:
    assert bound(library, value, len(expected), cast) == expected
    assert bound(library, value, len(expected), {0: cast}) == expected


def test_a_dict_of_casts_leaves_other_arguments_alone(library: EmulatedLibrary) -> None:
    assert bound(library, 5, 8, {1: "int8"}) == little_endian(5, n_bytes=8)


@pytest.mark.parametrize("cast", ["int64", "uint32", "uint16", "float32", "", "INT32"])
def test_other_casts_are_refused(library: EmulatedLibrary, cast: str) -> None:
    with pytest.raises(RuntimeError, match="Unsupported cast instruction"):
        bound(library, 5, 8, cast)
    with pytest.raises(RuntimeError, match="Unsupported cast instruction"):
        bound(library, 5, 8, {0: cast})


@pytest.mark.parametrize("value", [None, "text", {1: 2}, [None], torch.float32, 1j])
def test_other_types_are_refused(library: EmulatedLibrary, value: Any) -> None:
    with pytest.raises(RuntimeError, match="Unsupported argument type"):
        bound(library, value, 8)


def test_an_empty_list_is_refused(library: EmulatedLibrary) -> None:
    with pytest.raises(RuntimeError):
        bound(library, [], 8)


def test_a_list_of_mixed_types_is_refused(library: EmulatedLibrary) -> None:
    with pytest.raises(RuntimeError, match="Unable to cast"):
        bound(library, [1, 2.0], 16)


def test_metal_takes_4_kilobytes_by_value(library: EmulatedLibrary) -> None:
    words = list(range(1024))
    assert bound(library, words, 4096, "int32") == little_endian(*words, n_bytes=4)
    with pytest.raises(RuntimeError, match="4100 bytes by value"):
        bound(library, [*words, 0], 4096, "int32")
    with pytest.raises(RuntimeError, match="4104 bytes by value"):
        bound(library, words[:513], 4096)


def test_a_tensor_is_its_storage_from_its_offset(library: EmulatedLibrary) -> None:
    storage = torch.arange(60, dtype=torch.uint8).reshape(6, 10)
    view = storage[2:, 3::2].t()  # strides are ignored
    result = torch.zeros(20, dtype=torch.uint8)
    library.copy_tensor(view, result, threads=20)
    assert result.tolist() == list(range(23, 43))


@pytest.mark.parametrize("dtype", [torch.int64, torch.float32, torch.bool, torch.float16])
def test_a_tensor_of_any_type_is_bound(library: EmulatedLibrary, dtype: torch.dtype) -> None:
    numbers = torch.tensor([1, 0, 3]).to(dtype)
    result = torch.zeros(3 * numbers.element_size(), dtype=torch.uint8)
    library.copy_tensor(numbers, result, threads=len(result))
    assert result.tolist() == numbers.view(torch.uint8).tolist()


def test_what_cannot_be_an_mps_tensor_is_refused(library: EmulatedLibrary) -> None:
    result = torch.zeros(8, dtype=torch.uint8)
    with pytest.raises(RuntimeError, match="float64"):
        library.copy_tensor(torch.zeros(1, dtype=torch.float64), result)
    with pytest.raises(RuntimeError, match="stand in for MPS"):
        library.copy_tensor(torch.zeros(1, device="meta"), result)


def test_a_tensor_is_no_constant(library: EmulatedLibrary) -> None:
    with pytest.raises(RuntimeError, match="bind tensors as device pointers"):
        bound(library, torch.zeros(8), 8)


def test_buffers_without_attribute_are_numbered_in_order(library: EmulatedLibrary) -> None:
    first, fourth = torch.zeros(2, 4, dtype=torch.int32)
    library.implicit(first, 7, [1, 2], fourth, threads=4, arg_casts="int32")
    assert first.tolist() == [7] * 4
    assert fourth.tolist() == [21] * 4


def test_attributes_may_come_in_any_order(library: EmulatedLibrary) -> None:
    a = torch.zeros(1, dtype=torch.int32)
    library.any_order(a, 9)
    assert a.tolist() == [9]


def test_a_kernel_has_31_buffers_at_most(library: EmulatedLibrary) -> None:
    a = torch.zeros(1, dtype=torch.int32)
    library.many(a, *range(30))
    assert a.tolist() == [29]
    with pytest.raises(RuntimeError, match="31 buffers"):
        library.many(a, *range(31))


def test_every_buffer_must_be_bound_and_no_other(library: EmulatedLibrary) -> None:
    a = torch.zeros(1, dtype=torch.int32)
    with pytest.raises(RuntimeError, match=r"takes buffers \{1: b, 0: a\}; 1 arguments"):
        library.any_order(a)
    with pytest.raises(RuntimeError, match="3 arguments were passed"):
        library.any_order(a, 1, 2)

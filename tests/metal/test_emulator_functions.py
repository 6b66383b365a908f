"""The functions and types of the Metal standard library that kernels may use."""

import math

import pytest
import torch
from metal.emulator.device import EmulatedDevice, EmulatedLibrary, EmulatorOptions

SOURCE = """
#include <metal_stdlib>
using namespace metal;

constant uint table[3] = {5u, 6u, 7u};
constant constexpr float third = 1.0f / 3.0f;

kernel void integers(device long* out) {
    uint n = 0u;
    out[n++] = min(3, -4);
    out[n++] = max(3u, 4u);
    out[n++] = clamp(9, 1, 5);
    out[n++] = long(abs(-7));
    out[n++] = metal::abs(-7l);
    out[n++] = select(1, 2, true);
    out[n++] = clz(0x00010000u);
    out[n++] = clz(0u);
    out[n++] = clz(uchar(1));
    out[n++] = long(clz(1ul));
    out[n++] = ctz(8u);
    out[n++] = ctz(0u);
    out[n++] = popcount(0xf0f0u);
    out[n++] = long(popcount(0xfffffffffful));
    out[n++] = mulhi(0x80000000u, 6u);
    out[n++] = mulhi(-0x40000000, 8);
    out[n++] = long(mulhi(1ul << 63, 6ul));
    out[n++] = mulhi(-(1l << 62), 8l);
    out[n++] = reverse_bits(0x80000001u);
    out[n++] = extract_bits(0xabcdu, 4u, 8u);
    out[n++] = insert_bits(0xffffu, 0u, 4u, 8u);
    out[n++] = table[1];
    out[n++] = long(sizeof(uint3)) + 100l * long(sizeof(packed_uint3)) + 10000l * alignof(uint2);
    out[n++] = long(sizeof(long)) + 10l * sizeof(ushort) + 100l * sizeof(int64_t);
    out[n++] = INT_MAX;
    out[n++] = long(as_type<uint>(1.0f));
    out[n++] = metal::as_type<long>(uint2(1u, 2u));
}

kernel void vectors(device long* out, device const packed_uchar4* bytes,
                    device const uint2* words) {
    uint n = 0u;
    const uint2 word = words[1];
    out[n++] = word.x;
    out[n++] = word[1];
    const uchar4 four = bytes[1];
    out[n++] = four.w;
    out[n++] = as_type<uint>(uchar4(1, 2, 3, 4));
    out[n++] = as_type<uchar4>(word.x)[0];
    int4 a = int4(1, 2, 3, 4);
    a += int4(10);
    a = 2 * a - a / 3;
    a.y = -a.y;
    out[n++] = a.x + 100 * a.y + 10000 * a.z + 1000000l * a.w;
    const uint3 b = uint3(uint2(1u, 2u), 3u) << 1u;
    out[n++] = b.x + 10u * b.y + 100u * b.z;
    out[n++] = all(a == a) && !any(a < int4(-1000)) && any(uint2(1u) == uint2(1u, 2u));
    const float2 halves = float2(int2(3, 5)) * 0.5f;
    out[n++] = long(halves.x * 10.0f + halves.y * 100.0f);
    out[n++] = max(uint2(1u, 9u), uint2(5u)).y + min(uint2(1u, 9u), uint2(5u)).y;
    const uint4 c = uint4(word, ~word);
    out[n++] = c.z;
    uint2 d;
    d[0] = 3u;
    d[1] = 4u;
    out[n++] = d.x + 10u * d.y;
}

kernel void floats(device float* out, constant float* x) {
    uint n = 0u;
    out[n++] = fma(x[0], x[0], -x[1]);
    out[n++] = x[0] * x[0] - x[1];
    out[n++] = rint(x[2]);
    out[n++] = floor(-x[2]);
    out[n++] = ceil(x[2]);
    out[n++] = trunc(-x[2]);
    out[n++] = round(x[2]);
    out[n++] = fabs(-x[2]) + metal::abs(-x[2]);
    out[n++] = precise::sqrt(x[2]);
    out[n++] = copysign(x[2], -1.0f);
    out[n++] = ldexp(x[2], 3);
    out[n++] = min(x[2], NAN);
    out[n++] = fmax(x[2], -INFINITY);
    out[n++] = float(isnan(NAN)) + 2.0f * isinf(INFINITY) + 4.0f * isfinite(x[2]) +
               8.0f * signbit(-0.0f);
    out[n++] = third;
}

kernel void atomics(device atomic_uint* u, device atomic_int* i, device atomic_ulong* l,
                    device atomic_float* f, device long* out) {
    const memory_order relaxed = memory_order_relaxed;
    uint n = 0u;
    out[n++] = atomic_fetch_add_explicit(&u[0], 5u, memory_order_relaxed);
    out[n++] = atomic_fetch_sub_explicit(&u[0], 7u, relaxed);
    out[n++] = atomic_load_explicit(&u[0], relaxed);
    out[n++] = atomic_exchange_explicit(&u[0], 12u, relaxed);
    out[n++] = atomic_fetch_and_explicit(&u[0], 10u, relaxed);
    out[n++] = atomic_fetch_or_explicit(&u[0], 5u, relaxed);
    out[n++] = atomic_fetch_xor_explicit(&u[0], 1u, relaxed);
    out[n++] = atomic_fetch_min_explicit(&u[0], 11u, relaxed);
    out[n++] = atomic_fetch_max_explicit(&u[0], 99u, relaxed);
    out[n++] = atomic_load_explicit(&u[0], relaxed);
    uint expected = 1u;
    out[n++] = atomic_compare_exchange_weak_explicit(&u[0], &expected, 3u, relaxed, relaxed);
    out[n++] = expected;
    out[n++] = atomic_compare_exchange_weak_explicit(&u[0], &expected, 3u, relaxed, relaxed);
    atomic_store_explicit(&i[0], INT_MAX, relaxed);
    out[n++] = atomic_fetch_add_explicit(&i[0], 1, relaxed);
    out[n++] = atomic_fetch_min_explicit(&i[0], -5, relaxed);
    out[n++] = atomic_fetch_max_explicit(&i[0], -5, relaxed);
    atomic_max_explicit(&l[0], 1ul << 40, relaxed);
    atomic_min_explicit(&l[1], 3ul, relaxed);
    atomic_fetch_add_explicit(&f[0], 1.5f, relaxed);
}
"""


@pytest.fixture(scope="module", params=[False, True], ids=["fast", "checked"])
def library(request: pytest.FixtureRequest) -> EmulatedLibrary:
    return EmulatedDevice(EmulatorOptions(checked=request.param)).compile_shader(SOURCE)


def longs(n: int) -> torch.Tensor:
    return torch.zeros(n, dtype=torch.int64)


def test_integers(library: EmulatedLibrary) -> None:
    expected = [
        *[-4, 4, 5, 7, 7, 2, 15, 32, 7, 63, 3, 32, 8, 40],
        *[3, -2, 3, -2, 0x80000001, 0xBC, 0xF00F, 6],
        *[16 + 1200 + 80000, 8 + 20 + 800, 2**31 - 1, 0x3F800000, (2 << 32) + 1],
    ]
    out = longs(len(expected))
    library.integers(out, threads=1)
    assert out.tolist() == expected


def test_vectors(library: EmulatedLibrary) -> None:
    # 11, 12, 13, 14 become 2 a - a / 3: 19, 20, 22, 24.
    mixed = 19 - 100 * 20 + 10000 * 22 + 1000000 * 24
    expected = [3, 4, 8, 0x04030201, 3, mixed, 642, 1, 265, 14, 2**32 - 1 - 3, 43]
    out = longs(len(expected))
    data = torch.arange(1, 9, dtype=torch.uint8)
    library.vectors(out, data, torch.tensor([1, 2, 3, 4], dtype=torch.int32), threads=1)
    assert out.tolist() == expected


def test_floats(library: EmulatedLibrary) -> None:
    a = 1 + 2**-12  # a * a needs 25 bits
    square = torch.tensor(a).square()
    out = torch.zeros(15)
    library.floats(out, [a, float(square), 2.5], threads=1)
    expected = [
        *[a * a - float(square), 0.0, 2.0, -3.0, 3.0, -2.0, 3.0, 5.0],
        float(torch.tensor(2.5).sqrt()),
        *[-2.5, 20.0, 2.5, 2.5, 15.0, float(torch.tensor(1.0) / 3)],
    ]
    assert out.tolist() == expected
    assert a * a != float(square)  # so fma rounds once, and x * x - y is not contracted


def test_atomics(library: EmulatedLibrary) -> None:
    u, i = torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    wide, f, out = torch.tensor([5, 5]), torch.zeros(1), longs(16)
    library.atomics(u, i, wide, f, out, threads=1)
    expected = [0, 5, 2**32 - 2, 2**32 - 2, 12, 8, 13, 12, 11, 99, 0, 99, 1]
    assert out.tolist() == [*expected, 2**31 - 1, -(2**31), -(2**31)]
    assert (u.tolist(), i.tolist(), wide.tolist(), f.tolist()) == ([3], [-5], [2**40, 3], [1.5])


FLOAT_MODE = """
kernel void halve(device const float* x, device float* out, uint i [[thread_position_in_grid]]) {
    out[i] = x[i] * 0.5f;
}
kernel void overstep(device int* out) { out[1l << 40] = 1; }
"""


@pytest.mark.parametrize("flush", [False, True])
def test_subnormals_are_flushed_where_asked(flush: bool) -> None:
    library = EmulatedDevice(EmulatorOptions(flush_subnormals=flush)).compile_shader(FLOAT_MODE)
    smallest = 2.0**-126
    x = torch.tensor([smallest, 2 * smallest, smallest / 2, -smallest])
    out = torch.ones(4)
    library.halve(x, out)
    kept = [smallest / 2, smallest, smallest / 4, -smallest / 2]
    assert out.tolist() == ([0.0, smallest, 0.0, -0.0] if flush else kept)
    # Outside of kernels nothing is flushed, not even after a failure.
    with pytest.raises(RuntimeError):
        library.overstep(torch.zeros(1, dtype=torch.int32))
    assert smallest / 2 * math.ldexp(1.0, 100) == math.ldexp(1.0, -27)
    assert (x[:1] * 0.5).tolist() == [smallest / 2]

// Sums of few rows in threadgroup memory, in words of 32 bits: there are no wider atomics there.
//
//     n words per cell, planar:  word w of a cell lies at cell + w * tile_cells
//
// A gradient q is added as u = q + 2^30, which is 0 .. 2^31, so that sums only grow. Atomic adds
// commute, and each low word has one order of additions, in which it overflows at most once per
// addition; so whatever the order, the words hold the same number after a barrier.
//
//     constant Hessian         lo    sum of u mod 2^32            at most 65,535 rows:
//                              hi    [count 16 | carries 16]      count < 2^16, carries < 2^15
//     constant Hessian,        low   sum of u mod 2^32            at most 2,047 rows: count < 2^11,
//     nothing returned         high  [count 11 | sum of u/2^21]   sum of u/2^21 <= 2047 * 2^10
//     general Hessian          glo   sum of u mod 2^32            at most 4,095 rows: count < 2^12,
//                              hlo   sum of h mod 2^32            carries of u <= 4095 / 2 < 2^11,
//                              mix   [count 12 | carries of u 11 | carries of h 9]   of h < 2^9
//
// Hessians are 0 .. 2^29. MAX_PACKED_ROWS holds the bound (torchgbdt/backends/row_chunks.py); one
// row more gives wrong sums.
#pragma once

#include "metal/partials.h"

namespace torchgbdt {

constant uint packed_words = CONSTANT_HESSIAN ? 2 : 3;
constant uint packed_size = packed_words * tile_cells;

struct CellSums {
    uint count;
    long gradient;
    long hessian;  // only where it is not constant
};

inline uint add_returning(threadgroup atomic_uint* word, uint value) {
    return atomic_fetch_add_explicit(word, value, memory_order_relaxed);
}

inline void add_word(threadgroup atomic_uint* word, uint value) {
    atomic_fetch_add_explicit(word, value, memory_order_relaxed);
}

inline uint read_word(threadgroup atomic_uint* word) {
    return atomic_load_explicit(word, memory_order_relaxed);
}

// 1 where the addition has overflowed.
inline uint add_and_carry(threadgroup atomic_uint* word, uint value) {
    return add_returning(word, value) + value < value ? 1 : 0;
}

inline void clear_cell(threadgroup atomic_uint* cell) {
    for (uint word = 0; word < packed_words; ++word) {
        atomic_store_explicit(cell + word * tile_cells, 0u, memory_order_relaxed);
    }
}

// What the sum of count gradients is, given that of u = q + 2^30.
inline long without_offset(long sum, uint count) {
    return sum - (long(count) << 30);
}

#if CONSTANT_HESSIAN && RETURNING_ATOMICS

inline void add_row(threadgroup atomic_uint* cell, uint u, uint) {
    add_word(cell + tile_cells, (1u << 16) + add_and_carry(cell, u));
}

inline CellSums read_cell(threadgroup atomic_uint* cell) {
    const uint high = read_word(cell + tile_cells);
    CellSums sums;
    sums.count = high >> 16;
    sums.gradient =
        without_offset((long(high & 0xffffu) << 32) + long(read_word(cell)), sums.count);
    sums.hessian = 0;
    return sums;
}

#elif CONSTANT_HESSIAN

inline void add_row(threadgroup atomic_uint* cell, uint u, uint) {
    add_word(cell, u);
    add_word(cell + tile_cells, (1u << 21) + (u >> 21));
}

inline CellSums read_cell(threadgroup atomic_uint* cell) {
    const uint high = read_word(cell + tile_cells);
    const uint upper = high & 0x1fffffu;
    // The rest of u, u mod 2^21 each, makes less than 2047 * 2^21 < 2^32.
    const uint lower = read_word(cell) - (upper << 21);
    CellSums sums;
    sums.count = high >> 21;
    sums.gradient = without_offset((long(upper) << 21) + long(lower), sums.count);
    sums.hessian = 0;
    return sums;
}

#else

inline void add_row(threadgroup atomic_uint* cell, uint u, uint hessian) {
    const uint carry_u = add_and_carry(cell, u);
    const uint carry_h = add_and_carry(cell + tile_cells, hessian);
    add_word(cell + 2 * tile_cells, (1u << 20) + (carry_u << 9) + carry_h);
}

inline CellSums read_cell(threadgroup atomic_uint* cell) {
    const uint mix = read_word(cell + 2 * tile_cells);
    CellSums sums;
    sums.count = mix >> 20;
    sums.gradient =
        without_offset((long((mix >> 9) & 0x7ffu) << 32) + long(read_word(cell)), sums.count);
    sums.hessian = (long(mix & 0x1ffu) << 32) + long(read_word(cell + tile_cells));
    return sums;
}

#endif

}  // namespace torchgbdt

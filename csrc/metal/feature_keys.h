// X as integers that compare like its numbers: devices flush subnormals, so floats are never
// compared. -0 is +0; NaN, which means missing, is the largest key.
//
// Constants, chosen by torchgbdt/backends/threshold_keys.py, which makes keys of thresholds too:
//   VALUE             type that an element is read as; for floats, the integer of its bits
//   KEY               int or long: wide enough for X and for thresholds beyond its type's range
//   VALUE_KIND        0: integers, 1: bools, 2: bits of floats, 3: keys that the host has made
//   BITS_OF_INFINITY  where VALUE_KIND is 2, else 0
#pragma once

#include "metal/long_words.h"

namespace torchgbdt {

// Where an element of X lies; a tensor may have any strides.
struct Strides {
    long row;
    long column;
};

// words: row stride and column stride, in elements.
inline Strides read_strides(constant int* words) {
    return {long_of_words(words[0], words[1]), long_of_words(words[2], words[3])};
}

inline KEY missing_key() {
    return static_cast<KEY>((static_cast<ulong>(1) << (8 * sizeof(KEY) - 1)) - 1);
}

// Integers are never missing.
inline bool is_missing(KEY key) {
    return VALUE_KIND >= 2 && key == missing_key();
}

#if VALUE_KIND == 1

inline KEY key_of(VALUE value) {
    return value != 0 ? 1 : 0;
}

#elif VALUE_KIND == 2

inline KEY key_of(VALUE bits) {  // a sign and a magnitude
    const KEY size = bits & (sizeof(VALUE) == 2 ? 0x7fff : 0x7fffffff);
    const KEY key = bits < 0 ? -size : size;
    return size > BITS_OF_INFINITY ? missing_key() : key;
}

#else

inline KEY key_of(VALUE value) {
    return static_cast<KEY>(value);
}

#endif

// The key of an element of X.
inline KEY read_key(device const VALUE* x, Strides strides, long row, long column) {
    return key_of(x[row * strides.row + column * strides.column]);
}

}  // namespace torchgbdt

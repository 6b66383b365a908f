// Writes words that the host passes by value into a buffer of the device: a copy from host memory
// would wait for all work that is queued.
//
// Constants: none.
#include "metal/turns.h"

using namespace torchgbdt;

// Grid:   one thread per word, 1..1,024; no barriers.
// Writes: each thread one word.
kernel void write_words(device int* buffer [[buffer(0)]],  // OUT any dtype, of 4-byte words
                        constant int* words [[buffer(1)]], constant int& first [[buffer(2)]],
                        device atomic_uint* last_turn [[buffer(3)]],
                        constant int& turn [[buffer(4)]],  // see turns.h
                        uint position [[thread_position_in_grid]]) {
    take_turn(last_turn, turn, position);
    buffer[static_cast<long>(first) + position] = words[position];
}

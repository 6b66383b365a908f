// What models of equal bits rest on, computed on the device for torchgbdt/backends/conformance.py,
// which knows the right words; row numbers here are places in its lists.
//
// Constants: none.
#include "metal/long_words.h"
#include "metal/turns.h"
#include "shared/fixed_point.h"
#include "shared/portable_math.h"

using namespace torchgbdt;

// Writes one result after another, each a row of words.
struct Results {
    device uint* next;

    void add(uint word) {
        *next = word;
        next += 256;
    }
    void add_float(float x) { add(float_bits(x)); }
    void add_long(ulong x) {
        add(static_cast<uint>(x));
        add(static_cast<uint>(x >> 32));
    }
};

inline float float_of(int word) {
    return float_from_bits(static_cast<uint>(word));
}

// words: of this thread, 256 apart: x, y, z, special, rounded, exponent, positive.
inline void probe_floats(device const int* words, thread Results& results) {
    const float x = float_of(words[0]), y = float_of(words[256]), z = float_of(words[512]);
    const float special = float_of(words[3 * 256]), rounded = float_of(words[4 * 256]);
    const float exponent = float_of(words[5 * 256]), positive = float_of(words[6 * 256]);
    results.add_float(x + y);
    results.add_float(x * y);
    results.add_float(x / y);
    results.add_float(x * y + z);
    results.add_float(fma(x, y, z));
    results.add((special < x ? 1u : 0u) | (special > x ? 2u : 0u) | (special == special ? 4u : 0u));
    results.add(static_cast<uint>(static_cast<int>(rint(rounded))));
    results.add_float(round_half_even(rounded));
    results.add(static_cast<uint>(static_cast<int>(rounded)));
    results.add_float(portable_exp(exponent));
    results.add_float(portable_log(positive));
    results.add_float(portable_log1p(positive));
}

// words: of this thread, 256 apart: low and high word of a, of b; shift.
inline void probe_integers(device const int* words, thread Results& results) {
    const int low = words[0], other = words[512];
    const long a = long_of_words(low, words[256]), b = long_of_words(other, words[3 * 256]);
    const int shift = words[4 * 256];
    results.add_float(static_cast<float>(low >> 7));  // 25 bits with the sign: nothing is rounded
    results.add_long(static_cast<ulong>(a) + static_cast<ulong>(b));  // unsigned: these may wrap
    results.add_long(static_cast<ulong>(a) * static_cast<ulong>(b));
    results.add_long(static_cast<ulong>(static_cast<long>(low) * other));
    results.add_long(static_cast<ulong>(a) << shift);
    results.add_long(static_cast<ulong>(a >> shift));
    results.add((a < b ? 1u : 0u) | (a == b ? 2u : 0u) |
                (static_cast<ulong>(a) < static_cast<ulong>(b) ? 4u : 0u));
}

// Layout: inputs (12, 256), results (n_results, 256).
// Grid:   one group of 256 threads.
// Writes: each thread its column of the results.
[[max_total_threads_per_threadgroup(256)]] kernel void conformance_probe(
    device const int* inputs [[buffer(0)]],       // IN  int32 (12, 256): words for floats, integers
    device uint* results [[buffer(1)]],           // OUT int32 (n_results, 256)
    device atomic_uint* in_device [[buffer(2)]],  // IN-OUT int32 (2,): from 0: max, or of words
    constant int& nonce [[buffer(3)]], device atomic_uint* last_turn [[buffer(4)]],
    constant int& turn [[buffer(5)]],  // see turns.h
    uint index [[thread_index_in_threadgroup]], uint width [[threads_per_simdgroup]],
    uint lane [[thread_index_in_simdgroup]]) {
    threadgroup atomic_uint cells[256];
    threadgroup atomic_uint sum[2];
    threadgroup atomic_uint largest_and_smallest[2];
    take_turn(last_turn, turn, index);
    Results found = {results + index};
    probe_floats(inputs + index, found);
    device const int* integers = inputs + 7 * 256 + index;
    probe_integers(integers, found);
    const uint word = static_cast<uint>(integers[0]);

    found.add(width);
    found.add(lane);
    found.add(simd_prefix_exclusive_sum(word));
    found.add(simd_sum(word));
    found.add(simd_max(word));
    found.add(simd_shuffle(word, static_cast<ushort>((5 * lane + 3) % 32)));
    const uint from_below = simd_shuffle_up(word, 1);
    found.add(lane == 0 ? word : from_below);

    // Each cell is added to once, by the thread before: the addition returns what was there.
    atomic_store_explicit(&cells[index], word, memory_order_relaxed);
    if (index < 2) {
        atomic_store_explicit(&sum[index], 0u, memory_order_relaxed);
        atomic_store_explicit(&largest_and_smallest[index], 0u - index, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint other = (index + 1) % 256;
    found.add(atomic_fetch_add_explicit(&cells[other], word, memory_order_relaxed));
    // A sum in two words: each addition learns from what it returns whether it carries.
    const uint before = atomic_fetch_add_explicit(&sum[0], word, memory_order_relaxed);
    atomic_fetch_add_explicit(&sum[1], before + word < word ? 1u : 0u, memory_order_relaxed);
    atomic_fetch_max_explicit(&largest_and_smallest[0], word, memory_order_relaxed);
    atomic_fetch_min_explicit(&largest_and_smallest[1], word, memory_order_relaxed);
    atomic_fetch_max_explicit(in_device, word, memory_order_relaxed);
    atomic_fetch_or_explicit(in_device + 1, word & 0x5a5a5a5au, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    found.add(atomic_load_explicit(&cells[index], memory_order_relaxed));
    found.add(atomic_load_explicit(&sum[0], memory_order_relaxed));
    found.add(atomic_load_explicit(&sum[1], memory_order_relaxed));
    found.add(atomic_load_explicit(&largest_and_smallest[0], memory_order_relaxed));
    found.add(atomic_load_explicit(&largest_and_smallest[1], memory_order_relaxed));

    const float subnormal = float_of(integers[4 * 256] + 1);
    found.add_float(subnormal + subnormal);  // 0 where devices flush: reported, not compared
    found.add(static_cast<uint>(nonce));
}

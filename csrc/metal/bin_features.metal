// Quantizes X into bins, in the layout that histograms read. The definition is
// core.binning.bin_column.
//
// Constants: those of metal/feature_keys.h, and
//   HAS_KEPT_ROWS  0 or 1: whether rows of X are chosen
#include "metal/feature_keys.h"
#include "metal/turns.h"

using namespace torchgbdt;

// How many of the ascending cuts are smaller: the place of the first that is not. count <= 254.
inline uint count_below(device const KEY* cuts, int count, KEY key) {
    int begin = 0;
    while (count > 0) {
        const int half_count = count / 2;
        const bool is_below = cuts[begin + half_count] < key;
        begin = is_below ? begin + half_count + 1 : begin;
        count = is_below ? count - half_count - 1 : half_count;
    }
    return static_cast<uint>(begin);
}

// Layout: X as it lies; words row-major, 8 features each.
// Grid:   (n_kept, n_padded / 8) threads, one per word; no barriers.
// Writes: each thread its word; the bytes of features that are not there are 0.
kernel void bin_features(
    device const VALUE* x [[buffer(0)]],         // IN  as VALUE, from the tensor's first element
    device const long* kept_rows [[buffer(1)]],  // IN  int64 (n_kept,); any tensor without them
    device const KEY* cuts [[buffer(2)]],        // IN  KEY (>= 1,): thresholds of all features
    device const int* cut_ranges [[buffer(3)]],  // IN  int32 (n_features, 3): first cut, number
                                                 //     of cuts, missing code
    device uint2* words [[buffer(4)]],    // OUT uint8 (n_kept, n_padded), n_padded multiple of 8
    constant int* strides [[buffer(5)]],  // row stride, column stride: 2 words each, low first
    constant int& n_features [[buffer(6)]], device atomic_uint* last_turn [[buffer(7)]],
    constant int& turn [[buffer(8)]],  // see turns.h
    uint2 position [[thread_position_in_grid]], uint2 n_threads [[threads_per_grid]]) {
    take_turn(last_turn, turn, position.x | position.y);
    const Strides steps = read_strides(strides);
    const long kept = static_cast<long>(position.x);
    const long row = HAS_KEPT_ROWS ? kept_rows[kept] : kept;
    uint codes[2] = {0, 0};
    for (int i = 0; i < 8; ++i) {
        const int feature = static_cast<int>(position.y) * 8 + i;
        if (feature < n_features) {
            device const int* range = cut_ranges + 3 * feature;
            const KEY key = read_key(x, steps, row, feature);
            const uint code = is_missing(key) ? static_cast<uint>(range[2])
                                              : count_below(cuts + range[0], range[1], key);
            codes[i / 4] |= code << (8 * (i % 4));
        }
    }
    uint2 word;
    word.x = codes[0];
    word.y = codes[1];
    words[kept * n_threads.y + position.y] = word;
}

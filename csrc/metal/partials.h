// Where build_histograms leaves the sums of a chunk, and reduce_histograms finds them.
//
//     uint (n_outputs, n_chunks, n_tiles, PARTIAL_WORDS, TILE_FEATURES, BINS)
//
// Words: count; gradient low, high; where the Hessian is not constant, Hessian low, high. Low and
// high are the halves of an int64.
#pragma once

namespace torchgbdt {

#define BINS 256                               // per feature; codes are 0..255
#define PARTIAL_STRIDE (TILE_FEATURES * BINS)  // from word to word

// The count of bin 0 of the first feature of a tile.
inline ulong partial_begin(uint output, uint chunk, uint tile, uint n_chunks, uint n_tiles) {
    const ulong index = (ulong(output) * n_chunks + chunk) * n_tiles + tile;
    return index * (PARTIAL_WORDS * PARTIAL_STRIDE);
}

inline uint low_word(long sum) {
    return uint(ulong(sum) & 0xffffffffu);
}

inline uint high_word(long sum) {
    return uint(ulong(sum) >> 32);
}

inline long from_words(uint low, uint high) {
    return long((ulong(high) << 32) | low);
}

}  // namespace torchgbdt

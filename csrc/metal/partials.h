// The cells of a tile of features, and where build_histograms leaves the sums of a chunk of rows,
// for reduce_histograms to find them.
//
//     uint (n_outputs, n_chunks, n_tiles, PARTIAL_WORDS, n_codes, TILE_FEATURES)
//
// Words: count; gradient low, high; where the Hessian is not constant, Hessian low, high. Low and
// high are the halves of an int64.
#pragma once

namespace torchgbdt {

constant uint n_codes = 256;  // of a feature
constant uint tile_cells = n_codes * TILE_FEATURES;

// By bin, then feature. Lanes that add to different features of a tile never wait for one bank of
// threadgroup memory then, not even where all of them have the same bin.
inline uint tile_cell(uint feature, uint bin) {
    return bin * TILE_FEATURES + feature;
}

inline ulong partial_begin(uint output, uint chunk, uint tile, uint n_chunks, uint n_tiles) {
    const ulong index = (ulong(output) * n_chunks + chunk) * n_tiles + tile;
    return index * (PARTIAL_WORDS * tile_cells);
}

inline uint low_word(long sum) {
    return uint(ulong(sum));
}

inline uint high_word(long sum) {
    return uint(ulong(sum) >> 32);
}

}  // namespace torchgbdt

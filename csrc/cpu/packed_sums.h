// Sums of few rows, packed so that a row adds to a bin with one addition and one store.
//
//     constant Hessian, one output     [count 16 | gradient 48]                       one word
//     general Hessian, one output      [count 16 | gradient 48] [Hessian 64]          two words
//     several outputs                  [count 16 | gradient 48] and a word each for the rest
//
// The limit of histograms is one store per cycle, and a little less where a block of features does
// not stay in a first-level cache; the second level is near enough.
#pragma once

#include "cpu/views.h"

#include <algorithm>
#include <cstdint>

namespace torchgbdt {

using PackedWord = std::uint64_t;

// Rows between two drains: their count must fit into 16 bits; |q| <= 2^30 makes 48 bits enough for
// the gradients of as many.
constexpr std::int64_t kMaxPackedRows = 65535;

constexpr int kCountShift = 48;
constexpr PackedWord kOneRow = PackedWord{1} << kCountShift;

inline PackedWord pack(std::int32_t gradient) {
    return kOneRow + static_cast<PackedWord>(static_cast<std::int64_t>(gradient));
}

inline std::int64_t packed_gradient(PackedWord word) {
    const PackedWord sign_bit = PackedWord{1} << (kCountShift - 1);
    const PackedWord low = word & (kOneRow - 1);
    return static_cast<std::int64_t>(low ^ sign_bit) - static_cast<std::int64_t>(sign_bit);
}

inline std::int64_t packed_count(PackedWord word) {
    const auto gradient = static_cast<PackedWord>(packed_gradient(word));
    return static_cast<std::int64_t>((word - gradient) >> kCountShift);
}

// How the features of a data set lie in packed sums. A feature's bins have a stride that the
// compiler knows, and no power of two: loads of bins that lie a multiple of 4,096 bytes from one
// another's stores wait for them as if they were the same.
//
//     block of features   one word per bin: they fit into L1; two: twice that, since visiting a row
//                         once more costs more than the cache misses (0.62 ns an addition with 5
//                         features, 0.58 with 7, 0.55 with 14)
//     panel of blocks     so many that their bins fit into L2; one task at a time
struct PackedLayout {
    static constexpr std::int64_t kStride = 264;  // bins per feature; codes are 0..255
    static constexpr std::int64_t kMaxBlockFeatures = 14;
    static constexpr std::int64_t kBlockWords = 2 * kMaxBlockFeatures * kStride;
    static constexpr std::int64_t kPanelBlocks = 8;

    PackedLayout(std::int64_t n_features, int n_words) : n_features(n_features), n_words(n_words) {
        const std::int64_t most =
            std::clamp<std::int64_t>(kBlockWords / (kStride * n_words), 1, kMaxBlockFeatures);
        const std::int64_t n_blocks = std::max<std::int64_t>((n_features + most - 1) / most, 1);
        // Blocks of about one size, and none of size 0, where there are no features either.
        block_features = std::max<std::int64_t>((n_features + n_blocks - 1) / n_blocks, 1);
        const std::int64_t n_panels = (n_blocks + kPanelBlocks - 1) / kPanelBlocks;
        panel_features = block_features * ((n_blocks + n_panels - 1) / n_panels);
    }

    std::int64_t panel_words() const { return panel_features * kStride * n_words; }

    std::int64_t n_features;
    int n_words;
    std::int64_t block_features;
    std::int64_t panel_features;
};

}  // namespace torchgbdt

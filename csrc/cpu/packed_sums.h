// Sums of few rows, packed so that a row adds to a bin with one addition and one store.
//
//     constant Hessian, one output     [count 16 | gradient 48]                       one word
//     general Hessian, one output      [count 16 | gradient 48] [Hessian 64]          two words
//     several outputs                  [count 16 | gradient 48] and a word each for the rest
//
// The limit of histograms is one store per cycle; all bins of a block of features must stay in a
// first-level cache beside what is read, or each addition waits for the next level.
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
//     block of features   so many that their bins fit into L1; added row by row
//     panel of blocks     so many that their bins fit into L2; one task at a time
struct PackedLayout {
    static constexpr std::int64_t kStride = 264;  // bins per feature; codes are 0..255
    static constexpr std::int64_t kBlockWords = 28 * kStride;
    static constexpr std::int64_t kMaxBlockFeatures = 14;
    static constexpr std::int64_t kPanelBlocks = 8;

    PackedLayout(std::int64_t n_features, int n_words) : n_features(n_features), n_words(n_words) {
        const std::int64_t most =
            std::clamp<std::int64_t>(kBlockWords / (kStride * n_words), 1, kMaxBlockFeatures);
        const std::int64_t n_blocks = std::max<std::int64_t>((n_features + most - 1) / most, 1);
        block_features = (n_features + n_blocks - 1) / n_blocks;  // blocks of about one size
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

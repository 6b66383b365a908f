// The column-major copy of the bins, which routing reads: one byte per row instead of a cache line.
#include "cpu/kernels.h"
#include "cpu/own_stretches.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

namespace torchgbdt {
namespace {

constexpr std::int64_t kTileRows = 64;  // of one feature: one cache line of the copy
constexpr std::int64_t kSquare = 8;     // rows and features that are transposed in registers

using Square = std::array<std::uint64_t, kSquare>;

// Exchanges, in each pair of words that lie `distance` apart, the upper half of every group of
// 2 * distance bytes of the first with the lower half of that of the second. lower: its mask.
void exchange(Square& words, std::size_t distance, std::uint64_t lower) {
    const std::size_t shift = 8 * distance;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if ((i & distance) == 0) {
            const std::uint64_t changed = ((words[i] >> shift) ^ words[i + distance]) & lower;
            words[i] ^= changed << shift;
            words[i + distance] ^= changed;
        }
    }
}

// Transposes 8 x 8 bytes by halves, quarters and eighths. Byte k of a word is its k-th in memory;
// where the processor stores the highest byte first, both sides are mirrored, which agrees.
void transpose_square(Square& words) {
    exchange(words, 4, 0x00000000ffffffffu);
    exchange(words, 2, 0x0000ffff0000ffffu);
    exchange(words, 1, 0x00ff00ff00ff00ffu);
}

// Copies rows begin..end-1 of features first..first + n_features - 1, at most kSquare of them.
void transpose_tile(const BinMatrix& bins, std::int64_t begin, std::int64_t end, std::int64_t first,
                    std::int64_t n_features, std::uint8_t* columns) {
    std::int64_t row = begin;
    for (; n_features == kSquare && row + kSquare <= end; row += kSquare) {
        Square words;
        for (std::int64_t i = 0; i < kSquare; ++i) {
            std::memcpy(&words[static_cast<std::size_t>(i)],
                        bins.codes + (row + i) * bins.n_features + first, sizeof words[0]);
        }
        transpose_square(words);
        for (std::int64_t i = 0; i < kSquare; ++i) {
            std::memcpy(columns + (first + i) * bins.n_rows + row,
                        &words[static_cast<std::size_t>(i)], sizeof words[0]);
        }
    }
    for (std::int64_t feature = first; feature < first + n_features; ++feature) {
        for (std::int64_t rest = row; rest < end; ++rest) {
            columns[feature * bins.n_rows + rest] = bins.codes[rest * bins.n_features + feature];
        }
    }
}

}  // namespace

// Layout: bins (n_rows, n_features) -> columns (n_features, n_rows).
// Grid:   one task per kTaskRows rows; in it, tiles of kTileRows rows.
// Writes: each task its own rows of every column.
void transpose_bins(const BinMatrix& bins, const std::int32_t* n_value_bins, std::uint8_t* columns,
                    int n_threads) {
    const Blocks tasks = row_tasks(bins.n_rows);
    parallel_for_stretches(tasks.count(), n_threads, [&](std::int64_t task, int) {
        for (std::int64_t begin = tasks.begin(task); begin < tasks.end(task); begin += kTileRows) {
            const std::int64_t end = std::min(begin + kTileRows, tasks.end(task));
            for (std::int64_t first = 0; first < bins.n_features; first += kSquare) {
                transpose_tile(bins, begin, end, first, std::min(kSquare, bins.n_features - first),
                               columns);
            }
            for (std::int64_t feature = 0; feature < bins.n_features; ++feature) {
                const std::uint8_t* column = columns + feature * bins.n_rows;
                std::uint8_t largest = 0;
                for (std::int64_t row = begin; row < end; ++row) {
                    largest = std::max(largest, column[row]);
                }
                if (largest > n_value_bins[feature]) {
                    throw std::invalid_argument("bins hold a code beyond the missing code");
                }
            }
        }
    });
}

}  // namespace torchgbdt

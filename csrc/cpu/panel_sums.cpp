#include "cpu/panel_sums.h"

#include "cpu/checks.h"
#include "cpu/gather_bytes.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace torchgbdt {

// Codes of row r lie at codes + r * row_stride.
struct CodeRows {
    const std::uint8_t* codes;
    std::int64_t row_stride;
};

// Rows whose codes are asked of memory while others are added: the next chunk's.
struct RowsAhead {
    CodeRows all;
    const RowId* rows;
    std::int64_t last;

    const std::int32_t* fixed_point;
    std::int64_t n_words;

    void prefetch(std::int64_t i) const {
        const std::int64_t row = rows[std::min(i, last)];
        __builtin_prefetch(all.codes + row * all.row_stride, 0, 2);
        __builtin_prefetch(fixed_point + row * n_words);
    }
};

namespace {

constexpr std::int64_t kChunkRows = 1024;  // added block after block: their codes stay in L2
constexpr std::int64_t kStride = PackedLayout::kStride;

// The packed words of a bin: a number, or two that are added as one vector.
template <int kWords>
struct CellOf {
    using Type = PackedWord;
};
template <>
struct CellOf<2> {
    typedef PackedWord Type __attribute__((vector_size(16)));
};
template <int kWords>
using Cell = typename CellOf<kWords>::Type;

// The inner loop: one row to kFeatures cells. What it reads is in local variables: the compiler
// cannot know that sums do not lie where those lie.
template <int kWords, int kFeatures>
void add_features(CodeRows rows, std::int64_t n_rows, const PackedWord* words, RowsAhead ahead,
                  PackedWord* packed) {
    const std::uint8_t* codes = rows.codes;
    for (std::int64_t i = 0; i < n_rows; ++i, codes += rows.row_stride) {
        ahead.prefetch(i);
        Cell<kWords> more;
        std::memcpy(&more, words + i * kWords, sizeof more);
#pragma GCC unroll 16
        for (int feature = 0; feature < kFeatures; ++feature) {
            std::size_t offset = std::size_t{codes[feature]} * sizeof more;
#if defined(__x86_64__) && !defined(__clang__)
            __asm__("" : "+r"(offset));  // GCC would add first and shift then: no addressing mode
#endif
            char* cell = reinterpret_cast<char*>(packed + feature * kStride * kWords) + offset;
            Cell<kWords> sum;
            std::memcpy(&sum, cell, sizeof sum);
            sum += more;
            std::memcpy(cell, &sum, sizeof sum);
        }
    }
}

// The same for any number of words.
void add_any(CodeRows rows, std::int64_t n_rows, const PackedWord* words, std::int64_t n_words,
             std::int64_t n_features, PackedWord* packed) {
    const std::uint8_t* codes = rows.codes;
    for (std::int64_t i = 0; i < n_rows; ++i, codes += rows.row_stride, words += n_words) {
        for (std::int64_t feature = 0; feature < n_features; ++feature) {
            PackedWord* cell = packed + (feature * kStride + codes[feature]) * n_words;
            for (std::int64_t word = 0; word < n_words; ++word) {
                cell[word] += words[word];
            }
        }
    }
}

using AddFeatures = void (*)(CodeRows, std::int64_t, const PackedWord*, RowsAhead, PackedWord*);

template <int kWords, std::size_t... kIndex>
constexpr auto loops_for(std::index_sequence<kIndex...>) {
    return std::array<AddFeatures, sizeof...(kIndex)>{
        add_features<kWords, static_cast<int>(kIndex) + 1>...};
}

// loops[n - 1] adds n features.
template <int kWords>
constexpr auto kLoops =
    loops_for<kWords>(std::make_index_sequence<PackedLayout::kMaxBlockFeatures>());

void add_block(CodeRows rows, std::int64_t n_rows, const PackedWord* words, std::int64_t n_words,
               std::int64_t n_features, const RowsAhead& ahead, PackedWord* packed) {
    const auto loop = static_cast<std::size_t>(n_features - 1);
    if (n_words == 1) {
        kLoops<1>[loop](rows, n_rows, words, ahead, packed);
    } else if (n_words == 2) {
        kLoops<2>[loop](rows, n_rows, words, ahead, packed);
    } else {
        add_any(rows, n_rows, words, n_words, n_features, packed);
    }
}

// words[i] = what row rows[i] adds.
template <int kWords>
void pack_rows(const std::int32_t* fixed_point, const RowId* rows, std::int64_t n_rows,
               std::int64_t n_words, PackedWord* words) {
    n_words = kWords > 0 ? kWords : n_words;
    for (std::int64_t i = 0; i < n_rows; ++i, words += n_words) {
        const std::int32_t* fixed = fixed_point + std::int64_t{rows[i]} * n_words;
        words[0] = pack(fixed[0]);
        for (std::int64_t word = 1; word < n_words; ++word) {
            words[word] = static_cast<PackedWord>(std::int64_t{fixed[word]});
        }
    }
}

}  // namespace

void PanelSums::sum_rows(const HistogramRows& in, std::int64_t begin, std::int64_t stop,
                         std::int64_t first, std::int64_t end, std::int64_t* cells) {
    packed_.resize(static_cast<std::size_t>(in.layout.panel_words()));
    words_.resize(static_cast<std::size_t>(kChunkRows * in.layout.n_words));
    codes_.resize(static_cast<std::size_t>(kChunkRows * in.layout.panel_features));
    bool is_first = true;
    do {
        const std::int64_t piece_end = std::min(begin + kMaxPackedRows, stop);
        for (; begin < piece_end; begin += kChunkRows) {
            const std::int64_t n_rows = std::min(kChunkRows, piece_end - begin);
            const std::int64_t next = begin + n_rows < stop ? begin + n_rows : begin;
            const RowsAhead ahead{{in.bins.codes, in.bins.n_features},
                                  in.row_order + next,
                                  std::min(kChunkRows, stop - next) - 1,
                                  in.fixed_point,
                                  in.layout.n_words};
            add_chunk(in, in.row_order + begin, n_rows, first, end, ahead);
        }
        begin = piece_end;
        is_first ? drain<false>(in, first, end, cells) : drain<true>(in, first, end, cells);
        is_first = false;
    } while (begin < stop);
}

void PanelSums::add_chunk(const HistogramRows& in, const RowId* rows, std::int64_t n_rows,
                          std::int64_t first, std::int64_t end, RowsAhead ahead) {
    check_row_order(rows, n_rows, in.bins.n_rows);
    const std::int64_t n_words = in.layout.n_words;
    const auto pack = n_words == 1 ? pack_rows<1> : n_words == 2 ? pack_rows<2> : pack_rows<0>;
    pack(in.fixed_point, rows, n_rows, n_words, words_.data());

    CodeRows codes{in.bins.codes + first + rows[0] * in.bins.n_features, in.bins.n_features};
    if (!are_side_by_side(rows, n_rows)) {
        gather_bytes(in.bins.codes + first, in.bins.n_features, end - first, rows, n_rows,
                     codes_.data());
        codes = {codes_.data(), end - first};
    }
    PackedWord* packed = packed_.data();
    for (std::int64_t feature = first; feature < end; feature += in.layout.block_features) {
        const std::int64_t n_features = std::min(in.layout.block_features, end - feature);
        // The first block asks for its first code, the others for their last: all of the row.
        ahead.all.codes = in.bins.codes + feature + (feature > first ? n_features - 1 : 0);
        add_block(codes, n_rows, words_.data(), n_words, n_features, ahead, packed);
        codes.codes += n_features;
        packed += n_features * kStride * n_words;
    }
}

// Moves packed sums into wide cells and leaves zeros.
template <bool kAdd>
void PanelSums::drain(const HistogramRows& in, std::int64_t first, std::int64_t end,
                      std::int64_t* cells) {
    const std::int64_t n_words = in.layout.n_words;
    const auto put = [](std::int64_t& cell, std::int64_t sum) { cell = kAdd ? cell + sum : sum; };
    for (std::int64_t feature = first; feature < end; ++feature) {
        PackedWord* packed = packed_.data() + (feature - first) * kStride * n_words;
        const std::int64_t n_bins =
            in.features.bin_offsets[feature + 1] - in.features.bin_offsets[feature];
        for (std::int64_t bin = 0; bin < n_bins; ++bin) {
            put(*cells++, packed_count(packed[bin * n_words]));
            put(*cells++, packed_gradient(packed[bin * n_words]));
            for (std::int64_t word = 1; word < n_words; ++word) {
                put(*cells++, static_cast<std::int64_t>(packed[bin * n_words + word]));
            }
        }
        std::fill_n(packed, n_bins * n_words, PackedWord{0});
    }
}

}  // namespace torchgbdt

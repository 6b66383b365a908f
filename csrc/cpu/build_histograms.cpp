// Sums of rounded gradients per (node, feature, bin), and the subtraction that spares half of them.
#include "cpu/checks.h"
#include "cpu/kernels.h"
#include "cpu/thread_pool.h"

#include <algorithm>
#include <cstring>
#include <vector>

namespace torchgbdt {
namespace {

// Rows between two drains of the packed sums: their count must fit into 16 bits.
constexpr std::int64_t kPieceRows = 16384;
static_assert(kPieceRows < 65536, "a packed word counts rows in 16 bits");

constexpr std::int64_t kChunkRows = 1024;   // words of a chunk: 8 KB, beside the sums in L1
constexpr std::int64_t kPrefetchRows = 16;  // how far ahead the bins of scattered rows are asked
constexpr std::int64_t kMinRowsToSplit = 8192;   // smaller nodes are not worth two thread meetings
constexpr std::int64_t kWorthwhileCells = 8192;  // visits of cells that are worth waking a thread

constexpr std::int64_t kBlockFeatures = 16;  // 16 features x 256 bins x 8 bytes: 32 KB of L1

// The count of a row and its first gradient travel in one 64-bit word, [16 bits | 48 bits], so that
// one addition serves both: up to 65,535 rows of |q| <= 2^30 stay below 2^46.
constexpr int kCountShift = 48;
constexpr std::uint64_t kOneRow = std::uint64_t{1} << kCountShift;

std::uint64_t pack(std::int32_t gradient) {
    return kOneRow + static_cast<std::uint64_t>(static_cast<std::int64_t>(gradient));
}

std::int64_t packed_gradient(std::uint64_t word) {
    const std::uint64_t sign_bit = std::uint64_t{1} << (kCountShift - 1);
    const std::uint64_t low = word & (kOneRow - 1);
    return static_cast<std::int64_t>(low ^ sign_bit) - static_cast<std::int64_t>(sign_bit);
}

std::int64_t packed_count(std::uint64_t word) {
    const auto gradient = static_cast<std::uint64_t>(packed_gradient(word));
    return static_cast<std::int64_t>((word - gradient) >> kCountShift);
}

// What all accumulators of one call read.
struct Inputs {
    const BinMatrix& bins;
    const FeatureBins& features;
    const RowId* row_order;
    const std::int32_t* fixed_point;
    int n_words;
};

// The packed sums of one worker: (total_bins + kSpareBins, n_words), those of all bins 0 between
// pieces of rows.
class Accumulator {
  public:
    // Adds the rows row_order[begin..end-1] to the cells of a histogram.
    void add_rows(const Inputs& in, std::int64_t begin, std::int64_t end, std::int64_t* cells) {
        n_bins_ = in.features.total_bins();
        packed_.resize(static_cast<std::size_t>((n_bins_ + kSpareBins) * in.n_words));
        words_.resize(static_cast<std::size_t>(kChunkRows * in.n_words));
        for (std::int64_t piece = begin; piece < end; piece += kPieceRows) {
            const std::int64_t piece_end = std::min(piece + kPieceRows, end);
            for (std::int64_t chunk = piece; chunk < piece_end; chunk += kChunkRows) {
                add_chunk(in, in.row_order + chunk, std::min(kChunkRows, piece_end - chunk));
            }
            drain(in.n_words, cells);
        }
    }

  private:
    // Any code of the last feature has a cell, so that no code needs to be looked at. Nothing that
    // is summed into spare cells is read.
    static constexpr std::int64_t kSpareBins = 255;

    void add_chunk(const Inputs& in, const RowId* rows, std::int64_t n_rows) {
        check_row_order(rows, n_rows, in.bins.n_rows);
        for (std::int64_t i = 0; i < n_rows; ++i) {
            const std::int32_t* fixed = in.fixed_point + std::int64_t{rows[i]} * in.n_words;
            std::uint64_t* words = words_.data() + i * in.n_words;
            words[0] = pack(fixed[0]);
            for (int word = 1; word < in.n_words; ++word) {
                words[word] = static_cast<std::uint64_t>(std::int64_t{fixed[word]});
            }
        }
        const std::int64_t n_features = in.features.n_features;
        for (std::int64_t first = 0; first < n_features; first += kBlockFeatures) {
            const std::int64_t end = std::min(first + kBlockFeatures, n_features);
            switch (in.n_words) {
                case 1:
                    add_features<1>(in, rows, n_rows, first, end);
                    break;
                case 2:
                    add_features<2>(in, rows, n_rows, first, end);
                    break;
                default:
                    add_features<0>(in, rows, n_rows, first, end);
            }
        }
    }

    // The inner loop of training. kWords is the number of words per row; 0: known at run time only.
    template <int kWords>
    void add_features(const Inputs& in, const RowId* rows, std::int64_t n_rows, std::int64_t first,
                      std::int64_t end) {
        const std::int64_t n_words = kWords > 0 ? kWords : in.n_words;
        const std::int64_t n_features = in.features.n_features;
        const std::int64_t* offsets = in.features.bin_offsets;
        std::uint64_t* packed = packed_.data();
        const std::uint64_t* words = words_.data();
        for (std::int64_t i = 0; i < n_rows; ++i, words += n_words) {
            const std::int64_t ahead = rows[std::min(i + kPrefetchRows, n_rows - 1)];
            __builtin_prefetch(in.bins.codes + ahead * n_features + first);
            const std::uint8_t* codes = in.bins.codes + std::int64_t{rows[i]} * n_features;
            for (std::int64_t feature = first; feature < end; ++feature) {
                std::uint64_t* cell = packed + (offsets[feature] + codes[feature]) * n_words;
                for (std::int64_t word = 0; word < n_words; ++word) {
                    cell[word] += words[word];
                }
            }
        }
    }

    // Moves the packed sums into wide cells and leaves zeros.
    void drain(int n_words, std::int64_t* cells) {
        for (std::int64_t bin = 0; bin < n_bins_; ++bin, cells += 1 + n_words) {
            std::uint64_t* packed = packed_.data() + bin * n_words;
            if (packed[0] == 0) {
                continue;  // no rows
            }
            cells[0] += packed_count(packed[0]);
            cells[1] += packed_gradient(packed[0]);
            for (int word = 1; word < n_words; ++word) {
                cells[1 + word] += static_cast<std::int64_t>(packed[word]);
            }
            std::fill(packed, packed + n_words, 0);
        }
    }

    std::int64_t n_bins_ = 0;
    std::vector<std::uint64_t> packed_;
    std::vector<std::uint64_t> words_;
};

// One node, its rows shared out among workers, each with a histogram of its own.
void build_by_rows(const Inputs& in, const NodeRecord& node, std::int64_t* slot,
                   std::int64_t slot_size, std::vector<Accumulator>& accumulators) {
    constexpr std::int64_t kBlockCells = 4096;
    constexpr std::int64_t kPiecesPerThread = 4;  // so that a late thread costs little
    const auto n_threads = static_cast<int>(accumulators.size());
    const std::int64_t share = node.n_rows / (kPiecesPerThread * n_threads) + 1;
    const Blocks pieces{node.n_rows, std::min(std::max(share, kChunkRows), kPieceRows)};
    // Worker 0 sums into the slot itself.
    std::vector<std::vector<std::int64_t>> partials(worker_count(pieces.count(), n_threads));
    parallel_for(pieces.count(), n_threads, [&](std::int64_t piece, int worker) {
        partials[worker].resize(static_cast<std::size_t>(worker == 0 ? 0 : slot_size));
        std::int64_t* cells = worker == 0 ? slot : partials[worker].data();
        accumulators[worker].add_rows(in, node.begin + pieces.begin(piece),
                                      node.begin + pieces.end(piece), cells);
    });
    const Blocks blocks{slot_size, kBlockCells};
    parallel_for(blocks.count(), n_threads, [&](std::int64_t block, int) {
        for (const std::vector<std::int64_t>& partial : partials) {
            if (!partial.empty()) {
                for (std::int64_t i = blocks.begin(block); i < blocks.end(block); ++i) {
                    slot[i] += partial[i];
                }
            }
        }
    });
}

}  // namespace

// Layout: bins row-major; fixed_point (n_rows, n_words); slots (total_bins, 1 + n_words).
// Grid:   large nodes one after another, their rows shared out; then small nodes, one task each.
// Writes: each node its slot. Extra memory: per worker packed sums and, for large nodes, a slot.
void build_histograms(const BinMatrix& bins, const FeatureBins& features, const Words& words,
                      const RowId* row_order, const std::int32_t* fixed_point,
                      const NodeRecord* nodes, std::int64_t n_nodes, std::int64_t* histograms,
                      int n_threads) {
    const Inputs in{bins, features, row_order, fixed_point, words.count()};
    const std::int64_t slot_size = features.total_bins() * words.per_cell();
    std::vector<const NodeRecord*> built;
    std::int64_t n_rows = 0;  // of nodes that are still to be built
    for (const NodeRecord* node = nodes; node != nodes + n_nodes; ++node) {
        if (node->build) {
            built.push_back(node);
            n_rows += node->n_rows;
        }
    }
    // Longest first: the last tasks to begin are then short ones.
    std::stable_sort(built.begin(), built.end(), [](const NodeRecord* a, const NodeRecord* b) {
        return a->n_rows > b->n_rows;
    });

    const auto n_built = static_cast<std::int64_t>(built.size());
    const std::int64_t large = std::max(kMinRowsToSplit, n_rows / (2 * std::int64_t{n_threads}));
    const std::int64_t most_tasks = n_rows / kChunkRows + n_built;  // pieces have kChunkRows rows
    std::vector<Accumulator> accumulators(worker_count(most_tasks, n_threads));
    const auto slot_of = [&](const NodeRecord& node) {
        std::int64_t* slot = histograms + node.slot * slot_size;
        std::memset(slot, 0, static_cast<std::size_t>(slot_size) * sizeof *slot);
        return slot;
    };
    std::size_t n_large = 0;
    for (; n_threads > 1 && n_large < built.size() && built[n_large]->n_rows >= large; ++n_large) {
        const NodeRecord& node = *built[n_large];
        build_by_rows(in, node, slot_of(node), slot_size, accumulators);
        n_rows -= node.n_rows;
    }
    const std::int64_t n_small = n_built - static_cast<std::int64_t>(n_large);
    // Each row adds to a cell per feature, and each node clears and fills its cells.
    const std::int64_t work = n_rows * features.n_features + n_small * features.total_bins();
    n_threads = threads_worth(work, kWorthwhileCells, n_threads);
    parallel_for(n_small, n_threads, [&](std::int64_t task, int worker) {
        const NodeRecord& node = *built[n_large + static_cast<std::size_t>(task)];
        accumulators[worker].add_rows(in, node.begin, node.begin + node.n_rows, slot_of(node));
    });
}

// Layout: slots of slot_size words.
// Grid:   one task per kBlockWords words of each node without `build`.
// Writes: each task its words of the node's slot; reads the sibling's.
void subtract_histograms(const NodeRecord* nodes, std::int64_t n_nodes, std::int64_t slot_size,
                         std::int64_t* histograms, int n_threads) {
    constexpr std::int64_t kBlockWords = 8192;
    std::vector<const NodeRecord*> derived;
    for (const NodeRecord* node = nodes; node != nodes + n_nodes; ++node) {
        if (!node->build) {
            derived.push_back(node);
        }
    }
    const Blocks blocks{slot_size, kBlockWords};
    const auto n_derived = static_cast<std::int64_t>(derived.size());
    n_threads = threads_worth(n_derived * slot_size, kBlockWords, n_threads);
    parallel_for(n_derived * blocks.count(), n_threads, [&](std::int64_t task, int) {
        const NodeRecord& node = *derived[static_cast<std::size_t>(task / blocks.count())];
        std::int64_t* slot = histograms + node.slot * slot_size;
        const std::int64_t* sibling = histograms + node.sibling_slot * slot_size;
        const std::int64_t block = task % blocks.count();
        for (std::int64_t i = blocks.begin(block); i < blocks.end(block); ++i) {
            slot[i] -= sibling[i];
        }
    });
}

}  // namespace torchgbdt

// Sums over rows of the bins of one panel of features: the inner loop of training.
#pragma once

#include "cpu/packed_sums.h"
#include "cpu/views.h"

#include <cstdint>
#include <vector>

namespace torchgbdt {

// What all sums of one call read.
struct HistogramRows {
    const BinMatrix& bins;
    const FeatureBins& features;
    const RowId* row_order;
    const std::int32_t* fixed_point;
    PackedLayout layout;
};

// How sums are shared out.
constexpr std::int64_t kTasksPerThread = 4;       // so that a late thread costs little
constexpr std::int64_t kWorthwhileVisits = 8192;  // visits that are worth waking a thread for

struct RowsAhead;

// Memory of one worker.
class PanelSums {
  public:
    // Writes the cells of features first..end-1, summed over row_order[begin..stop-1]; these
    // features' cells alone. Throws if a row is out of range; a code is not looked at, and any has
    // room.
    void sum_rows(const HistogramRows& in, std::int64_t begin, std::int64_t stop,
                  std::int64_t first, std::int64_t end, std::int64_t* cells);

  private:
    void add_chunk(const HistogramRows& in, const RowId* rows, std::int64_t n_rows,
                   std::int64_t first, std::int64_t end, RowsAhead ahead);
    template <bool kAdd>
    void drain(const HistogramRows& in, std::int64_t first, std::int64_t end, std::int64_t* cells);

    std::vector<PackedWord> packed_;   // cells of features are 0 between calls
    std::vector<PackedWord> words_;    // what the rows of a chunk add
    std::vector<std::uint8_t> codes_;  // of the rows of a chunk, where they lie scattered
};

}  // namespace torchgbdt

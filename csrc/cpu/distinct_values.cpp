// Finds the distinct values of features that have few. The definition is
// core.columns.distinct_values.
#include "cpu/kernels.h"
#include "cpu/thread_pool.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <vector>

namespace torchgbdt {
namespace {

constexpr std::int64_t kBlockRows = 256;
constexpr std::int64_t kMaxTaskFeatures = 16;  // of float32: one cache line of a row

// Up to 256 numbers in a hash table that is three quarters empty.
class DistinctSet {
  public:
    DistinctSet() { slots_.fill(std::numeric_limits<double>::quiet_NaN()); }

    std::int64_t size() const { return size_; }

    // Not for NaN, which marks free slots; -0 counts as +0. At most 256 different numbers.
    void insert(double x) {
        const double number = x + 0.0;
        std::uint64_t bits;
        std::memcpy(&bits, &number, sizeof bits);
        std::size_t slot = (bits * 0x9e3779b97f4a7c15u) >> (64 - kSlotBits);
        while (slots_[slot] != number) {
            if (slots_[slot] != slots_[slot]) {
                slots_[slot] = number;
                ++size_;
                return;
            }
            slot = (slot + 1) % slots_.size();
        }
    }

    // Writes them ascending; returns how many they are.
    std::int64_t write(double* values) const {
        double* end = std::copy_if(slots_.begin(), slots_.end(), values,
                                   [](double slot) { return slot == slot; });
        std::sort(values, end);
        return end - values;
    }

  private:
    static constexpr int kSlotBits = 10;

    std::array<double, std::size_t{1} << kSlotBits> slots_;
    std::int64_t size_ = 0;
};

// Reads rows until all are read or there are more than `limit` values; returns whether there are.
bool exceeds(const MatrixView& matrix, std::int64_t feature, const std::int64_t* rows,
             std::int64_t begin, std::int64_t count, std::int64_t limit, DistinctSet& found) {
    std::array<double, kBlockRows> values;
    load_feature(matrix, feature, rows, begin, count, values.data(), 1);
    for (std::int64_t i = 0; i < count; ++i) {
        const double x = values[static_cast<std::size_t>(i)];
        if (x == x) {
            found.insert(x);
            if (found.size() > limit) {
                return true;
            }
        }
    }
    return false;
}

}  // namespace

// Layout: X as it lies; values (n_features, limit).
// Grid:   one task per few features, enough for all threads; in it, blocks of kBlockRows rows.
// Writes: each task what belongs to its features.
void distinct_values(const MatrixView& matrix, const std::int64_t* kept_rows, std::int64_t n_kept,
                     std::int64_t first_feature, std::int64_t n_features, std::int64_t limit,
                     double* values, std::int64_t* counts, int n_threads) {
    const std::int64_t share = (n_features + n_threads - 1) / n_threads;
    const Blocks tasks{n_features, std::clamp<std::int64_t>(share, 1, kMaxTaskFeatures)};
    parallel_for(tasks.count(), n_threads, [&](std::int64_t task, int) {
        const std::int64_t first = tasks.begin(task);
        std::vector<DistinctSet> sets(static_cast<std::size_t>(tasks.end(task) - first));
        std::vector<std::size_t> few(sets.size());
        for (std::size_t i = 0; i < few.size(); ++i) {
            few[i] = i;
            counts[first + static_cast<std::int64_t>(i)] = limit + 1;
        }
        for (std::int64_t begin = 0; begin < n_kept && !few.empty(); begin += kBlockRows) {
            const std::int64_t count = std::min(kBlockRows, n_kept - begin);
            const auto is_beyond = [&](std::size_t i) {
                return exceeds(matrix, first_feature + first + static_cast<std::int64_t>(i),
                               kept_rows, begin, count, limit, sets[i]);
            };
            few.erase(std::remove_if(few.begin(), few.end(), is_beyond), few.end());
        }
        for (const std::size_t i : few) {
            const std::int64_t index = first + static_cast<std::int64_t>(i);
            counts[index] = sets[i].write(values + index * limit);
        }
    });
}

}  // namespace torchgbdt

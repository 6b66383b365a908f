// Rows in another order: whatever belongs to a row moves when rows are stored anew.
#include "cpu/checks.h"
#include "cpu/gather_bytes.h"
#include "cpu/kernels.h"
#include "cpu/own_stretches.h"

#include <algorithm>

namespace torchgbdt {
namespace {

constexpr std::int64_t kBatchRows = 64;  // asked of memory together
constexpr std::int64_t kLineBytes = 64;

}  // namespace

// Layout: given (n_given, width), gathered (n_rows, width), in bytes.
// Grid:   one task per kTaskRows rows; in it, batches: while one is copied, the next is fetched.
// Writes: each task its rows.
void gather_rows(const std::uint8_t* given, std::int64_t n_given, std::int64_t width,
                 const RowId* rows, std::int64_t n_rows, std::uint8_t* gathered, int n_threads) {
    const Blocks tasks = row_tasks(n_rows);
    parallel_for_stretches(tasks.count(), n_threads, [&](std::int64_t task, int) {
        const std::int64_t begin = tasks.begin(task), end = tasks.end(task);
        check_row_order(rows + begin, end - begin, n_given);
        const auto fetch = [&](std::int64_t first) {
            for (std::int64_t i = first; i < std::min(first + kBatchRows, end); ++i) {
                const std::uint8_t* row = given + rows[i] * width;
                for (std::int64_t place = 0; place < width; place += kLineBytes) {
                    __builtin_prefetch(row + place);
                }
                __builtin_prefetch(row + width - 1);
            }
        };
        fetch(begin);
        for (std::int64_t first = begin; first < end; first += kBatchRows) {
            const std::int64_t count = std::min(kBatchRows, end - first);
            fetch(first + count);
            std::uint8_t* out = gathered + first * width;
            if (width == 4) {  // a constant that the compiler knows is one load and one store
                gather_bytes(given, 4, 4, rows + first, count, out);
            } else {
                gather_bytes(given, width, width, rows + first, count, out);
            }
        }
    });
}

}  // namespace torchgbdt

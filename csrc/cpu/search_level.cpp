// From rows to splits in one pass over the histograms of a level, while they lie in caches.
//
//     build_histograms -> subtract_histograms -> find_splits       three passes over all of memory
//
//     per family and group of features                            one pass
//         sum the rows of the built node
//         parent - built = derived                                in place, or in scratch memory
//         search both
//
// Ranks must exchange histograms in between, so several of them use the three kernels.
#include "cpu/checks.h"
#include "cpu/feature_search.h"
#include "cpu/float_environment.h"
#include "cpu/kernels.h"
#include "cpu/panel_sums.h"
#include "cpu/thread_pool.h"

#include <algorithm>
#include <vector>

namespace torchgbdt {
namespace {

constexpr std::int64_t kMinTaskFeatures = 8;   // each group of features reads the rows again
constexpr std::int64_t kGroupWords = 1 << 16;  // 512 KB of packed sums and cells stay in L2

// Work is counted in visits: one row that is added to the cell of one feature.
constexpr std::int64_t kLargeVisits = 1 << 18;  // of a node that is worth sharing out by rows
constexpr std::int64_t kVisitsPerSearch = 4;    // take as long as searching one bin

// A node that is built, and the sibling that is derived from it; null for none.
struct Family {
    const NodeRecord* built;
    const NodeRecord* derived;
    bool is_large = false;  // its rows are shared out before features are
};

std::vector<Family> families(const NodeRecord* nodes, std::int64_t n_nodes) {
    const NodeRecord* end = nodes + n_nodes;
    const auto derives = [](const NodeRecord& node, const NodeRecord& built) {
        return !node.build && built.build && node.sibling_slot == built.slot;
    };
    std::vector<Family> found;
    for (const NodeRecord* node = nodes; node != end;) {
        const NodeRecord* next = node + 1;
        if (next != end && derives(*next, *node)) {
            found.push_back({node, next});
        } else if (next != end && derives(*node, *next)) {
            found.push_back({next, node});
        } else {
            require(node->build, "a node is to be subtracted, but its sibling is not beside it");
            found.push_back({node, nullptr});
        }
        node += found.back().derived == nullptr ? 1 : 2;
    }
    return found;
}

// The level, as tasks see it.
struct Level {
    const HistogramRows& in;
    const Words& words;
    const SplitSearch& search;
    const NodeRecord* nodes;
    const std::int64_t* sums;
    std::int64_t* histograms;
    bool keep;

    // Visits, with the search counted in the same unit.
    std::int64_t work_of(const Family& family) const {
        const std::int64_t n_searched = family.derived == nullptr ? 1 : 2;
        return family.built->n_rows * in.features.n_features +
               n_searched * kVisitsPerSearch * in.features.total_bins();
    }

    std::int64_t* cells_of(const NodeRecord& node, std::int64_t feature) const {
        const std::int64_t bin =
            node.slot * in.features.total_bins() + in.features.bin_offsets[feature];
        return histograms + bin * words.per_cell();
    }

    // Words of the cells of features first..end-1.
    std::int64_t size_of(std::int64_t first, std::int64_t end) const {
        const std::int64_t* offsets = in.features.bin_offsets;
        return (offsets[end] - offsets[first]) * words.per_cell();
    }
};

// Features are grouped so that their cells stay in L2, and that there is work for all threads.
// Blocks{n, size}.count() is n / size, rounded up.
Blocks feature_groups(const Level& level, std::int64_t n_families, int n_threads) {
    const std::int64_t n_features = level.in.features.n_features;
    if (n_features == 0 || n_families == 0) {
        return {0, 1};
    }
    const std::int64_t words_per_bin = level.words.count() + 2 * level.words.per_cell();
    std::int64_t size = std::clamp<std::int64_t>(
        kGroupWords / (PackedLayout::kStride * words_per_bin), 1, level.in.layout.panel_features);
    if (n_threads > 1) {
        const Blocks per_family{kTasksPerThread * n_threads, n_families};
        const Blocks shares{n_features, per_family.count()};
        size = std::min(size, std::max(shares.count(), kMinTaskFeatures));
    }
    const std::int64_t n_groups = Blocks{n_features, size}.count();
    return {n_features, Blocks{n_features, n_groups}.count()};  // of about one size
}

// Memory of one worker: its packed sums, and cells that nobody reads again.
class Worker {
  public:
    // Sums, subtracts and searches features first..end-1 of a family.
    void run(const Level& level, const Family& family, std::int64_t first, std::int64_t end,
             std::int64_t group, GroupSplits& found) {
        const std::int64_t size = level.size_of(first, end);
        const NodeRecord& built = *family.built;
        std::int64_t* cells = level.cells_of(built, first);
        if (!family.is_large) {
            cells = level.keep ? cells : scratch(built_, size);
            sums_.sum_rows(level.in, built.begin, built.begin + built.n_rows, first, end, cells);
        }
        search_node(level, built, cells, first, end, group, found);
        if (family.derived != nullptr) {
            std::int64_t* parent = level.cells_of(*family.derived, first);
            std::int64_t* derived = level.keep ? parent : scratch(derived_, size);
            for (std::int64_t i = 0; i < size; ++i) {
                derived[i] = parent[i] - cells[i];
            }
            search_node(level, *family.derived, derived, first, end, group, found);
        }
    }

  private:
    static std::int64_t* scratch(std::vector<std::int64_t>& memory, std::int64_t size) {
        memory.resize(static_cast<std::size_t>(size));
        return memory.data();
    }

    static void search_node(const Level& level, const NodeRecord& node, const std::int64_t* cells,
                            std::int64_t first, std::int64_t end, std::int64_t group,
                            GroupSplits& found) {
        const std::int64_t index = &node - level.nodes;
        const NodeTotals totals{node.count, level.sums + index * 2 * level.words.n_outputs};
        found.search(level.search, index, group, totals, cells, first, end);
    }

    PanelSums sums_;
    std::vector<std::int64_t> built_;
    std::vector<std::int64_t> derived_;
};

}  // namespace

// Layout: bins row-major; fixed_point (n_rows, n_words); slots (total_bins, words.per_cell());
//         sums (n_nodes, n_outputs, 2).
// Grid:   pieces of rows of large nodes; then one task per family and group of features, those of
//         most rows first.
// Writes: each task its cells of two slots, or none, and the best splits of its features; the
//         caller those of each node.
void search_level(const BinMatrix& bins, const FeatureBins& features, const Words& words,
                  const RowId* row_order, const std::int32_t* fixed_point, const NodeRecord* nodes,
                  const std::int64_t* sums, std::int64_t n_nodes, const SplitRules& rules,
                  bool keep, std::int64_t* histograms, SplitRecord* splits, std::int64_t* left_sums,
                  int n_threads) {
    const DefaultFloatEnvironment environment;  // some is computed outside of tasks
    const SplitSearch search = split_search(features, words, rules);
    const HistogramRows in{bins, features, row_order, fixed_point,
                           PackedLayout(features.n_features, words.count())};
    const Level level{in, words, search, nodes, sums, histograms, keep};
    std::vector<Family> all = families(nodes, n_nodes);
    std::int64_t work = 0;
    for (const Family& family : all) {
        work += level.work_of(family);
    }
    n_threads = threads_worth(work, kWorthwhileVisits, n_threads);

    const std::int64_t share = work / (kTasksPerThread * std::int64_t{n_threads});
    std::vector<NodeRecord> large;
    for (Family& family : all) {
        const std::int64_t visits = family.built->n_rows * features.n_features;
        family.is_large = n_threads > 1 && visits > std::max(share, kLargeVisits);
        if (family.is_large) {
            large.push_back(*family.built);
        }
    }
    build_histograms(bins, features, words, row_order, fixed_point, large.data(),
                     static_cast<std::int64_t>(large.size()), histograms, n_threads);

    std::stable_sort(all.begin(), all.end(), [](const Family& a, const Family& b) {
        return a.built->n_rows > b.built->n_rows;
    });
    const auto n_families = static_cast<std::int64_t>(all.size());
    const Blocks groups = feature_groups(level, n_families, n_threads);
    const std::int64_t n_tasks = n_families * groups.count();
    GroupSplits found(n_nodes, groups.count(), words.n_outputs);
    std::vector<Worker> workers(worker_count(n_tasks, n_threads));
    parallel_for(n_tasks, n_threads, [&](std::int64_t task, int worker) {
        const std::int64_t group = task % groups.count();
        workers[static_cast<std::size_t>(worker)].run(
            level, all[static_cast<std::size_t>(task / groups.count())], groups.begin(group),
            groups.end(group), group, found);
    });
    found.join(splits, left_sums);
}

}  // namespace torchgbdt

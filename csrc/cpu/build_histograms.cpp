// Sums of rounded gradients per (node, feature, bin), and the subtraction that spares half of them.
#include "cpu/kernels.h"
#include "cpu/panel_sums.h"
#include "cpu/thread_pool.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace torchgbdt {
namespace {

constexpr std::int64_t kMinTaskCells = 1 << 17;  // 50 microseconds: worth a partial sum
constexpr std::int64_t kBlockWords = 8192;       // of a histogram that is added or subtracted

// Some rows of a node and one panel of features.
struct Task {
    std::int64_t begin;  // in row_order
    std::int64_t end;
    std::int64_t first_feature;
    std::int64_t end_feature;
    std::int64_t* histogram;  // the node's, or a partial one
};

// A partial histogram that must be added to that of its node.
struct Partial {
    const std::int64_t* from;
    std::int64_t* to;
};

// Who sums what. Where there are too few panels and nodes to keep the threads busy, the rows of a
// node are cut into pieces; the first of them sums into the node's slot, others into partial ones.
struct Schedule {
    std::vector<Task> tasks;
    std::vector<Partial> partials;
    std::unique_ptr<std::int64_t[]> memory;  // of partial histograms: kTasksPerThread per thread
    std::int64_t work = 0;                   // additions to cells, and cells to be written
};

Schedule schedule(const HistogramRows& in, const NodeRecord* nodes, std::int64_t n_nodes,
                  std::int64_t slot_size, std::int64_t* histograms, int n_threads) {
    const Blocks panels{in.features.n_features, in.layout.panel_features};
    Schedule plan;
    for (const NodeRecord* node = nodes; node != nodes + n_nodes; ++node) {
        plan.work +=
            node->build ? node->n_rows * in.features.n_features + in.features.total_bins() : 0;
    }
    const std::int64_t share = plan.work / (kTasksPerThread * std::int64_t{n_threads});
    const std::int64_t task_rows = std::max(share, kMinTaskCells) / panels.size + 1;
    const auto pieces_of = [&](const NodeRecord& node) {
        return Blocks{node.n_rows,
                      n_threads == 1 ? std::max<std::int64_t>(node.n_rows, 1) : task_rows};
    };
    std::int64_t n_partials = 0;
    for (const NodeRecord* node = nodes; node != nodes + n_nodes; ++node) {
        n_partials += node->build ? std::max<std::int64_t>(pieces_of(*node).count(), 1) - 1 : 0;
    }
    plan.memory.reset(new std::int64_t[static_cast<std::size_t>(n_partials * slot_size)]);
    std::int64_t* next_partial = plan.memory.get();
    for (const NodeRecord* node = nodes; node != nodes + n_nodes; ++node) {
        if (!node->build) {
            continue;
        }
        std::int64_t* slot = histograms + node->slot * slot_size;
        const Blocks pieces = pieces_of(*node);
        for (std::int64_t piece = 0; piece < std::max<std::int64_t>(pieces.count(), 1); ++piece) {
            std::int64_t* histogram = slot;
            if (piece > 0) {
                histogram = next_partial;
                plan.partials.push_back({histogram, slot});
                next_partial += slot_size;
            }
            for (std::int64_t panel = 0; panel < panels.count(); ++panel) {
                plan.tasks.push_back({node->begin + pieces.begin(piece),
                                      node->begin + pieces.end(piece), panels.begin(panel),
                                      panels.end(panel), histogram});
            }
        }
    }
    // Longest first: the last tasks to begin are then short ones.
    std::stable_sort(plan.tasks.begin(), plan.tasks.end(), [](const Task& a, const Task& b) {
        return a.end - a.begin > b.end - b.begin;
    });
    return plan;
}

}  // namespace

// Layout: bins row-major; fixed_point (n_rows, n_words); slots (total_bins, 1 + n_words).
// Grid:   one task per node, panel of features and piece of rows; then blocks of partial sums.
// Writes: each task its cells of a slot or of a partial one.
void build_histograms(const BinMatrix& bins, const FeatureBins& features, const Words& words,
                      const RowId* row_order, const std::int32_t* fixed_point,
                      const NodeRecord* nodes, std::int64_t n_nodes, std::int64_t* histograms,
                      int n_threads) {
    const HistogramRows in{bins, features, row_order, fixed_point,
                           PackedLayout(features.n_features, words.count())};
    const std::int64_t slot_size = features.total_bins() * words.per_cell();
    const Schedule plan = schedule(in, nodes, n_nodes, slot_size, histograms, n_threads);
    const auto n_tasks = static_cast<std::int64_t>(plan.tasks.size());
    n_threads = threads_worth(plan.work, kWorthwhileVisits, n_threads);
    std::vector<PanelSums> workers(worker_count(n_tasks, n_threads));
    parallel_for(n_tasks, n_threads, [&](std::int64_t index, int worker) {
        const Task& task = plan.tasks[static_cast<std::size_t>(index)];
        std::int64_t* cells =
            task.histogram + features.bin_offsets[task.first_feature] * words.per_cell();
        workers[static_cast<std::size_t>(worker)].sum_rows(
            in, task.begin, task.end, task.first_feature, task.end_feature, cells);
    });
    const Blocks blocks{slot_size, kBlockWords};
    parallel_for(plan.partials.empty() ? 0 : blocks.count(), n_threads,
                 [&](std::int64_t block, int) {
                     for (const Partial& partial : plan.partials) {
                         for (std::int64_t i = blocks.begin(block); i < blocks.end(block); ++i) {
                             partial.to[i] += partial.from[i];
                         }
                     }
                 });
}

// Layout: slots of slot_size words.
// Grid:   one task per kBlockWords words of each node without `build`.
// Writes: each task its words of the node's slot; reads the sibling's.
void subtract_histograms(const NodeRecord* nodes, std::int64_t n_nodes, std::int64_t slot_size,
                         std::int64_t* histograms, int n_threads) {
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

// Sums the partial histograms of each node's chunks, and subtracts them from the node's sibling.
//
// Constants: CONSTANT_HESSIAN, TILE_FEATURES, PARTIAL_WORDS as in build_histograms.metal.
#include "metal/partials.h"

using namespace torchgbdt;

#define TARGET_WORDS 4

#if CONSTANT_HESSIAN
#define WORDS_PER_OUTPUT 1  // in fixed_point and histograms
#else
#define WORDS_PER_OUTPUT 2
#endif

// Layout: partials as in partials.h; histograms (n_slots, 1 + n_words, total_bins).
// Grid:   one thread per (feature * BINS + bin, node, output); groups of 256.
// Writes: each thread its gradients (and Hessians) of a cell, that of output 0 also the count, in
//         the node's slot; it then subtracts them in the sibling's slot, if there is one.
kernel void reduce_histograms(
    device const uint* partials [[buffer(0)]],  // IN int32, from build_histograms, same nodes
    device const int* features [[buffer(1)]],   // IN int32 (n_features, 2)
    device long* histograms [[buffer(2)]],      // IN-OUT int64 (n_slots, 1 + n_words, total_bins)
    constant int* targets [[buffer(3)]],     // IN (n_nodes, 4): first chunk, n_chunks, slot, slot
                                             //    of the sibling that is parent - node, or -1
    constant int& n_chunks [[buffer(4)]],    // of all nodes of the slab
    constant int& total_bins [[buffer(5)]],  // cells of a slot
    uint3 position [[thread_position_in_grid]], uint3 grid [[threads_per_grid]]) {
    const uint feature = position.x / BINS;
    const uint bin = position.x % BINS;
    if (bin > uint(features[2 * feature + 1])) {
        return;  // the feature has value bins 0..n-1 and the missing code n
    }
    constant int* target = targets + TARGET_WORDS * position.y;
    const uint n_features = grid.x / BINS;
    const uint n_tiles = (n_features + TILE_FEATURES - 1) / TILE_FEATURES;
    const uint tile = feature / TILE_FEATURES;
    const ulong chunk_stride = partial_begin(0, 1, 0, n_chunks, n_tiles);
    device const uint* partial = partials +
                                 partial_begin(position.z, target[0], tile, n_chunks, n_tiles) +
                                 (feature % TILE_FEATURES) * BINS + bin;

    long count = 0;
    long gradient = 0;
    long hessian = 0;
    for (int chunk = 0; chunk < target[1]; ++chunk, partial += chunk_stride) {
        count += partial[0];
        gradient += from_words(partial[PARTIAL_STRIDE], partial[2 * PARTIAL_STRIDE]);
#if !CONSTANT_HESSIAN
        hessian += from_words(partial[3 * PARTIAL_STRIDE], partial[4 * PARTIAL_STRIDE]);
#endif
    }

    const uint n_planes = 1 + WORDS_PER_OUTPUT * grid.z;
    const ulong cell = uint(features[2 * feature]) + bin;
    const ulong plane = 1 + WORDS_PER_OUTPUT * position.z;
    device long* slot = histograms + ulong(target[2]) * n_planes * total_bins + cell;
    if (position.z == 0) {
        slot[0] = count;
    }
    slot[plane * total_bins] = gradient;
#if !CONSTANT_HESSIAN
    slot[(plane + 1) * total_bins] = hessian;
#endif
    if (target[3] < 0) {
        return;
    }
    device long* sibling = histograms + ulong(target[3]) * n_planes * total_bins + cell;
    if (position.z == 0) {
        sibling[0] -= count;
    }
    sibling[plane * total_bins] -= gradient;
#if !CONSTANT_HESSIAN
    sibling[(plane + 1) * total_bins] -= hessian;
#endif
}

// Sums the partial histograms of each node's chunks, and subtracts them from the node's sibling.
//
// Constants: CONSTANT_HESSIAN, TILE_FEATURES, PARTIAL_WORDS as in build_histograms.metal.
#include "metal/long_words.h"
#include "metal/partials.h"
#include "metal/turns.h"

using namespace torchgbdt;

constant uint target_words = 4;

constant uint words_per_output = CONSTANT_HESSIAN ? 1 : 2;  // in fixed_point and histograms

// Layout: partials as in partials.h; histograms (n_slots, 1 + n_words, total_bins).
// Grid:   one thread per (tile * tile_cells + cell, node, output), in groups of any size.
// Writes: each thread its output's sums of a cell, that of output 0 also the count, in the node's
//         slot; it then subtracts them in the sibling's slot, if there is one.
kernel void reduce_histograms(
    device const int* partials [[buffer(0)]],  // IN int32, from build_histograms, same nodes
    device const int* features [[buffer(1)]],  // IN int32 (n_features, 2)
    device long* histograms [[buffer(2)]],     // IN-OUT int64 (n_slots, 1 + n_words, total_bins)
    constant int* targets [[buffer(3)]],       // IN (n_nodes, 4): first chunk, n_chunks, slot, slot
                                               //    of the sibling that is parent - node, or -1
    constant int& n_chunks [[buffer(4)]],      // of all nodes of the slab
    constant int& n_features [[buffer(5)]],    // without padding
    constant int& total_bins [[buffer(6)]],    // cells of a slot
    device atomic_uint* last_turn [[buffer(7)]], constant int& turn [[buffer(8)]],  // see turns.h
    uint3 position [[thread_position_in_grid]], uint3 grid [[threads_per_grid]]) {
    take_turn(last_turn, turn, position.x | position.y | position.z);
    const uint tile = position.x / tile_cells;
    const uint cell = position.x % tile_cells;
    const uint feature = tile * TILE_FEATURES + cell % TILE_FEATURES;
    const uint bin = cell / TILE_FEATURES;
    if (feature >= uint(n_features) || bin > uint(features[2 * feature + 1])) {
        return;  // the feature has value bins 0..n-1 and the missing code n
    }
    constant int* target = targets + target_words * position.y;
    const uint n_tiles = grid.x / tile_cells;
    const ulong chunk_stride = partial_begin(0, 1, 0, n_chunks, n_tiles);
    device const int* partial =
        partials + partial_begin(position.z, target[0], tile, n_chunks, n_tiles) + cell;

    long count = 0;
    long gradient = 0;
#if !CONSTANT_HESSIAN
    long hessian = 0;
#endif
    for (int chunk = 0; chunk < target[1]; ++chunk, partial += chunk_stride) {
        count += partial[0];
        gradient += long_of_words(partial[tile_cells], partial[2 * tile_cells]);
#if !CONSTANT_HESSIAN
        hessian += long_of_words(partial[3 * tile_cells], partial[4 * tile_cells]);
#endif
    }

    const ulong slot_size = ulong(1 + words_per_output * grid.z) * total_bins;
    const ulong of_count = uint(features[2 * feature]) + bin;
    const ulong of_gradient = of_count + ulong(1 + words_per_output * position.z) * total_bins;
    const bool is_first = position.z == 0;

    device long* built = histograms + target[2] * slot_size;
    if (is_first) {
        built[of_count] = count;
    }
    built[of_gradient] = gradient;
#if !CONSTANT_HESSIAN
    built[of_gradient + total_bins] = hessian;
#endif

    if (target[3] >= 0) {
        device long* derived = histograms + target[3] * slot_size;
        if (is_first) {
            derived[of_count] -= count;
        }
        derived[of_gradient] -= gradient;
#if !CONSTANT_HESSIAN
        derived[of_gradient + total_bins] -= hessian;
#endif
    }
}

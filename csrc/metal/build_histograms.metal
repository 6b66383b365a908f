// Sums of rounded gradients per (chunk of rows, feature, bin).
//
// Constants (torchgbdt/backends/row_chunks.py, HistogramVariant):
//     CONSTANT_HESSIAN   1: every Hessian is 1 and has no word in fixed_point
//     RETURNING_ATOMICS  0: no addition returns what was there before; constant Hessian only
//     TILE_FEATURES      8 where CONSTANT_HESSIAN, else 4: 16 or 12 KB of threadgroup memory
//     PARTIAL_WORDS      3 or 5
//     MAX_PACKED_ROWS    65535, 2047 or 4095: rows between two drains, see packed_cells.h
#include "metal/node_chunks.h"
#include "metal/packed_cells.h"
#include "metal/partials.h"
#include "metal/turns.h"

using namespace torchgbdt;

constant uint n_threads = 256;
constant uint cells_per_thread = tile_cells / n_threads;  // t owns the cells t, t + n_threads, ..

#if TILE_FEATURES == 8
typedef uint2 TileCodes;

inline uint code_of(TileCodes codes, uint feature) {
    return ((feature < 4 ? codes.x : codes.y) >> (8 * (feature & 3))) & 0xffu;
}
#else
typedef uint TileCodes;

inline uint code_of(TileCodes codes, uint feature) {
    return (codes >> (8 * feature)) & 0xffu;
}
#endif

// Layout: words as TileCodes (n_rows, n_padded / TILE_FEATURES); partials as in partials.h.
// Grid:   one group per (tile, chunk, output), tiles fastest: those of a chunk share cache lines.
// Writes: each group its chunk's sums of its tile, for bins 0..255; not those of padding.
[[max_total_threads_per_threadgroup(256)]] kernel void build_histograms(
    device const TileCodes* words [[buffer(0)]],  // IN uint8 (n_rows, n_padded)
    device const uint* row_order [[buffer(1)]],   // IN int32 (n_rows,)
    device const int* fixed_point [[buffer(2)]],  // IN int32 (n_words, n_rows), in row order
    device uint* partials [[buffer(3)]],          // OUT int32, see partials.h
    constant int* nodes [[buffer(4)]],            // IN (n_nodes, 3): begin, n_rows, first chunk
    constant int& n_nodes [[buffer(5)]],          // of this slab that are built
    constant int& rows_per_chunk [[buffer(6)]],   // any number > 0
    constant int& n_rows [[buffer(7)]],           // of the run: stride of fixed_point
    constant int& n_features [[buffer(8)]],       // > 0
    device atomic_uint* last_turn [[buffer(9)]], constant int& turn [[buffer(10)]],  // see turns.h
    uint3 group [[threadgroup_position_in_grid]],  // tile, chunk, output
    uint3 groups [[threadgroups_per_grid]], uint thread_index [[thread_index_in_threadgroup]]) {
    threadgroup atomic_uint packed[packed_size];
    take_turn(last_turn, turn, group.x | group.y | group.z | thread_index);
    const Chunk chunk = find_chunk(nodes, n_nodes, rows_per_chunk, group.y);
    const uint row_tiles = uint(n_features + 7) / 8 * 8 / TILE_FEATURES;
    const uint used = min(uint(n_features) - group.x * TILE_FEATURES, uint(TILE_FEATURES));
    const uint first = thread_index % used;

#if CONSTANT_HESSIAN
    device const int* gradients = fixed_point + ulong(group.z) * n_rows;
#else
    device const int* gradients = fixed_point + 2 * ulong(group.z) * n_rows;
    device const int* hessians = gradients + n_rows;
#endif

    CellSums sums[cells_per_thread];
    for (uint i = 0; i < cells_per_thread; ++i) {
        sums[i].count = 0;
        sums[i].gradient = 0;
        sums[i].hessian = 0;
    }
    for (uint begin = chunk.begin; begin < chunk.end; begin += MAX_PACKED_ROWS) {
        for (uint i = 0; i < cells_per_thread; ++i) {
            clear_cell(packed + thread_index + i * n_threads);
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);

        const uint end = min(begin + MAX_PACKED_ROWS, chunk.end);
        for (uint place = begin + thread_index; place < end; place += n_threads) {
            const TileCodes codes = words[ulong(row_order[place]) * row_tiles + group.x];
            const uint u = uint(gradients[place]) + (1u << 30);
#if CONSTANT_HESSIAN
            const uint hessian = 0;
#else
            const uint hessian = hessians[place];
#endif
            // Each lane begins at a feature of its own: where most rows have one bin, the lanes
            // that add to it at once are few.
            for (uint i = 0; i < used; ++i) {
                const uint feature = first + i < used ? first + i : first + i - used;
                add_row(packed + tile_cell(feature, code_of(codes, feature)), u, hessian);
            }
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);

        // A thread clears no cell that it has not read itself: no barrier is needed in between.
        for (uint i = 0; i < cells_per_thread; ++i) {
            const CellSums more = read_cell(packed + thread_index + i * n_threads);
            sums[i].count += more.count;
            sums[i].gradient += more.gradient;
            sums[i].hessian += more.hessian;
        }
    }

    if (thread_index % TILE_FEATURES >= used) {
        return;  // all cells of this thread are those of a feature that does not exist
    }
    device uint* partial =
        partials + partial_begin(group.z, group.y, group.x, groups.y, groups.x) + thread_index;
    for (uint i = 0; i < cells_per_thread; ++i, partial += n_threads) {
        partial[0] = sums[i].count;
        partial[tile_cells] = low_word(sums[i].gradient);
        partial[2 * tile_cells] = high_word(sums[i].gradient);
#if !CONSTANT_HESSIAN
        partial[3 * tile_cells] = low_word(sums[i].hessian);
        partial[4 * tile_cells] = high_word(sums[i].hessian);
#endif
    }
}

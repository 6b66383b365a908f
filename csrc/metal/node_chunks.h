// Which rows a threadgroup works on. The rows of each node of a slab are cut into chunks of
// rows_per_chunk, the last one shorter; chunks are numbered node by node, and a node without rows
// has one chunk without rows. torchgbdt/backends/row_chunks.py cuts, so that there are exactly as
// many groups as chunks.
#pragma once

namespace torchgbdt {

// What the list `nodes` holds of each node: begin and n_rows in row order, its first chunk.
constant uint node_words = 3;

struct Chunk {
    uint node;   // of the slab
    uint begin;  // in row order
    uint end;
};

// Every thread of a group asks for the same chunk, so this stays in step.
inline Chunk find_chunk(constant int* nodes, int n_nodes, int rows_per_chunk, uint index) {
    int node = 0;
    int last = n_nodes - 1;
    while (node < last) {  // the last node whose first chunk is not beyond the index
        const int middle = (node + last + 1) / 2;
        if (uint(nodes[node_words * middle + 2]) <= index) {
            node = middle;
        } else {
            last = middle - 1;
        }
    }
    const uint begin = nodes[node_words * node];
    const uint end = begin + uint(nodes[node_words * node + 1]);
    const uint earlier = index - uint(nodes[node_words * node + 2]);
    Chunk chunk;
    chunk.node = node;
    chunk.begin = begin + earlier * uint(rows_per_chunk);
    chunk.end = min(chunk.begin + uint(rows_per_chunk), end);
    return chunk;
}

}  // namespace torchgbdt

"""Good snippets: Metal as it is written, which neither pass may refuse. Names say what is there."""

GOOD_SNIPPETS = {
    "group_size_by_name": """
#define THREADS CODES
#define CODES 256  // of a feature
[[max_total_threads_per_threadgroup(THREADS)]] kernel void clear(
    device uint* a [[buffer(0)]], uint t [[thread_index_in_threadgroup]]) {
    threadgroup uint cells[THREADS];
    cells[t] = 0;
    a[t] = cells[t];
}
""",
    "early_return_without_barrier": """
kernel void copy(device const float* from [[buffer(0)]], device float* to [[buffer(1)]],
                 constant int& n [[buffer(2)]], uint i [[thread_position_in_grid]]) {
    if (i >= static_cast<uint>(n)) {
        return;
    }
    to[i] = 2.0f * from[i];
}
""",
    "histogram_in_group_memory": """
[[max_total_threads_per_threadgroup(256)]] kernel void count(
    device const uchar* codes [[buffer(0)]], device uint* partials [[buffer(1)]],
    constant int& n_rows [[buffer(2)]], uint i [[thread_position_in_grid]],
    uint t [[thread_index_in_threadgroup]], uint group [[threadgroup_position_in_grid]],
    uint n_threads [[threads_per_grid]]) {
    threadgroup atomic_uint cells[256];
    atomic_store_explicit(&cells[t], 0u, memory_order_relaxed);
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint row = i; row < uint(n_rows); row += n_threads) {
        atomic_fetch_add_explicit(&cells[codes[row]], 1u, memory_order_relaxed);
    }
    threadgroup_barrier(mem_flags::mem_threadgroup | mem_flags::mem_device);
    partials[group * 256 + t] = atomic_load_explicit(&cells[t], memory_order_relaxed);
}
""",
    "tree_reduction": """
inline long sum_over_group(long value, threadgroup long* cells, uint t) {
    cells[t] = value;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (uint half_size = 128; half_size > 0; half_size /= 2) {
        if (t < half_size) {
            cells[t] += cells[t + half_size];
        }
        threadgroup_barrier(mem_flags::mem_threadgroup);
    }
    return cells[0];
}

[[max_total_threads_per_threadgroup(256)]] kernel void sum(
    device const int* numbers [[buffer(0)]], device long* sums [[buffer(1)]],
    uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]]) {
    threadgroup long cells[256];
    const long total = sum_over_group(numbers[i], cells, t);
    if (t == 0) {
        sums[group] = total;
    }
}
""",
    "simdgroups_then_group": """
[[max_total_threads_per_threadgroup(256)]] kernel void offsets(
    device const uint* sides [[buffer(0)]], device uint* places [[buffer(1)]],
    uint i [[thread_position_in_grid]], uint lane [[thread_index_in_simdgroup]],
    uint simdgroup [[simdgroup_index_in_threadgroup]]) {
    threadgroup uint totals[8];
    const uint before = simd_prefix_exclusive_sum(sides[i]);
    const uint total = simd_sum(sides[i]);
    if (lane == 0) {
        totals[simdgroup] = total;
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    uint place = before;
    for (uint k = 0; k < simdgroup; ++k) {
        place += totals[k];
    }
    places[i] = place;
}
""",
    "ballot": """
kernel void vote(device uint* bits [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    const ulong votes = static_cast<simd_vote::vote_t>(simd_ballot(bits[i] > 3u));
    bits[i] = popcount(static_cast<uint>(votes)) + (simd_any(bits[i] == 0u) ? 1u : 0u);
}
""",
    "long_by_two_shuffles": """
inline long broadcast(long value, ushort lane) {
    return as_type<long>(simd_broadcast(as_type<uint2>(value), lane));
}
kernel void first(device long* sums [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    sums[i] = broadcast(sums[i], 0);
}
""",
    "vectors": """
kernel void unpack(device const uint2* words [[buffer(0)]], device uint4* out [[buffer(1)]],
                   uint2 p [[thread_position_in_grid]], uint2 size [[threads_per_grid]]) {
    const uint2 word = words[p.y * size.x + p.x];
    uint4 bytes = uint4(word.x & 0xffu, word.x >> 8, word.y, 0);
    bytes.zw = word.yx + 1u;
    out[p.x] = bytes + uint4(word, word) * uint4(2u);
    out[p.y] = uint4(int4(bytes)) + uint4{1, 2, 3, 4};
    out[p.x].w = any(word == out[p.y].xy) ? 1u : 0u;
}
""",
    "structs": """
struct Split {
    int feature;
    int bin;
    bool is_better_than(Split other) const { return feature < other.feature; }
};
inline Split better(Split a, Split b) {
    return a.is_better_than(b) ? a : b;
}
[[max_total_threads_per_threadgroup(256)]] kernel void best(
    device const Split* splits [[buffer(0)]], device Split* out [[buffer(1)]],
    uint i [[thread_position_in_grid]], uint t [[thread_index_in_threadgroup]]) {
    threadgroup Split shared[256];
    Split mine = splits[i];
    mine = mine.feature < 0 ? Split{0, 0} : mine;
    mine = i < 3 ? better(i < 2 ? mine : better(mine, mine), mine) : mine;
    shared[t] = mine;
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const Split other = shared[t ^ 1u];
    out[i] = better(mine, other);
    out[i + 1] = {mine.feature, other.bin};
    device const Split& next = splits[i + 1];
    out[i + 2].bin = next.bin;
}
""",
    "program_constants": """
constant uint group_size = 256;
constant int weights[3] = {1, 2, 4};
kernel void weigh(device int* a [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    a[i] *= weights[i % 3] + static_cast<int>(group_size);
}
""",
    "wide_products": """
kernel void multiply(device const uint* a [[buffer(0)]], device ulong* out [[buffer(1)]],
                     uint i [[thread_position_in_grid]]) {
    const ulong product = static_cast<ulong>(a[i]) * a[i + 1];
    const uint high = mulhi(a[i], a[i + 1]);
    out[i] = product ^ (ulong(high) << 32) ^ clz(product) ^ ulong(ctz(high) + reverse_bits(high));
}
""",
    "carry_into_second_word": """
inline void add(threadgroup atomic_uint* low, threadgroup atomic_uint* high, uint x) {
    const uint before = atomic_fetch_add_explicit(low, x, memory_order_relaxed);
    const uint carry = before + x < x ? 1u : 0u;
    atomic_fetch_add_explicit(high, carry, memory_order_relaxed);
}
""",
    "compare_and_exchange": """
inline void keep_largest(device atomic_int* cell, int value) {
    int seen = atomic_load_explicit(cell, memory_order_relaxed);
    while (seen < value && !atomic_compare_exchange_weak_explicit(
                               cell, &seen, value, memory_order_relaxed, memory_order_relaxed)) {
    }
    atomic_fetch_max_explicit(cell, value, memory_order_relaxed);
}
""",
    "templates": """
template <typename T>
inline T first(device const T* values, threadgroup T* copy, T otherwise) {
    copy[0] = values[0];
    return values[0] > otherwise ? values[0] : otherwise;
}
template <uint N>
inline uint sum_of(thread const uint* values) {
    uint total = 0;
    for (uint i = 0; i < N; ++i) {
        total += values[i];
    }
    return total;
}
[[max_total_threads_per_threadgroup(256)]] kernel void use(
    device uint* a [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    threadgroup uint copy[1];
    const uint mine[2] = {first(a, copy, 3u), i};
    a[i] = sum_of<2>(mine);
}
""",
    "enumerations": """
enum class Kind : int { none = 0, some = 1 };
inline float loss(Kind kind, float x) {
    switch (kind) {
        case Kind::none:
            return 0.0f;
        case Kind::some:
            return x * x;
    }
    return 1.0e-3f;
}
""",
    "variants": """
#define WIDTH 4
#if WIDTH == 8
typedef uint2 Codes;
std::vector<double> never_seen;
#elif WIDTH == 4
typedef uint Codes;
#endif
kernel void widths(device Codes* a [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    a[i] += WIDTH;
}
""",
    "uniform_conditions_in_helper": """
inline void fill(threadgroup uint* cells, uint t, uint n_blocks) {
    for (uint block = 0; block < n_blocks; ++block) {
        if (n_blocks > 2) {
            cells[t] = block;
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
    }
}
[[max_total_threads_per_threadgroup(256)]] kernel void blocks(
    device uint* a [[buffer(0)]], constant int& n [[buffer(1)]],
    uint t [[thread_index_in_threadgroup]], uint group [[threadgroup_position_in_grid]]) {
    threadgroup uint cells[256];
    fill(cells, t, group + n);
    a[t] = cells[255 - t];
}
""",
    "uniform_loop_with_barriers": """
[[max_total_threads_per_threadgroup(256)]] kernel void drain(
    device const uint* a [[buffer(0)]], device uint* out [[buffer(1)]],
    constant int* chunks [[buffer(2)]], uint t [[thread_index_in_threadgroup]],
    uint group [[threadgroup_position_in_grid]], uint n_groups [[threadgroups_per_grid]]) {
    threadgroup uint cells[256];
    const int begin = chunks[group];
    const int end = group + 1 < n_groups ? chunks[group + 1] : 0;
    if (begin < end) {
        for (int first = begin; first < end; first += 256) {
            cells[t] = a[first + t];
            threadgroup_barrier(mem_flags::mem_threadgroup);
            out[first + t] = cells[255 - t];
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }
    }
    if (t > 3) {
        return;
    }
    out[t] = 0;
}
""",
    "group_positions_in_three_dimensions": """
[[max_total_threads_per_threadgroup(256)]] kernel void place(
    device uint* a [[buffer(0)]], uint3 group [[threadgroup_position_in_grid]],
    uint3 n_groups [[threadgroups_per_grid]], uint3 in_group [[thread_position_in_threadgroup]],
    uint3 size [[threads_per_threadgroup]], uint3 asked [[dispatch_threads_per_threadgroup]],
    uint t [[thread_index_in_threadgroup]], uint width [[threads_per_simdgroup]],
    uint n_simdgroups [[simdgroups_per_threadgroup]]) {
    a[group.z * n_groups.x + in_group.y * size.x + asked.x] = t + width + n_simdgroups;
}
""",
    "search_in_list_of_words": """
inline int owner_of(constant int* begins, int n_nodes, int chunk) {
    int low = 0;
    int high = n_nodes;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (begins[middle] <= chunk) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return low;
}
kernel void owners(device int* out [[buffer(0)]], constant int* begins [[buffer(1)]],
                   constant int& n_nodes [[buffer(2)]], constant float& scale [[buffer(3)]],
                   uint i [[thread_position_in_grid]]) {
    out[i] = owner_of(begins, n_nodes, static_cast<int>(i)) * static_cast<int>(scale);
}
""",
    "casts_within_a_space": """
kernel void bytes(device const uchar* a [[buffer(0)]], device uint2* b [[buffer(1)]],
                  uint i [[thread_position_in_grid]]) {
    device const uint2* words = reinterpret_cast<device const uint2*>(a);
    device const int* signed_words = (device const int*)(a + 8);
    const auto word = words[i];
    const auto where = signed_words + i;
    b[i] = word + as_type<uint>(where[0]);
}
""",
    "portable_arithmetic": """
kernel void round_half_even(device float* a [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    const float x = a[i] / 3.0f - 1e-3f * abs(a[i + 1]);
    a[i] = rint(max(x, floor(x))) + select(0.0f, min(x, 1.f), x > .5f);
    a[i + 1] = as_type<float>(as_type<uint>(x) & 0x7fffffffu);
}
""",
    "names_that_other_languages_keep": """
kernel void names(device uint* global [[buffer(0)]], uint group [[threadgroup_position_in_grid]]) {
    uint local = global[0];
    const uint generic = local + group;  // a barrier, std::min and 1.0 in a comment
    const uint fast = generic, precise = fast;
    global[0] = precise;
}
""",
    "leaving_loops_without_barriers": """
[[max_total_threads_per_threadgroup(256)]] kernel void leave(
    device uint* a [[buffer(0)]], constant int& n [[buffer(1)]],
    uint t [[thread_index_in_threadgroup]]) {
    threadgroup uint found[256];
    found[t] = 0;
    for (int k = 0; k < n; ++k) {
        if (a[k] == t) {
            found[t] = k;
            break;
        }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    for (int round = 0; round < n; round = round + 1) {
        if (round == 3) {
            break;
        }
        a[t] += found[(t + round) % 256];
        threadgroup_barrier(mem_flags::mem_device);
    }
}
""",
}

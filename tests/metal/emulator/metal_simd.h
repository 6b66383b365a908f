// Barriers, and functions of the 32 lanes of a simdgroup.
//
// Stricter than MSL: all lanes that have not ended must call a simd function together. Metal lets a
// subset of them do so, but what that subset is depends on the compiler.
#pragma once

namespace metal {

enum class mem_flags {
    mem_none = 0,
    mem_device = 1,
    mem_threadgroup = 2,
};

constexpr mem_flags operator|(mem_flags a, mem_flags b) {
    return static_cast<mem_flags>(static_cast<int>(a) | static_cast<int>(b));
}

inline void threadgroup_barrier(mem_flags flags, int line = __builtin_LINE()) {
    emu_barrier(static_cast<unsigned>(flags), line);
}

// Whether MSL's simd functions take T: numbers of 32 bits or less, but no bool; their vectors.
template <typename T>
struct is_simd_type {
    static constexpr bool value = is_one_of<T, char, uchar, short, ushort, int, uint, float>::value;
};
template <typename T, int n>
struct is_simd_type<vec<T, n>> {
    static constexpr bool value = is_simd_type<T>::value;
};

// The values of the lanes.
template <typename T>
class lanes {
  public:
    lanes(const T& own, int line) : line_(line) {
        static_assert(is_simd_type<T>::value,
                      "MSL has no simd functions of bool and of 64-bit numbers");
        values_ = emu_exchange(&own, sizeof own, &there_, line);
    }
    bool has(uint lane) const { return lane < emu_simd_width && ((there_ >> lane) & 1u) != 0; }
    T operator[](uint lane) const {
        if (!has(lane)) {
            emu_fail("a simd function reads from a lane that is not there", line_);
        }
        T value;
        __builtin_memcpy(&value, values_ + lane * 16, sizeof value);
        return value;
    }

  private:
    const char* values_;
    uint there_;
    int line_;
};

inline uint emu_lane() {
    return emu_now->thread_index_in_simdgroup;
}

inline void simdgroup_barrier(mem_flags flags, int line = __builtin_LINE()) {
    emu_simd_barrier(static_cast<unsigned>(flags), line);
}

// --- reductions and prefixes --------------------------------------------------------------------

// float sums depend on an order that MSL leaves open, so there are none here.
#define EMU_REDUCTION(name, requirement, expression)                         \
    template <typename T>                                                    \
    inline T simd_##name(T value, int line = __builtin_LINE()) {             \
        static_assert(requirement, "simd_" #name " of this type: not here"); \
        const lanes<T> all(value, line);                                     \
        bool first = true;                                                   \
        T a = value;                                                         \
        for (uint lane = 0; lane < emu_simd_width; ++lane) {                 \
            if (all.has(lane)) {                                             \
                const T b = all[lane];                                       \
                a = first ? b : T(expression);                               \
                first = false;                                               \
            }                                                                \
        }                                                                    \
        return a;                                                            \
    }

EMU_REDUCTION(sum, (!is_one_of<T, float>::value), emu_add(a, b))
EMU_REDUCTION(min, is_simd_type<T>::value, min(a, b))
EMU_REDUCTION(max, is_simd_type<T>::value, max(a, b))
EMU_REDUCTION(and, is_integer<T>::value, (a & b))
EMU_REDUCTION(or, is_integer<T>::value, a | b)
EMU_REDUCTION(xor, is_integer<T>::value, a ^ b)

// The sum over the lanes below `end`.
template <typename T>
inline T emu_sum_below(const lanes<T>& all, uint end) {
    T sum = T(0);
    for (uint lane = 0; lane < end; ++lane) {
        if (all.has(lane)) {
            sum = T(emu_add(sum, all[lane]));
        }
    }
    return sum;
}

template <typename T>
inline T simd_prefix_exclusive_sum(T value, int line = __builtin_LINE()) {
    static_assert(!is_one_of<T, float>::value, "a float sum depends on an order left open by MSL");
    return emu_sum_below(lanes<T>(value, line), emu_lane());
}

template <typename T>
inline T simd_prefix_inclusive_sum(T value, int line = __builtin_LINE()) {
    static_assert(!is_one_of<T, float>::value, "a float sum depends on an order left open by MSL");
    return emu_sum_below(lanes<T>(value, line), emu_lane() + 1);
}

// --- one lane's value ---------------------------------------------------------------------------

template <typename T>
inline T simd_shuffle(T value, ushort lane, int line = __builtin_LINE()) {
    return lanes<T>(value, line)[lane];
}

template <typename T>
inline T simd_shuffle_xor(T value, ushort mask, int line = __builtin_LINE()) {
    const uint lane = emu_lane() ^ mask;
    return lanes<T>(value, line)[lane];
}

// From the lane `delta` below, and in the lowest `delta` lanes their own value.
template <typename T>
inline T simd_shuffle_up(T value, ushort delta, int line = __builtin_LINE()) {
    const uint own = emu_lane();
    return lanes<T>(value, line)[own < delta ? own : own - delta];
}

// From the lane `delta` above, and in the highest `delta` lanes their own value.
template <typename T>
inline T simd_shuffle_down(T value, ushort delta, int line = __builtin_LINE()) {
    const uint own = emu_lane();
    return lanes<T>(value, line)[own + delta >= emu_simd_width ? own : own + delta];
}

template <typename T>
inline T simd_broadcast(T value, ushort lane, int line = __builtin_LINE()) {
    return lanes<T>(value, line)[lane];
}

template <typename T>
inline T simd_broadcast_first(T value, int line = __builtin_LINE()) {
    const lanes<T> all(value, line);
    uint first = 0;
    while (!all.has(first)) {
        ++first;
    }
    return all[first];
}

// --- votes --------------------------------------------------------------------------------------

class simd_vote {
  public:
    typedef ulong vote_t;
    explicit constexpr simd_vote(vote_t votes = 0) : votes_(votes) {}
    explicit constexpr operator vote_t() const { return votes_; }
    constexpr bool any() const { return votes_ != 0; }
    constexpr bool all() const { return votes_ == 0xffffffffu; }

  private:
    vote_t votes_;
};

// Bit i: lane i is there and says yes.
inline uint emu_votes(const lanes<int>& all) {
    uint votes = 0;
    for (uint lane = 0; lane < emu_simd_width; ++lane) {
        votes |= uint(all.has(lane) && all[lane] != 0) << lane;
    }
    return votes;
}

inline simd_vote simd_ballot(bool yes, int line = __builtin_LINE()) {
    return simd_vote(emu_votes(lanes<int>(yes, line)));
}

inline simd_vote simd_active_threads_mask(int line = __builtin_LINE()) {
    return simd_vote(emu_votes(lanes<int>(1, line)));
}

inline bool simd_any(bool yes, int line = __builtin_LINE()) {
    return emu_votes(lanes<int>(yes, line)) != 0;
}

inline bool simd_all(bool yes, int line = __builtin_LINE()) {
    return emu_votes(lanes<int>(!yes, line)) == 0;
}

inline bool simd_is_first(int line = __builtin_LINE()) {
    const lanes<int> all(1, line);
    return (emu_votes(all) & ((1u << emu_lane()) - 1)) == 0;
}

}  // namespace metal

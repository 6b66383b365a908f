#include "cpu/move_rows.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define TORCHGBDT_COMPRESS
#include <immintrin.h>
#endif

namespace torchgbdt {
namespace {

// The place is computed: of a choice GCC makes a branch, and half of those are mispredicted.
void move_one_by_one(const RowId* rows, const std::uint8_t* sides, std::int64_t n_rows, RowId* left,
                     RowId* right) {
    const std::int64_t gap = right - left;
    std::int64_t n_left = 0;
    for (std::int64_t i = 0; i < n_rows; ++i) {
        const std::int64_t side = sides[i];
        const std::int64_t n_right = i - n_left;
        left[n_left + ((gap + n_right - n_left) & -side)] = rows[i];
        n_left += 1 - side;
    }
}

#ifdef TORCHGBDT_COMPRESS

// Sixteen rows at a time: the processor packs those of a side, and all sixteen lanes are stored
// while there is room for them among the block's own places; what is too many is overwritten next.
// Returns how many rows were moved; left and right are then the next places.
__attribute__((target("avx512f,avx512bw,avx512vl,popcnt"))) std::int64_t move_by_sixteen(
    const RowId* rows, const std::uint8_t* sides, std::int64_t n_rows, std::int64_t n_left,
    RowId*& left, RowId*& right) {
    constexpr std::int64_t kLanes = 16;
    std::int64_t left_room = n_left, right_room = n_rows - n_left;
    std::int64_t i = 0;
    while (left_room >= kLanes && right_room >= kLanes) {
        const __m512i ids = _mm512_loadu_si512(rows + i);
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(sides + i));
        const __mmask16 goes_right = _mm_test_epi8_mask(bytes, bytes);
        const auto goes_left = static_cast<__mmask16>(~goes_right);
        const int n_right = __builtin_popcount(goes_right);
        _mm512_storeu_si512(left, _mm512_maskz_compress_epi32(goes_left, ids));
        _mm512_storeu_si512(right, _mm512_maskz_compress_epi32(goes_right, ids));
        left += kLanes - n_right;
        right += n_right;
        left_room -= kLanes - n_right;
        right_room -= n_right;
        i += kLanes;
    }
    return i;
}

const bool can_compress = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("popcnt");

#endif

}  // namespace

void move_rows(const RowId* rows, const std::uint8_t* sides, std::int64_t n_rows,
               [[maybe_unused]] std::int64_t n_left, RowId* left, RowId* right) {
    std::int64_t done = 0;
#ifdef TORCHGBDT_COMPRESS
    if (can_compress) {
        done = move_by_sixteen(rows, sides, n_rows, n_left, left, right);
    }
#endif
    move_one_by_one(rows + done, sides + done, n_rows - done, left, right);
}

}  // namespace torchgbdt

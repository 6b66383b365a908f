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

constexpr std::int64_t kLanes = 16;

// Sixteen rows at a time: the processor packs those of a side, and as many lanes are stored.
__attribute__((target("avx512f,avx512bw,avx512vl,popcnt"))) void move_by_sixteen(
    const RowId* rows, const std::uint8_t* sides, std::int64_t n_rows, RowId* left, RowId* right) {
    for (std::int64_t i = 0; i < n_rows; i += kLanes) {
        const std::int64_t n_lanes = n_rows - i < kLanes ? n_rows - i : kLanes;
        const auto lanes = static_cast<__mmask16>(0xffff >> (kLanes - n_lanes));
        const __m512i ids = _mm512_maskz_loadu_epi32(lanes, rows + i);
        const __m128i bytes = _mm_maskz_loadu_epi8(lanes, sides + i);
        const __mmask16 goes_right = _mm_test_epi8_mask(bytes, bytes);
        const auto goes_left = static_cast<__mmask16>(lanes & ~goes_right);
        const int n_right = __builtin_popcount(goes_right);
        const int n_left = static_cast<int>(n_lanes) - n_right;
        _mm512_mask_storeu_epi32(left, static_cast<__mmask16>((1u << n_left) - 1),
                                 _mm512_maskz_compress_epi32(goes_left, ids));
        _mm512_mask_storeu_epi32(right, static_cast<__mmask16>((1u << n_right) - 1),
                                 _mm512_maskz_compress_epi32(goes_right, ids));
        left += n_left;
        right += n_right;
    }
}

const bool can_compress = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("popcnt");

#endif

}  // namespace

void move_rows(const RowId* rows, const std::uint8_t* sides, std::int64_t n_rows, RowId* left,
               RowId* right) {
#ifdef TORCHGBDT_COMPRESS
    if (can_compress) {
        move_by_sixteen(rows, sides, n_rows, left, right);
        return;
    }
#endif
    move_one_by_one(rows, sides, n_rows, left, right);
}

}  // namespace torchgbdt

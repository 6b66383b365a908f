// Functions of numbers. Those that a device rounds in its own way (exp, log, ...) are left out:
// kernels have their own, in csrc/shared/portable_math.h.
#pragma once

namespace metal {

// --- any number, or its vectors -----------------------------------------------------------------

template <typename T>
constexpr T min(T a, T b) {
    return b < a ? b : a;
}
template <typename T>
constexpr T max(T a, T b) {
    return a < b ? b : a;
}
template <typename T>
constexpr T clamp(T x, T low, T high) {
    return min(max(x, low), high);
}
// Of a number and a NaN, the number.
constexpr float min(float a, float b) {
    return __builtin_fminf(a, b);
}
constexpr float max(float a, float b) {
    return __builtin_fmaxf(a, b);
}
inline float fmin(float a, float b) {
    return __builtin_fminf(a, b);
}
inline float fmax(float a, float b) {
    return __builtin_fmaxf(a, b);
}

template <typename T>
constexpr T select(T if_false, T if_true, bool condition) {
    return condition ? if_true : if_false;
}

#define EMU_PER_COMPONENT(name)                       \
    template <typename T, int n>                      \
    inline vec<T, n> name(vec<T, n> a, vec<T, n> b) { \
        for (int i = 0; i < n; ++i) {                 \
            a[i] = name(a[i], b[i]);                  \
        }                                             \
        return a;                                     \
    }

EMU_PER_COMPONENT(min)
EMU_PER_COMPONENT(max)

template <typename T, int n>
inline vec<T, n> select(vec<T, n> if_false, vec<T, n> if_true, vec<bool, n> condition) {
    for (int i = 0; i < n; ++i) {
        if_false[i] = condition[i] ? if_true[i] : if_false[i];
    }
    return if_false;
}

template <typename T>
constexpr typename enable_if<is_integer<T>::value, T>::type abs(T x) {
    return x < T(0) ? T(-x) : x;
}
constexpr float abs(float x) {
    return __builtin_fabsf(x);
}

// --- integers -----------------------------------------------------------------------------------

template <typename T>
inline T popcount(T x) {
    static_assert(is_integer<T>::value, "popcount needs an integer");
    const ulong mask = sizeof(T) == 8 ? ~0ul : (1ul << (8 * sizeof(T) % 64)) - 1;
    return T(__builtin_popcountl(ulong(x) & mask));
}

// Leading zeros; the width of the type for 0.
template <typename T>
inline T clz(T x) {
    static_assert(is_integer<T>::value, "clz needs an integer");
    const int width = 8 * sizeof(T);
    const ulong mask = sizeof(T) == 8 ? ~0ul : (1ul << (width % 64)) - 1;
    const ulong bits = ulong(x) & mask;
    return T(bits == 0 ? width : __builtin_clzl(bits) - (64 - width));
}

// Trailing zeros; the width of the type for 0.
template <typename T>
inline T ctz(T x) {
    static_assert(is_integer<T>::value, "ctz needs an integer");
    return x == 0 ? T(8 * sizeof(T)) : T(__builtin_ctzl(ulong(x)));
}

inline int mulhi(int a, int b) {
    return int((long(a) * long(b)) >> 32);
}
inline uint mulhi(uint a, uint b) {
    return uint((ulong(a) * ulong(b)) >> 32);
}
inline long mulhi(long a, long b) {
    return long((static_cast<__int128>(a) * b) >> 64);
}
inline ulong mulhi(ulong a, ulong b) {
    return ulong((static_cast<unsigned __int128>(a) * b) >> 64);
}

inline uint reverse_bits(uint x) {
    uint result = 0;
    for (int i = 0; i < 32; ++i) {
        result |= ((x >> i) & 1u) << (31 - i);
    }
    return result;
}

inline uint extract_bits(uint x, uint offset, uint bits) {
    return bits == 0 ? 0u : (x >> offset) & (0xffffffffu >> (32 - bits));
}

inline uint insert_bits(uint base, uint insert, uint offset, uint bits) {
    const uint mask = bits == 0 ? 0u : (0xffffffffu >> (32 - bits)) << offset;
    return (base & ~mask) | ((insert << offset) & mask);
}

// --- float32 ------------------------------------------------------------------------------------

inline float fabs(float x) {
    return __builtin_fabsf(x);
}
inline float floor(float x) {
    return __builtin_floorf(x);
}
inline float ceil(float x) {
    return __builtin_ceilf(x);
}
inline float trunc(float x) {
    return __builtin_truncf(x);
}
// Ties to even.
inline float rint(float x) {
    return __builtin_rintf(x);
}
// Ties away from 0.
inline float round(float x) {
    return __builtin_roundf(x);
}
inline float fma(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}
inline float sqrt(float x) {
    return __builtin_sqrtf(x);
}
inline float copysign(float x, float y) {
    return __builtin_copysignf(x, y);
}
inline float ldexp(float x, int exponent) {
    return __builtin_ldexpf(x, exponent);
}
inline bool isnan(float x) {
    return __builtin_isnan(x);
}
inline bool isinf(float x) {
    return __builtin_isinf(x);
}
inline bool isfinite(float x) {
    return __builtin_isfinite(x);
}
inline bool signbit(float x) {
    return __builtin_signbit(x);
}

namespace precise {
using metal::fma;
using metal::sqrt;
}  // namespace precise

}  // namespace metal

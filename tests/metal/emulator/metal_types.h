// Scalars.
#pragma once

typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned int uint;
typedef unsigned long ulong;
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long int64_t;
typedef unsigned long uint64_t;
typedef unsigned long size_t;
typedef long ptrdiff_t;

static_assert(sizeof(long) == 8, "MSL has 64-bit longs");

#define INT_MAX 2147483647
#define INT_MIN (-INT_MAX - 1)
#define UINT_MAX 4294967295u
#define LONG_MAX 9223372036854775807L
#define LONG_MIN (-LONG_MAX - 1L)
#define ULONG_MAX 18446744073709551615UL
#define FLT_MAX 3.402823466e+38f
#define FLT_MIN 1.175494351e-38f
#define FLT_EPSILON 1.192092896e-07f
#define INFINITY __builtin_inff()
#define NAN __builtin_nanf("")

namespace metal {

// Same bits, other type.
template <typename To, typename From>
inline To bit_cast(const From& from) {
    static_assert(sizeof(To) == sizeof(From), "as_type needs types of one size");
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}

// Whether T is one of these scalar types.
template <typename T, typename... Types>
struct is_one_of {
    static constexpr bool value = false;
};
template <typename T, typename First, typename... Rest>
struct is_one_of<T, First, Rest...> {
    static constexpr bool value = is_one_of<T, Rest...>::value;
};
template <typename T, typename... Rest>
struct is_one_of<T, T, Rest...> {
    static constexpr bool value = true;
};

template <typename T>
struct is_integer {
    static constexpr bool value =
        is_one_of<T, char, signed char, uchar, short, ushort, int, uint, long, ulong>::value;
};

template <bool condition, typename T>
struct enable_if {};
template <typename T>
struct enable_if<true, T> {
    typedef T type;
};

}  // namespace metal

// A name of the global namespace, so that it is found with and without `metal::`.
template <typename To, typename From>
inline To as_type(const From& from) {
    return metal::bit_cast<To>(from);
}

namespace metal {
using ::as_type;
}

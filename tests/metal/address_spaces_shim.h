// The part of Metal's standard library that our kernels may use, as declarations: nothing here
// runs.
//
// Read by clang twice: as C++ for OpenCL, whose address spaces behave as Metal's, and as plain
// C++14, where they are nothing. What is not declared here is not portable, and rejected as
// unknown.
#pragma once

#ifdef __OPENCL_CPP_VERSION__
#define device __global
#define constant __constant
#define threadgroup __local
#define thread __private
#define kernel __kernel
// Words of OpenCL that are no words of Metal.
#define global global_
#define local local_
#define generic generic_
#define pipe pipe_
#else
#define device
#define constant const
#define threadgroup
#define thread
#define kernel
#endif

namespace metal {

// --- scalars ------------------------------------------------------------------------------------

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

// --- vectors ------------------------------------------------------------------------------------

#define DECLARE_VECTORS(T)                              \
    typedef T T##2 __attribute__((ext_vector_type(2))); \
    typedef T T##3 __attribute__((ext_vector_type(3))); \
    typedef T T##4 __attribute__((ext_vector_type(4))); \
    T##2 make_##T##2(T);                                \
    T##2 make_##T##2(T, T);                             \
    T##3 make_##T##3(T);                                \
    T##3 make_##T##3(T, T, T);                          \
    T##3 make_##T##3(T##2, T);                          \
    T##3 make_##T##3(T, T##2);                          \
    T##4 make_##T##4(T);                                \
    T##4 make_##T##4(T, T, T, T);                       \
    T##4 make_##T##4(T##2, T##2);                       \
    T##4 make_##T##4(T##2, T, T);                       \
    T##4 make_##T##4(T, T, T##2);                       \
    T##4 make_##T##4(T##3, T);                          \
    T##4 make_##T##4(T, T##3)

#define FOR_ALL_SCALARS(DO) \
    DO(char);               \
    DO(uchar);              \
    DO(short);              \
    DO(ushort);             \
    DO(int);                \
    DO(uint);               \
    DO(long);               \
    DO(ulong);              \
    DO(float)

FOR_ALL_SCALARS(DECLARE_VECTORS);

#define DECLARE_CONVERSION(TO, FROM) \
    TO##2 make_##TO##2(FROM##2);     \
    TO##3 make_##TO##3(FROM##3);     \
    TO##4 make_##TO##4(FROM##4)
#define CONVERT_TO(TO)              \
    DECLARE_CONVERSION(TO, char);   \
    DECLARE_CONVERSION(TO, uchar);  \
    DECLARE_CONVERSION(TO, short);  \
    DECLARE_CONVERSION(TO, ushort); \
    DECLARE_CONVERSION(TO, int);    \
    DECLARE_CONVERSION(TO, uint);   \
    DECLARE_CONVERSION(TO, long);   \
    DECLARE_CONVERSION(TO, ulong);  \
    DECLARE_CONVERSION(TO, float)

FOR_ALL_SCALARS(CONVERT_TO);

template <typename To, typename From>
To as_type(From from) {
    static_assert(sizeof(To) == sizeof(From), "as_type needs types of equal size");
    return To();
}

// --- portable arithmetic ------------------------------------------------------------------------

float rint(float);
float fma(float, float, float);  // for the conformance probe; the lint sees to it
float floor(float);
#define DECLARE_SELECT(T) T select(T if_false, T if_true, bool condition)
FOR_ALL_SCALARS(DECLARE_SELECT);

#define DECLARE_COMPARISONS(T) \
    T min(T, T);               \
    T max(T, T);               \
    T abs(T)

// Scalars and vectors of them.
#define ALSO_VECTORS(DO, T) \
    DO(T);                  \
    DO(T##2);               \
    DO(T##3);               \
    DO(T##4)
#define INTEGER_FUNCTIONS(T)                   \
    T clamp(T, T, T);                          \
    T clz(T);                                  \
    T ctz(T);                                  \
    T popcount(T);                             \
    T reverse_bits(T);                         \
    T rotate(T, T);                            \
    T mulhi(T, T);                             \
    T absdiff(T, T);                           \
    T addsat(T, T);                            \
    T subsat(T, T);                            \
    T extract_bits(T, uint offset, uint bits); \
    T insert_bits(T, T, uint offset, uint bits)
#define INTEGERS(T)                       \
    ALSO_VECTORS(DECLARE_COMPARISONS, T); \
    ALSO_VECTORS(INTEGER_FUNCTIONS, T)

INTEGERS(char);
INTEGERS(uchar);
INTEGERS(short);
INTEGERS(ushort);
INTEGERS(int);
INTEGERS(uint);
INTEGERS(long);
INTEGERS(ulong);
ALSO_VECTORS(DECLARE_COMPARISONS, float);

template <typename Vector>
bool all(Vector);
template <typename Vector>
bool any(Vector);

// --- atomics: 32-bit integers, relaxed ----------------------------------------------------------

#ifdef __OPENCL_CPP_VERSION__
using ::atomic_int;
using ::atomic_uint;
#else
typedef _Atomic(int) atomic_int;
typedef _Atomic(uint) atomic_uint;
#endif

template <typename T>
struct atomic_of {};
template <>
struct atomic_of<int> {
    typedef atomic_int type;
};
template <>
struct atomic_of<uint> {
    typedef atomic_uint type;
};
template <typename T>
using atomic = typename atomic_of<T>::type;

enum memory_order { memory_order_relaxed };

#define DECLARE_ATOMICS(SPACE, ATOMIC, T)                                                          \
    T atomic_load_explicit(const volatile SPACE ATOMIC*, memory_order);                            \
    void atomic_store_explicit(volatile SPACE ATOMIC*, T, memory_order);                           \
    T atomic_exchange_explicit(volatile SPACE ATOMIC*, T, memory_order);                           \
    bool atomic_compare_exchange_weak_explicit(volatile SPACE ATOMIC*, thread T*, T, memory_order, \
                                               memory_order);                                      \
    T atomic_fetch_add_explicit(volatile SPACE ATOMIC*, T, memory_order);                          \
    T atomic_fetch_sub_explicit(volatile SPACE ATOMIC*, T, memory_order);                          \
    T atomic_fetch_and_explicit(volatile SPACE ATOMIC*, T, memory_order);                          \
    T atomic_fetch_or_explicit(volatile SPACE ATOMIC*, T, memory_order);                           \
    T atomic_fetch_xor_explicit(volatile SPACE ATOMIC*, T, memory_order);                          \
    T atomic_fetch_min_explicit(volatile SPACE ATOMIC*, T, memory_order);                          \
    T atomic_fetch_max_explicit(volatile SPACE ATOMIC*, T, memory_order)

DECLARE_ATOMICS(device, atomic_int, int);
DECLARE_ATOMICS(device, atomic_uint, uint);
DECLARE_ATOMICS(threadgroup, atomic_int, int);
DECLARE_ATOMICS(threadgroup, atomic_uint, uint);

// --- barriers -----------------------------------------------------------------------------------

enum class mem_flags { mem_none = 0, mem_device = 1, mem_threadgroup = 2 };
mem_flags operator|(mem_flags, mem_flags);
void threadgroup_barrier(mem_flags);
void simdgroup_barrier(mem_flags);

// --- simdgroups ---------------------------------------------------------------------------------
// Deleted are the types that Metal has no such function for, and C++ would convert silently; and
// sums of floats, whose order nobody knows.

#define SIMD_MOVES(T)                     \
    T simd_shuffle(T, ushort lane);       \
    T simd_shuffle_up(T, ushort delta);   \
    T simd_shuffle_down(T, ushort delta); \
    T simd_shuffle_xor(T, ushort mask);   \
    T simd_broadcast(T, ushort lane);     \
    T simd_broadcast_first(T);            \
    T simd_min(T);                        \
    T simd_max(T)
#define SIMD_SUMS(T)                \
    T simd_sum(T);                  \
    T simd_prefix_exclusive_sum(T); \
    T simd_prefix_inclusive_sum(T); \
    T simd_and(T);                  \
    T simd_or(T);                   \
    T simd_xor(T)
#define NO_SIMD_MOVES(T)                           \
    T simd_shuffle(T, ushort lane) = delete;       \
    T simd_shuffle_up(T, ushort delta) = delete;   \
    T simd_shuffle_down(T, ushort delta) = delete; \
    T simd_shuffle_xor(T, ushort mask) = delete;   \
    T simd_broadcast(T, ushort lane) = delete;     \
    T simd_broadcast_first(T) = delete;            \
    T simd_min(T) = delete;                        \
    T simd_max(T) = delete
#define NO_SIMD_SUMS(T)                      \
    T simd_sum(T) = delete;                  \
    T simd_prefix_exclusive_sum(T) = delete; \
    T simd_prefix_inclusive_sum(T) = delete; \
    T simd_and(T) = delete;                  \
    T simd_or(T) = delete;                   \
    T simd_xor(T) = delete
#define SIMD_INTEGER(T) \
    SIMD_MOVES(T);      \
    SIMD_SUMS(T)
#define NO_SIMD(T)    \
    NO_SIMD_MOVES(T); \
    NO_SIMD_SUMS(T)

ALSO_VECTORS(SIMD_INTEGER, int);
ALSO_VECTORS(SIMD_INTEGER, uint);
SIMD_INTEGER(char);
SIMD_INTEGER(uchar);
SIMD_INTEGER(short);
SIMD_INTEGER(ushort);
ALSO_VECTORS(SIMD_MOVES, float);
NO_SIMD_SUMS(float);
NO_SIMD(long);
NO_SIMD(ulong);
NO_SIMD(bool);

struct simd_vote {
    typedef ulong vote_t;
    explicit operator vote_t() const;
    bool all() const;
    bool any() const;
};
simd_vote simd_ballot(bool);
simd_vote simd_active_threads_mask();
bool simd_all(bool);
bool simd_any(bool);
bool simd_is_first();

}  // namespace metal

// `uint2(a, b)`: clang builds vectors from several numbers in braces only. The macros stand last,
// and only rewrite a name that an opening parenthesis follows.
#define char2(...) make_char2(__VA_ARGS__)
#define char3(...) make_char3(__VA_ARGS__)
#define char4(...) make_char4(__VA_ARGS__)
#define uchar2(...) make_uchar2(__VA_ARGS__)
#define uchar3(...) make_uchar3(__VA_ARGS__)
#define uchar4(...) make_uchar4(__VA_ARGS__)
#define short2(...) make_short2(__VA_ARGS__)
#define short3(...) make_short3(__VA_ARGS__)
#define short4(...) make_short4(__VA_ARGS__)
#define ushort2(...) make_ushort2(__VA_ARGS__)
#define ushort3(...) make_ushort3(__VA_ARGS__)
#define ushort4(...) make_ushort4(__VA_ARGS__)
#define int2(...) make_int2(__VA_ARGS__)
#define int3(...) make_int3(__VA_ARGS__)
#define int4(...) make_int4(__VA_ARGS__)
#define uint2(...) make_uint2(__VA_ARGS__)
#define uint3(...) make_uint3(__VA_ARGS__)
#define uint4(...) make_uint4(__VA_ARGS__)
#define long2(...) make_long2(__VA_ARGS__)
#define long3(...) make_long3(__VA_ARGS__)
#define long4(...) make_long4(__VA_ARGS__)
#define ulong2(...) make_ulong2(__VA_ARGS__)
#define ulong3(...) make_ulong3(__VA_ARGS__)
#define ulong4(...) make_ulong4(__VA_ARGS__)
#define float2(...) make_float2(__VA_ARGS__)
#define float3(...) make_float3(__VA_ARGS__)
#define float4(...) make_float4(__VA_ARGS__)

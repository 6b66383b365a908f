// Atomics. One thread runs at a time, so that plain operations are atomic; the instrumented build
// asks the runtime about each of them.
#pragma once

#ifdef EMU_INSTRUMENTED
#define EMU_ATOMIC __attribute__((noinline, no_sanitize("thread"))) inline
#else
#define EMU_ATOMIC inline
#endif

namespace metal {

// The only order there is.
enum memory_order { memory_order_relaxed };

// No implicit load or store. The value is public for the functions below only.
template <typename T>
struct atomic {
    T emu_value;
    atomic() = default;
    atomic(const atomic&) = delete;
    atomic& operator=(const atomic&) = delete;
};

// Metal has these in device memory only.
template <typename T>
inline void emu_check_space(const void* address, int line) {
    const bool in_threadgroup = address >= emu_arena && address < emu_arena + sizeof emu_arena;
    if (in_threadgroup && is_one_of<T, float, ulong>::value) {
        emu_fail("an atomic type that threadgroup memory cannot have", line);
    }
}

template <typename T>
inline void emu_access_atomic(const void* address, int kind, int line) {
    emu_check_space<T>(address, line);
#ifdef EMU_INSTRUMENTED
    emu_atomic(address, sizeof(T), kind, line);
#else
    (void)kind;
#endif
}

#ifdef EMU_INSTRUMENTED
// What an atomic function returns: tells whether anybody uses it.
template <typename T>
class fetched {
  public:
    EMU_ATOMIC fetched(T value, const volatile void* address) : value_(value), address_(address) {}
    operator T() const {
        emu_atomic_result(const_cast<const void*>(address_));
        return value_;
    }

  private:
    T value_;
    const volatile void* address_;
};
#define EMU_FETCHED(value) fetched<T>(value, object)
#else
template <typename T>
using fetched = T;
#define EMU_FETCHED(value) value
#endif

template <typename T>
EMU_ATOMIC T atomic_load_explicit(const volatile atomic<T>* object, memory_order,
                                  int line = __builtin_LINE()) {
    static_assert(is_one_of<T, int, uint, float, bool>::value, "no such atomic load in MSL");
    emu_access_atomic<T>(const_cast<const atomic<T>*>(object), emu_load, line);
    return object->emu_value;
}

template <typename T>
EMU_ATOMIC void atomic_store_explicit(volatile atomic<T>* object, typename scalar<T>::type desired,
                                      memory_order, int line = __builtin_LINE()) {
    static_assert(is_one_of<T, int, uint, float, bool>::value, "no such atomic store in MSL");
    emu_access_atomic<T>(const_cast<atomic<T>*>(object), emu_store, line);
    object->emu_value = desired;
}

template <typename T>
EMU_ATOMIC fetched<T> atomic_exchange_explicit(volatile atomic<T>* object,
                                               typename scalar<T>::type desired, memory_order,
                                               int line = __builtin_LINE()) {
    static_assert(is_one_of<T, int, uint, float, bool>::value, "no such atomic exchange in MSL");
    emu_access_atomic<T>(const_cast<atomic<T>*>(object), emu_load | emu_store, line);
    const T old = object->emu_value;
    object->emu_value = desired;
    return EMU_FETCHED(old);
}

// Never fails without a reason here; on a device it may.
template <typename T>
EMU_ATOMIC bool atomic_compare_exchange_weak_explicit(volatile atomic<T>* object, T* expected,
                                                      typename scalar<T>::type desired,
                                                      memory_order, memory_order,
                                                      int line = __builtin_LINE()) {
    static_assert(is_one_of<T, int, uint, float, bool>::value, "no such atomic in MSL");
    emu_access_atomic<T>(const_cast<atomic<T>*>(object), emu_load | emu_store, line);
    const T old = object->emu_value;
    if (__builtin_memcmp(&old, expected, sizeof old) == 0) {
        object->emu_value = desired;
        return true;
    }
    *expected = old;
    return false;
}

inline int emu_add(int a, int b) {
    return int(uint(a) + uint(b));
}
inline int emu_subtract(int a, int b) {
    return int(uint(a) - uint(b));
}
template <typename T>
inline T emu_add(T a, T b) {
    return a + b;
}
template <typename T>
inline T emu_subtract(T a, T b) {
    return a - b;
}

// fetch_##name: object = expression of old and operand; returns old.
#define EMU_FETCH(name, requirement, expression)                                          \
    template <typename T>                                                                 \
    EMU_ATOMIC fetched<T> atomic_fetch_##name##_explicit(                                 \
        volatile atomic<T>* object, typename scalar<T>::type operand, memory_order,       \
        int line = __builtin_LINE()) {                                                    \
        static_assert(requirement, "MSL has no atomic_fetch_" #name " of this type");     \
        emu_access_atomic<T>(const_cast<atomic<T>*>(object), emu_load | emu_store, line); \
        const T old = object->emu_value;                                                  \
        object->emu_value = expression;                                                   \
        return EMU_FETCHED(old);                                                          \
    }

#define EMU_INTEGER is_one_of<T, int, uint>::value
#define EMU_NUMBER is_one_of<T, int, uint, float>::value

EMU_FETCH(add, EMU_NUMBER, emu_add(old, operand))
EMU_FETCH(sub, EMU_NUMBER, emu_subtract(old, operand))
EMU_FETCH(min, EMU_INTEGER, old < operand ? old : operand)
EMU_FETCH(max, EMU_INTEGER, old > operand ? old : operand)
EMU_FETCH(and, EMU_INTEGER, (old & operand))
EMU_FETCH(or, EMU_INTEGER, old | operand)
EMU_FETCH(xor, EMU_INTEGER, old ^ operand)

// 64 bits: these two, without a result, in device memory.
EMU_ATOMIC void atomic_min_explicit(volatile atomic<ulong>* object, ulong operand, memory_order,
                                    int line = __builtin_LINE()) {
    emu_access_atomic<ulong>(const_cast<atomic<ulong>*>(object), emu_load | emu_store, line);
    object->emu_value = object->emu_value < operand ? object->emu_value : operand;
}

EMU_ATOMIC void atomic_max_explicit(volatile atomic<ulong>* object, ulong operand, memory_order,
                                    int line = __builtin_LINE()) {
    emu_access_atomic<ulong>(const_cast<atomic<ulong>*>(object), emu_load | emu_store, line);
    object->emu_value = object->emu_value > operand ? object->emu_value : operand;
}

typedef atomic<int> atomic_int;
typedef atomic<uint> atomic_uint;
typedef atomic<bool> atomic_bool;
typedef atomic<float> atomic_float;
typedef atomic<ulong> atomic_ulong;

}  // namespace metal

// What the token pass writes around a kernel.
#pragma once

// Reads the runtime's own memory: nothing to check.
#ifdef EMU_INSTRUMENTED
#define EMU_ENTRY __attribute__((no_sanitize("thread")))
#else
#define EMU_ENTRY
#endif

namespace emu {

// How an attribute of a kernel parameter becomes a value of the parameter's type.
template <typename T>
struct Attribute {  // uint, ushort: a number, or x
    static T of(unsigned number) { return static_cast<T>(number); }
    static T of(const unsigned* numbers) { return static_cast<T>(numbers[0]); }
};

template <typename T>
struct Attribute<metal::vec<T, 2>> {
    static metal::vec<T, 2> of(const unsigned* at) {
        return metal::vec<T, 2>(static_cast<T>(at[0]), static_cast<T>(at[1]));
    }
};

template <typename T>
struct Attribute<metal::vec<T, 3>> {
    static metal::vec<T, 3> of(const unsigned* at) {
        return metal::vec<T, 3>(static_cast<T>(at[0]), static_cast<T>(at[1]),
                                static_cast<T>(at[2]));
    }
};

// The threadgroup memory of a kernel.
template <typename T>
inline T& memory() {
    return *reinterpret_cast<T*>(emu_arena);
}

}  // namespace emu

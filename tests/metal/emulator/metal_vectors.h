// Vectors of 2 to 4 numbers: components, elements, constructors, arithmetic. No swizzles.
#pragma once

namespace metal {

// 3-vectors have the size of 4-vectors.
template <typename T, int n>
struct alignas(sizeof(T) * (n == 2 ? 2 : 4)) vec;

#define EMU_ELEMENTS                   \
    T& operator[](int i) {             \
        return (&x)[i];                \
    }                                  \
    const T& operator[](int i) const { \
        return (&x)[i];                \
    }                                  \
    typedef T element

template <typename T>
struct alignas(sizeof(T) * 2) vec<T, 2> {
    T x, y;
    EMU_ELEMENTS;
    vec() = default;
    constexpr vec(T all) : x(all), y(all) {}
    constexpr vec(T x, T y) : x(x), y(y) {}
    template <typename U>
    constexpr explicit vec(const vec<U, 2>& v) : x(T(v.x)), y(T(v.y)) {}
};

template <typename T>
struct alignas(sizeof(T) * 4) vec<T, 3> {
    T x, y, z;
    EMU_ELEMENTS;
    vec() = default;
    constexpr vec(T all) : x(all), y(all), z(all) {}
    constexpr vec(T x, T y, T z) : x(x), y(y), z(z) {}
    constexpr vec(vec<T, 2> v, T z) : x(v.x), y(v.y), z(z) {}
    template <typename U>
    constexpr explicit vec(const vec<U, 3>& v) : x(T(v.x)), y(T(v.y)), z(T(v.z)) {}
};

template <typename T>
struct alignas(sizeof(T) * 4) vec<T, 4> {
    T x, y, z, w;
    EMU_ELEMENTS;
    vec() = default;
    constexpr vec(T all) : x(all), y(all), z(all), w(all) {}
    constexpr vec(T x, T y, T z, T w) : x(x), y(y), z(z), w(w) {}
    constexpr vec(vec<T, 2> v, vec<T, 2> u) : x(v.x), y(v.y), z(u.x), w(u.y) {}
    constexpr vec(vec<T, 3> v, T w) : x(v.x), y(v.y), z(v.z), w(w) {}
    template <typename U>
    constexpr explicit vec(const vec<U, 4>& v) : x(T(v.x)), y(T(v.y)), z(T(v.z)), w(T(v.w)) {}
};

// The type of a scalar operand: T, but nothing is deduced from it, so that it converts.
template <typename T>
struct scalar {
    typedef T type;
};

#define EMU_OPERATOR(op)                                                            \
    template <typename T, int n>                                                    \
    inline vec<T, n>& operator op## = (vec<T, n> & a, vec<T, n> b) {                \
        for (int i = 0; i < n; ++i) {                                               \
            a[i] = T(a[i] op b[i]);                                                 \
        }                                                                           \
        return a;                                                                   \
    }                                                                               \
    template <typename T, int n>                                                    \
    inline vec<T, n>& operator op## = (vec<T, n> & a, typename scalar<T>::type b) { \
        return a op## = vec<T, n>(b);                                               \
    }                                                                               \
    template <typename T, int n>                                                    \
    inline vec<T, n> operator op(vec<T, n> a, vec<T, n> b) {                        \
        return a op## = b;                                                          \
    }                                                                               \
    template <typename T, int n>                                                    \
    inline vec<T, n> operator op(vec<T, n> a, typename scalar<T>::type b) {         \
        return a op## = vec<T, n>(b);                                               \
    }                                                                               \
    template <typename T, int n>                                                    \
    inline vec<T, n> operator op(typename scalar<T>::type a, vec<T, n> b) {         \
        return vec<T, n>(a) op b;                                                   \
    }

EMU_OPERATOR(+)
EMU_OPERATOR(-)
EMU_OPERATOR(*)
EMU_OPERATOR(/)
EMU_OPERATOR(%)
EMU_OPERATOR(&)
EMU_OPERATOR(|)
EMU_OPERATOR(^)
EMU_OPERATOR(<<)
EMU_OPERATOR(>>)

template <typename T, int n>
inline vec<T, n> operator-(vec<T, n> a) {
    for (int i = 0; i < n; ++i) {
        a[i] = T(-a[i]);
    }
    return a;
}

template <typename T, int n>
inline vec<T, n> operator~(vec<T, n> a) {
    for (int i = 0; i < n; ++i) {
        a[i] = T(~a[i]);
    }
    return a;
}

#define EMU_COMPARISON(op)                                                     \
    template <typename T, int n>                                               \
    inline vec<bool, n> operator op(vec<T, n> a, vec<T, n> b) {                \
        vec<bool, n> result;                                                   \
        for (int i = 0; i < n; ++i) {                                          \
            result[i] = a[i] op b[i];                                          \
        }                                                                      \
        return result;                                                         \
    }                                                                          \
    template <typename T, int n>                                               \
    inline vec<bool, n> operator op(vec<T, n> a, typename scalar<T>::type b) { \
        return a op vec<T, n>(b);                                              \
    }

EMU_COMPARISON(==)
EMU_COMPARISON(!=)
EMU_COMPARISON(<)
EMU_COMPARISON(<=)
EMU_COMPARISON(>)
EMU_COMPARISON(>=)

template <int n>
inline bool any(vec<bool, n> v) {
    bool result = false;
    for (int i = 0; i < n; ++i) {
        result = result || v[i];
    }
    return result;
}

template <int n>
inline bool all(vec<bool, n> v) {
    bool result = true;
    for (int i = 0; i < n; ++i) {
        result = result && v[i];
    }
    return result;
}

// As vec, but aligned like one number, and 3-vectors have no gap.
template <typename T, int n>
struct packed_vec {
    T elements[n];
    packed_vec() = default;
    packed_vec(vec<T, n> v) {
        for (int i = 0; i < n; ++i) {
            elements[i] = v[i];
        }
    }
    operator vec<T, n>() const {
        vec<T, n> v;
        for (int i = 0; i < n; ++i) {
            v[i] = elements[i];
        }
        return v;
    }
    T& operator[](int i) { return elements[i]; }
    const T& operator[](int i) const { return elements[i]; }
};

}  // namespace metal

#define EMU_VECTOR_NAMES(T)                        \
    typedef metal::vec<T, 2> T##2;                 \
    typedef metal::vec<T, 3> T##3;                 \
    typedef metal::vec<T, 4> T##4;                 \
    typedef metal::packed_vec<T, 2> packed_##T##2; \
    typedef metal::packed_vec<T, 3> packed_##T##3; \
    typedef metal::packed_vec<T, 4> packed_##T##4;

EMU_VECTOR_NAMES(bool)
EMU_VECTOR_NAMES(char)
EMU_VECTOR_NAMES(uchar)
EMU_VECTOR_NAMES(short)
EMU_VECTOR_NAMES(ushort)
EMU_VECTOR_NAMES(int)
EMU_VECTOR_NAMES(uint)
EMU_VECTOR_NAMES(long)
EMU_VECTOR_NAMES(ulong)
EMU_VECTOR_NAMES(float)

// Sorting floating-point numbers by their bits, without comparisons: several times as fast as
// sorting by comparisons, however the numbers are distributed.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace torchgbdt {

// Integers in the order of the numbers: -inf, negative, 0, positive, inf; then NaN, all bits set.
template <typename Number>
struct OrderedKey {
    using Key = std::conditional_t<std::is_same_v<Number, float>, std::uint32_t, std::uint64_t>;
    static constexpr Key kSign = Key{1} << (8 * sizeof(Key) - 1);

    static Key from(Number x) {
        if (x != x) {
            return ~Key{0};
        }
        const Number no_minus_zero = x + Number{0};
        Key bits;
        std::memcpy(&bits, &no_minus_zero, sizeof bits);
        return (bits & kSign) != 0 ? ~bits : bits | kSign;
    }

    static Number number(Key key) {
        const Key bits = (key & kSign) != 0 ? key & ~kSign : ~key;  // all bits set: a NaN
        Number x;
        std::memcpy(&x, &bits, sizeof x);
        return x;
    }
};

// Sorts ascending, from the lowest digit to the highest; a digit that all keys share is skipped, so
// integers in float64 take two or three passes instead of six. scratch: for as many keys.
template <typename Key>
void radix_sort(std::vector<Key>& keys, std::vector<Key>& scratch) {
    constexpr int kDigitBits = 11;  // counts of a digit stay in L1, and float32 takes three passes
    constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;
    constexpr int kPasses = (8 * sizeof(Key) + kDigitBits - 1) / kDigitBits;
    const auto digit = [](Key key, int pass) {
        return static_cast<std::size_t>(key >> (pass * kDigitBits)) & (kDigits - 1);
    };
    std::vector<std::array<std::size_t, kDigits>> counts(kPasses);
    for (const Key key : keys) {
        for (int pass = 0; pass < kPasses; ++pass) {
            ++counts[static_cast<std::size_t>(pass)][digit(key, pass)];
        }
    }
    scratch.resize(keys.size());
    for (int pass = 0; pass < kPasses; ++pass) {
        std::array<std::size_t, kDigits>& places = counts[static_cast<std::size_t>(pass)];
        if (keys.empty() || places[digit(keys.front(), pass)] == keys.size()) {
            continue;
        }
        std::size_t begin = 0;
        for (std::size_t& place : places) {
            const std::size_t count = place;
            place = begin;
            begin += count;
        }
        for (const Key key : keys) {
            scratch[places[digit(key, pass)]++] = key;
        }
        keys.swap(scratch);
    }
}

}  // namespace torchgbdt

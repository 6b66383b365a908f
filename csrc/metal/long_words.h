// 64-bit numbers that the host passes as two words of 32 bits, low first.
#pragma once

namespace torchgbdt {

inline long long_of_words(int low, int high) {
    return static_cast<long>((static_cast<ulong>(static_cast<uint>(high)) << 32) |
                             static_cast<uint>(low));
}

}  // namespace torchgbdt

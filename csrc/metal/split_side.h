// Which side of a split a bin code goes to.
#pragma once

namespace torchgbdt {

// Codes up to split_bin go left, and the missing code where the split sends it.
inline bool code_goes_left(int code, int split_bin, int missing_code, bool missing_left) {
    return code == missing_code ? missing_left : code <= split_bin;
}

}  // namespace torchgbdt

// The version this library was compiled as; Python compares it with its own.
#pragma once

namespace torchgbdt {

const char* version();

}  // namespace torchgbdt

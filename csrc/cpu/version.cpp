#include "cpu/version.h"

namespace torchgbdt {

const char* version() {
    return TORCHGBDT_VERSION;  // from pyproject.toml, by CMakeLists.txt
}

}  // namespace torchgbdt

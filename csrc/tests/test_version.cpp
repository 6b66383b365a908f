#include "cpu/version.h"
#include "tests/check.h"

#include <string>

TEST(version_is_the_one_in_pyproject_toml) {
    CHECK_EQUAL(std::string(torchgbdt::version()).find("0."), 0u);
}

TEST_MAIN()

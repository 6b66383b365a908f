#include "cpu/code_test.h"
#include "tests/check.h"

using torchgbdt::CodeTest;

// Of a column with `missing` as its largest code: values up to the rank go left.
TEST(every_code_goes_where_its_split_sends_it) {
    for (int missing = 0; missing <= 255; ++missing) {
        for (int rank = 0; rank <= 255; ++rank) {
            for (const bool missing_left : {false, true}) {
                const CodeTest test(3, rank, missing, missing_left);
                CHECK(test.column == 3);
                for (int code = 0; code <= missing; ++code) {
                    const bool goes_left = code == missing ? missing_left : code <= rank;
                    CHECK(test.goes_right(static_cast<std::uint8_t>(code)) == !goes_left);
                }
            }
        }
    }
}

TEST(every_code_goes_left_at_a_leaf) {
    for (int code = 0; code <= 255; ++code) {
        CHECK(!CodeTest::always_left().goes_right(static_cast<std::uint8_t>(code)));
    }
}

TEST_MAIN()

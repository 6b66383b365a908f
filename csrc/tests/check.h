// All that the C++ tests need of a test framework. Each csrc/tests/test_*.cpp is a program:
//
//     TEST(half_is_exact) {
//         CHECK(0.5 + 0.5 == 1.0);
//         CHECK_EQUAL(1 + 1, 2);
//     }
//     TEST_MAIN()
//
// It runs every TEST, reports each failed check, and exits with 1 if there was one.
#pragma once

#include <iostream>
#include <stdexcept>
#include <vector>

namespace check {

struct Test {
    const char* name;
    void (*body)();
};

inline std::vector<Test>& tests() {
    static std::vector<Test> all;
    return all;
}

inline int failures = 0;

struct Registration {
    Registration(const char* name, void (*body)()) { tests().push_back({name, body}); }
};

template <typename A, typename B>
void equal(const A& a, const B& b, const char* text, const char* file, int line) {
    if (a == b) {
        return;
    }
    ++failures;
    std::cerr.precision(17);
    std::cerr << file << ":" << line << ": " << text << ": " << +a << " != " << +b << "\n";
}

// Whether a call throws std::invalid_argument.
template <typename Call>
bool refused(const Call& call) {
    try {
        call();
    } catch (const std::invalid_argument&) {
        return true;
    }
    return false;
}

inline int run_all() {
    if (tests().empty()) {
        std::cerr << "no tests in this program\n";
        return 1;
    }
    for (const Test& test : tests()) {
        const int before = failures;
        test.body();
        std::cout << (failures == before ? "ok      " : "FAILED  ") << test.name << "\n";
    }
    return failures == 0 ? 0 : 1;
}

}  // namespace check

#define TEST(name)                                                  \
    static void name();                                             \
    static const check::Registration register_##name(#name, &name); \
    static void name()

#define CHECK(condition)                                                                \
    do {                                                                                \
        if (!(condition)) {                                                             \
            ++check::failures;                                                          \
            std::cerr << __FILE__ << ":" << __LINE__ << ": not true: " #condition "\n"; \
        }                                                                               \
    } while (false)

#define CHECK_EQUAL(a, b) check::equal((a), (b), #a " == " #b, __FILE__, __LINE__)

#define TEST_MAIN()              \
    int main() {                 \
        return check::run_all(); \
    }

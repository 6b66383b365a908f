#include "cpu/bindings_gil.h"

#include <chrono>
#include <thread>

namespace torchgbdt {
namespace {

[[noreturn]] void sleep_until_the_process_ends() {
    for (;;) {
        std::this_thread::sleep_for(std::chrono::hours{1});
    }
}

}  // namespace

ReleasedGil::~ReleasedGil() {
    try {
        PyEval_RestoreThread(state_);
    } catch (...) {  // not an exception but pthread_exit, which is over once this handler is left
        sleep_until_the_process_ends();
    }
}

}  // namespace torchgbdt

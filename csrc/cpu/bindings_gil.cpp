#include "cpu/bindings_gil.h"

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <pthread.h>
#include <thread>

namespace torchgbdt {
namespace {

namespace nb = nanobind;

std::atomic<int> n_asking{0};  // threads between a kernel and the GIL
std::atomic<bool> exiting{false};
std::thread::id exiting_thread;  // written before `exiting` is set

constexpr std::chrono::milliseconds kMoment{1};

[[noreturn]] void wait_for_the_end_of_the_process() {
    for (;;) {
        std::this_thread::sleep_for(std::chrono::hours{1});
    }
}

// Called while the interpreter still works: lets threads that already ask for the GIL have it.
void begin_exit() {
    exiting_thread = std::this_thread::get_id();
    exiting = true;
    while (n_asking > 0) {
        PyThreadState* state = PyEval_SaveThread();
        std::this_thread::sleep_for(kMoment);
        PyEval_RestoreThread(state);
    }
}

}  // namespace

ReleasedGil::~ReleasedGil() {
    ++n_asking;  // before `exiting` is read: one of the two threads sees the other
    if (exiting && std::this_thread::get_id() != exiting_thread) {
        --n_asking;
        wait_for_the_end_of_the_process();
    }
    PyEval_RestoreThread(state_);
    --n_asking;
}

void bind_exit(nb::module_& module) {
    module.def("begin_exit", &begin_exit, "Registered with atexit; see bindings_gil.h.");
    nb::module_::import_("atexit").attr("register")(module.attr("begin_exit"));
    // A child has one thread, which is not asking.
    pthread_atfork(nullptr, nullptr, [] { n_asking = 0; });
}

}  // namespace torchgbdt

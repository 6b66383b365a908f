// Releasing the GIL around a kernel, such that a process can end while one is running.
#pragma once

#include <nanobind/nanobind.h>

namespace torchgbdt {

// Gives up the GIL for as long as it lives.
//
// When an interpreter shuts down it ends every other thread that asks for the GIL, and before
// Python 3.14 it does so by unwinding the thread's stack, which C++ answers with std::terminate. So
// once exit has begun no thread asks any more: one that returns from a kernel waits for the process
// to end. The thread that shuts the interpreter down goes on.
class ReleasedGil {
  public:
    ReleasedGil() : state_(PyEval_SaveThread()) {}
    ~ReleasedGil();
    ReleasedGil(const ReleasedGil&) = delete;
    ReleasedGil& operator=(const ReleasedGil&) = delete;

  private:
    PyThreadState* state_;
};

// Registers with Python's atexit what makes this hold.
void bind_exit(nanobind::module_& module);

}  // namespace torchgbdt

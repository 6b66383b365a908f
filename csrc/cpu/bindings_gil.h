// Releasing the GIL around a kernel, such that a process can end while one is running.
#pragma once

#include <Python.h>

namespace torchgbdt {

// Gives up the GIL for as long as it lives.
//
// While an interpreter shuts down it ends every other thread that asks for the GIL. Before Python
// 3.14 it does so by pthread_exit, which with glibc unwinds the thread's stack; C++ answers with
// std::terminate. Here such a thread sleeps until the process ends, as all do from Python 3.14 on.
// Until that moment, in atexit handlers too, a thread that returns from a kernel gets the GIL back.
class ReleasedGil {
  public:
    ReleasedGil() : state_(PyEval_SaveThread()) {}
    ~ReleasedGil();
    ReleasedGil(const ReleasedGil&) = delete;
    ReleasedGil& operator=(const ReleasedGil&) = delete;

  private:
    PyThreadState* state_;
};

}  // namespace torchgbdt

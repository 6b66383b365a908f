// What Python hands to the runtime, and gets back; dispatch.py knows these layouts.
#pragma once

#include "runtime.h"

extern "C" {

struct emu_counters {
    unsigned long long dispatches;
    unsigned long long groups;
    unsigned long long threads;
    unsigned long long barriers;  // per thread
};

struct emu_dispatch {
    const emu_kernel* kernel;
    void* buffers[emu_max_buffers];
    emu_counters* counters;
    unsigned long long seed;
    unsigned threads[3];
    unsigned group[3];
    unsigned shuffle;  // 0: groups and threads run in ascending order
    unsigned flush_subnormals;
};

struct emu_failure {
    int line;
    unsigned group[3];
    unsigned thread[3];
    char message[256];
};

extern emu_failure emu_last_failure;

int emu_run(const emu_dispatch* dispatch);  // 0, or 1 after a failure

}  // extern "C"

// What Python hands to the runtime, and gets back; dispatch.py knows these layouts.
#pragma once

#include "runtime.h"

#pragma GCC visibility push(default)
extern "C" {

// Of one argument; [0] read, [1] written; atomics excluded.
struct emu_traffic {
    unsigned long long bytes[2];
    unsigned long long group_lines[2];     // lines of 128 bytes, each once per group
    unsigned long long dispatch_lines[2];  // and each once per dispatch
};

struct emu_counters {
    unsigned long long dispatches;
    unsigned long long groups;
    unsigned long long threads;
    unsigned long long barriers;  // of all threads
    // The others are counted by instrumented builds only.
    unsigned long long device_bytes_read;  // atomics excluded; constants by value are not device
    unsigned long long device_bytes_written;
    unsigned long long threadgroup_bytes_read;
    unsigned long long threadgroup_bytes_written;
    unsigned long long device_atomics;  // returning or not
    unsigned long long threadgroup_atomics;
    unsigned long long returning_threadgroup_atomics;  // whose result was used
    unsigned long long threadgroup_updates;            // atomics that are no load and no store
    emu_traffic arguments[emu_max_buffers];            // where nothing is checked
};

// What an argument binds.
struct emu_extent {
    unsigned long long address;
    unsigned long long size;
    unsigned argument;
    unsigned flags;
};
enum { emu_may_write = 1, emu_by_value = 2 };

struct emu_dispatch {
    const emu_kernel* kernel;
    void* buffers[emu_max_buffers];
    emu_counters* counters;
    const emu_extent* extents;
    unsigned long long seed;
    double seconds;  // of processor time, at most
    unsigned threads[3];
    unsigned group[3];
    unsigned shuffle;  // 0: groups and threads run in ascending order
    unsigned flush_subnormals;
    unsigned n_extents;
    unsigned checked;  // needs an instrumented kernel
};

// `where` and `other` are addresses of code in the kernel's library, 0 if unknown, or minus a line.
struct emu_failure {
    int where;
    int other;
    unsigned group[3];
    unsigned thread[3];
    char message[256];
};

extern emu_failure emu_last_failure;

int emu_run(const emu_dispatch* dispatch);  // 0, or 1 after a failure

}  // extern "C"
#pragma GCC visibility pop

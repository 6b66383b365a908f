// Where the running dispatch is.
#pragma once

#include "schedule.h"
#include "switch.h"

#include <vector>

struct Fibre {
    Context context;
    char* stack;
};

enum class State : unsigned char { ready, in_barrier, in_simd, ended };

struct Thread {
    emu_position position;
    Fibre* fibre;
    State state;
    int line;
    unsigned short epochs[2];  // barriers passed that order threadgroup and device memory
    unsigned char simd_epochs[2];
};

// Values in flight between the lanes of a simdgroup. Two sets, used in turn: a lane can be one
// exchange ahead of another that has yet to read.
struct Simdgroup {
    alignas(16) char values[2][emu_simd_width * 16];
    unsigned lanes[2];
    unsigned turn;
    unsigned n_live;
    unsigned n_waiting;
    unsigned arrived;
    int line;
};

struct Runtime {
    const emu_dispatch* dispatch;
    void* const* buffers;
    Random random;
    bool failed;
    Context main;
    Fibre* running;
    Thread* current;
    std::vector<Fibre*> fibres;
    std::vector<Fibre*> idle;
    Thread threads[emu_max_threads];
    Simdgroup simdgroups[emu_max_threads / emu_simd_width];
    unsigned n_threads;
    unsigned order[emu_max_threads];  // in which threads start
    unsigned n_started;
    unsigned n_ended;
    unsigned n_in_barrier;
    Thread* barrier_first;
    Thread* ready[emu_max_threads];  // a ring: a thread is in it once at most
    unsigned ready_begin;
    unsigned n_ready;
};

extern Runtime runtime;

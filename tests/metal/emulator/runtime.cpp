// Runs dispatches: the threads of a threadgroup are fibres, groups follow one another.
//
// A fibre runs threads to their end until one of them waits, at a barrier or in a simd function;
// that thread then owns the fibre, and the next thread gets another one. Whoever arrives last makes
// the others ready. Failures leave all stacks as they are and return to emu_run().
#include "runtime.h"

#include "checks.h"
#include "faults.h"
#include "float_mode.h"
#include "state.h"

#include <cstdio>
#include <cstring>

Runtime runtime;

namespace {

// Stacks begin at different places in their page: equal places would share few sets of the cache.
std::size_t stack_colour(std::size_t index) {
    return (index * 17 % 60) * 64;
}

Fibre* new_fibre() {
    auto* fibre = new Fibre;
    fibre->stack = allocate_stack();
    prepare_context(&fibre->context, fibre->stack,
                    stack_bytes - stack_colour(runtime.fibres.size()));
    runtime.fibres.push_back(fibre);
    return fibre;
}

Fibre* idle_fibre() {
    if (runtime.idle.empty()) {
        return new_fibre();
    }
    Fibre* fibre = runtime.idle.back();
    runtime.idle.pop_back();
    return fibre;
}

// After a failure: what is on the stacks is not finished.
void reset_fibres() {
    runtime.idle.clear();
    for (std::size_t i = 0; i < runtime.fibres.size(); ++i) {
        Fibre* fibre = runtime.fibres[i];
        prepare_context(&fibre->context, fibre->stack, stack_bytes - stack_colour(i));
        runtime.idle.push_back(fibre);
    }
}

void make_ready(Thread* thread) {
    thread->state = State::ready;
    const unsigned end = (runtime.ready_begin + runtime.n_ready) % emu_max_threads;
    runtime.ready[end] = thread;
    ++runtime.n_ready;
}

void resume(Fibre* fibre) {
    Fibre* from = runtime.running;
    if (fibre != from) {
        runtime.running = fibre;
        emu_switch(&from->context, &fibre->context);
    }
}

void take_up(Thread* thread) {
    runtime.current = thread;
    emu_now = &thread->position;
}

// Leaves the calling fibre for one that has something to do; returns when its turn has come again.
void run_others() {
    if (runtime.n_ready > 0) {
        Thread* next = runtime.ready[runtime.ready_begin];
        runtime.ready_begin = (runtime.ready_begin + 1) % emu_max_threads;
        --runtime.n_ready;
        take_up(next);
        resume(next->fibre);
    } else if (runtime.n_started < runtime.n_threads) {
        resume(idle_fibre());
    } else {
        if (runtime.n_ended < runtime.n_threads) {
            emu_fail("threads wait for one another", runtime.current->line);
        }
        Fibre* from = runtime.running;
        runtime.running = nullptr;
        emu_switch(&from->context, &runtime.main);
    }
}

[[noreturn]] void fail_against(const Thread* other, const char* what, int line) {
    char message[200];
    const char* verb = other->state == State::in_barrier ? "waits at a barrier"
                       : other->state == State::in_simd  ? "waits in a simd function"
                                                         : "has ended";
    const unsigned* at = other->position.thread_position_in_threadgroup;
    std::snprintf(message, sizeof message, "%s, but thread (%u, %u, %u) of the group %s%s", what,
                  at[0], at[1], at[2], verb, other->state == State::ended ? "" : " of line ");
    if (other->state != State::ended) {
        const std::size_t used = std::strlen(message);
        std::snprintf(message + used, sizeof message - used, "%d", other->line);
    }
    emu_fail(message, line);
}

Thread* thread_in_state(State state, unsigned begin, unsigned end) {
    for (unsigned i = begin; i < end; ++i) {
        if (runtime.threads[i].state == state) {
            return &runtime.threads[i];
        }
    }
    return nullptr;
}

unsigned end_of_simdgroup(unsigned index) {
    const unsigned end = (index + 1) * emu_simd_width;
    return end < runtime.n_threads ? end : runtime.n_threads;
}

void release_simdgroup(unsigned index) {
    Simdgroup& group = runtime.simdgroups[index];
    group.lanes[group.turn] = group.arrived;
    group.turn ^= 1;
    group.n_waiting = 0;
    group.arrived = 0;
    unsigned lanes[emu_simd_width];
    unsigned n_lanes = 0;
    for (unsigned i = index * emu_simd_width; i < end_of_simdgroup(index); ++i) {
        if (runtime.threads[i].state == State::in_simd) {
            lanes[n_lanes++] = i;
        }
    }
    runtime.random.shuffle(lanes, n_lanes);
    for (unsigned i = 0; i < n_lanes; ++i) {
        make_ready(&runtime.threads[lanes[i]]);
    }
}

void end_thread(Thread* thread) {
    thread->state = State::ended;
    ++runtime.n_ended;
    if (runtime.n_in_barrier > 0) {
        fail_against(runtime.barrier_first, "a thread has ended", runtime.barrier_first->line);
    }
    const unsigned index = thread->position.simdgroup_index_in_threadgroup;
    Simdgroup& group = runtime.simdgroups[index];
    --group.n_live;
    if (group.n_waiting > 0 && group.n_waiting == group.n_live) {
        release_simdgroup(index);
    }
}

void start_group(const unsigned* group) {
    checks_begin_group();
    const emu_dispatch& dispatch = *runtime.dispatch;
    emu_position shared{};
    for (int d = 0; d < 3; ++d) {
        const unsigned first = group[d] * dispatch.group[d];
        const unsigned left = dispatch.threads[d] - first;
        shared.threads_per_grid[d] = dispatch.threads[d];
        shared.threadgroups_per_grid[d] = n_groups(dispatch, d);
        shared.dispatch_threads_per_threadgroup[d] = dispatch.group[d];
        shared.threadgroup_position_in_grid[d] = group[d];
        shared.threads_per_threadgroup[d] = left < dispatch.group[d] ? left : dispatch.group[d];
    }
    const unsigned* size = shared.threads_per_threadgroup;
    runtime.n_threads = size[0] * size[1] * size[2];
    const unsigned n_simdgroups = (runtime.n_threads + emu_simd_width - 1) / emu_simd_width;
    shared.simdgroups_per_threadgroup = n_simdgroups;
    unsigned index = 0;
    unsigned at[3];
    for (at[2] = 0; at[2] < size[2]; ++at[2]) {
        for (at[1] = 0; at[1] < size[1]; ++at[1]) {
            for (at[0] = 0; at[0] < size[0]; ++at[0], ++index) {
                Thread& thread = runtime.threads[index];
                thread.position = shared;
                for (int d = 0; d < 3; ++d) {
                    thread.position.thread_position_in_threadgroup[d] = at[d];
                    thread.position.thread_position_in_grid[d] =
                        group[d] * dispatch.group[d] + at[d];
                }
                thread.position.thread_index_in_threadgroup = index;
                thread.position.thread_index_in_simdgroup = index % emu_simd_width;
                thread.position.simdgroup_index_in_threadgroup = index / emu_simd_width;
                thread.state = State::ready;
                thread.line = 0;
                thread.epochs[0] = thread.epochs[1] = 0;
                thread.simd_epochs[0] = thread.simd_epochs[1] = 0;
                runtime.order[index] = index;
            }
        }
    }
    for (unsigned i = 0; i < n_simdgroups; ++i) {
        Simdgroup& simdgroup = runtime.simdgroups[i];
        simdgroup.n_live = end_of_simdgroup(i) - i * emu_simd_width;
        simdgroup.n_waiting = 0;
        simdgroup.arrived = 0;
        simdgroup.turn = 0;
    }
    runtime.random.shuffle(runtime.order, runtime.n_threads);
    runtime.n_started = runtime.n_ended = runtime.n_in_barrier = 0;
    runtime.ready_begin = runtime.n_ready = 0;
    std::memset(emu_arena, 0xa5, dispatch.kernel->threadgroup_bytes);
}

void run_group(const unsigned* group) {
    start_group(group);
    Fibre* fibre = idle_fibre();
    runtime.running = fibre;
    emu_switch(&runtime.main, &fibre->context);
}

}  // namespace

extern "C" {

const emu_position* emu_now;
alignas(64) char emu_arena[emu_arena_size];
emu_failure emu_last_failure;

void emu_fibre_main() {
    for (;;) {
        Fibre* self = runtime.running;
        while (runtime.n_started < runtime.n_threads) {
            Thread* thread = &runtime.threads[runtime.order[runtime.n_started++]];
            thread->fibre = self;
            take_up(thread);
            runtime.dispatch->kernel->run(runtime.buffers);
            end_thread(thread);
        }
        runtime.idle.push_back(self);
        run_others();
    }
}

void emu_barrier(unsigned flags, int line) {
    Thread* thread = runtime.current;
    thread->line = line;
    if (runtime.n_ended > 0) {
        fail_against(thread_in_state(State::ended, 0, runtime.n_threads), "a barrier", line);
    }
    const unsigned simdgroup = thread->position.simdgroup_index_in_threadgroup;
    if (runtime.simdgroups[simdgroup].n_waiting > 0) {
        const unsigned begin = simdgroup * emu_simd_width;
        fail_against(thread_in_state(State::in_simd, begin, end_of_simdgroup(simdgroup)),
                     "a barrier", line);
    }
    if (runtime.n_in_barrier == 0) {
        runtime.barrier_first = thread;
    } else if (runtime.barrier_first->line != line) {
        fail_against(runtime.barrier_first, "a barrier", line);
    }
    thread->state = State::in_barrier;
    if (++runtime.n_in_barrier == runtime.n_threads) {
        runtime.n_in_barrier = 0;
        runtime.random.shuffle(runtime.order, runtime.n_threads);
        for (unsigned i = 0; i < runtime.n_threads; ++i) {
            make_ready(&runtime.threads[runtime.order[i]]);
        }
    }
    ++runtime.dispatch->counters->barriers;
    run_others();
    thread->epochs[0] += (flags & emu_flag_threadgroup) != 0;
    thread->epochs[1] += (flags & emu_flag_device) != 0;
}

void emu_simd_barrier(unsigned flags, int line) {
    Thread* thread = runtime.current;
    const int nothing = 0;
    unsigned lanes;
    emu_exchange(&nothing, sizeof nothing, &lanes, line);
    thread->simd_epochs[0] += (flags & emu_flag_threadgroup) != 0;
    thread->simd_epochs[1] += (flags & emu_flag_device) != 0;
}

const char* emu_exchange(const void* value, unsigned size, unsigned* lanes, int line) {
    Thread* thread = runtime.current;
    thread->line = line;
    const unsigned index = thread->position.simdgroup_index_in_threadgroup;
    const unsigned lane = thread->position.thread_index_in_simdgroup;
    Simdgroup& group = runtime.simdgroups[index];
    const unsigned begin = index * emu_simd_width;
    if (runtime.n_in_barrier > 0) {
        Thread* other = thread_in_state(State::in_barrier, begin, end_of_simdgroup(index));
        if (other != nullptr) {
            fail_against(other, "a simd function", line);
        }
    }
    if (group.n_waiting == 0) {
        group.line = line;
    } else if (group.line != line) {
        fail_against(thread_in_state(State::in_simd, begin, end_of_simdgroup(index)),
                     "a simd function", line);
    }
    const unsigned turn = group.turn;
    std::memcpy(group.values[turn] + lane * 16, value, size);
    thread->state = State::in_simd;
    group.arrived |= 1u << lane;
    if (++group.n_waiting == group.n_live) {
        release_simdgroup(index);
    }
    run_others();
    *lanes = group.lanes[turn];
    return group.values[turn];
}

void emu_fail(const char* message, int line) {
    runtime.failed = true;
    std::snprintf(emu_last_failure.message, sizeof emu_last_failure.message, "%s", message);
    emu_last_failure.where = -line;
    for (int d = 0; d < 3; ++d) {
        emu_last_failure.group[d] = emu_now->threadgroup_position_in_grid[d];
        emu_last_failure.thread[d] = emu_now->thread_position_in_threadgroup[d];
    }
    runtime.running = nullptr;
    Context abandoned;
    emu_switch(&abandoned, &runtime.main);
    __builtin_unreachable();
}

int emu_run(const emu_dispatch* dispatch) {
    const FloatMode mode(dispatch->flush_subnormals != 0);
    runtime.running = nullptr;
    const FaultGuard guard(dispatch->seconds);
    runtime.dispatch = dispatch;
    runtime.failed = false;
    runtime.buffers = checks_begin_dispatch(*dispatch);
    emu_last_failure.other = 0;
    runtime.random = Random(dispatch->shuffle != 0, dispatch->seed);
    GroupOrder order(*dispatch, runtime.random);
    ++dispatch->counters->dispatches;
    unsigned group[3];
    while (!runtime.failed && order.next(group)) {
        run_group(group);
        ++dispatch->counters->groups;
        dispatch->counters->threads += runtime.n_threads;
    }
    if (runtime.failed) {
        reset_fibres();
    }
    checks_end_dispatch(runtime.failed);
    return runtime.failed ? 1 : 0;
}

}  // extern "C"

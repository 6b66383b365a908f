// What a compiled kernel and the runtime of the emulator say to each other. One dispatch runs at a
// time: its state is one global.
#pragma once

#pragma GCC visibility push(default)
extern "C" {

enum { emu_simd_width = 32, emu_max_buffers = 31, emu_max_threads = 1024 };
enum { emu_threadgroup_limit = 32768, emu_arena_size = 131072 };

// Behind each threadgroup array where its accesses are checked: whoever leaves it meets no other.
#ifdef EMU_INSTRUMENTED
enum { emu_array_gap = 1024 };
#define EMU_GAP(name) char name[emu_array_gap];
#else
enum { emu_array_gap = 0 };
#define EMU_GAP(name)
#endif

// A threadgroup array of a kernel, by its place in the arena.
struct emu_array {
    const char* name;
    unsigned offset;
    unsigned size;
};

// What a library exports for each kernel.
struct emu_kernel {
    void (*run)(void* const* buffers);  // the kernel for the thread that emu_now describes
    unsigned threadgroup_bytes;
    unsigned max_threads;  // [[max_total_threads_per_threadgroup]]; 0: none
    unsigned n_arrays;
    const emu_array* arrays;
};

// The running thread, as its attributes say it; x, y, z.
struct emu_position {
    unsigned threads_per_grid[3];
    unsigned threadgroups_per_grid[3];
    unsigned dispatch_threads_per_threadgroup[3];
    unsigned threadgroup_position_in_grid[3];
    unsigned threads_per_threadgroup[3];
    unsigned thread_position_in_threadgroup[3];
    unsigned thread_position_in_grid[3];
    unsigned thread_index_in_threadgroup;
    unsigned thread_index_in_simdgroup;
    unsigned simdgroup_index_in_threadgroup;
    unsigned simdgroups_per_threadgroup;
};

extern const emu_position* emu_now;
extern char emu_arena[emu_arena_size];

// Returns when all threads of the group have arrived.
enum { emu_flag_device = 1, emu_flag_threadgroup = 2 };  // metal::mem_flags
void emu_barrier(unsigned flags, int line);

// Hands `value` (16 bytes at most) to the other lanes, and waits until all of them have come.
// Returns their values, 16 bytes each, and in `lanes` which of them there are. They are valid until
// the calling thread waits again.
const char* emu_exchange(const void* value, unsigned size, unsigned* lanes, int line);

// A barrier of the calling simdgroup.
void emu_simd_barrier(unsigned flags, int line);

// Asked before each atomic access of an instrumented kernel; emu_load and emu_store.
enum { emu_load = 1, emu_store = 2 };
void emu_atomic(const void* address, unsigned size, int kind, int line);

// The kernel used what an atomic function returned.
void emu_atomic_result(const void* address);

// Ends the dispatch: it becomes a RuntimeError in Python.
[[noreturn]] void emu_fail(const char* message, int line);

}  // extern "C"
#pragma GCC visibility pop

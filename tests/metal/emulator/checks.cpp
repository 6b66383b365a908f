// The hooks that an instrumented kernel calls. It is compiled with -fsanitize=thread and linked
// without it: __tsan_read4 and its like are ours. They count, and find
//
//   races, between the threads of a group and between groups;
//   threadgroup memory that is read before it is written;
//   accesses outside of the buffers, or of the threadgroup array;
//   writes to what the kernel may only read.
#include "checks.h"

#include "memory.h"
#include "shadow.h"
#include "state.h"
#include "traffic.h"

#include <cstdio>
#include <cstring>
#include <dlfcn.h>

namespace {

enum class Kind { read, write, atomic_read, atomic_write };

bool is_write(Kind kind) {
    return kind == Kind::write || kind == Kind::atomic_write;
}

const char* verb(Kind kind) {
    return kind == Kind::read          ? "reads"
           : kind == Kind::write       ? "writes"
           : kind == Kind::atomic_read ? "reads atomically"
                                       : "writes atomically";
}

struct Checks {
    bool on;
    CopiedBuffers copies;
    void* buffers[emu_max_buffers];
    Pages device_pages;
    Cell* device_cells;
    Cell arena_cells[emu_arena_size];
    bool initialized[emu_arena_size];
    std::uint32_t group;        // groups so far, of all dispatches
    std::uint32_t first_group;  // of this dispatch
    const void* library;        // of the kernel
};

Checks checks;

const void* library_of(const void* address) {
    Dl_info info;
    return dladdr(address, &info) != 0 ? info.dli_fbase : nullptr;
}

// Code addresses are noted from the start of their library.
std::int32_t place_in_library(const void* code) {
    return static_cast<std::int32_t>(static_cast<const char*>(code) -
                                     static_cast<const char*>(checks.library));
}

[[noreturn]] void fail(const char* message, std::int32_t where, std::int32_t other = 0) {
    emu_last_failure.other = other;
    emu_fail(message, -where);
}

bool in_arena(const char* address) {
    return address >= emu_arena && address < emu_arena + emu_arena_size;
}

// The stack of the running thread, or data of the kernel's library and of the runtime.
bool is_private(const char* address) {
    const char* stack = runtime.running->stack;
    const char* state = reinterpret_cast<const char*>(&runtime);
    if ((address >= stack && address < stack + stack_bytes) ||
        (address >= state && address < state + sizeof runtime)) {
        return true;
    }
    const void* library = library_of(address);
    return library != nullptr && (library == checks.library || library == library_of(&runtime));
}

const emu_array* array_of(const char* address, unsigned size) {
    const emu_kernel& kernel = *runtime.dispatch->kernel;
    const std::size_t offset = address - emu_arena;
    for (unsigned i = 0; i < kernel.n_arrays; ++i) {
        const emu_array& array = kernel.arrays[i];
        if (offset >= array.offset && offset + size <= array.offset + array.size) {
            return &array;
        }
    }
    return nullptr;
}

[[noreturn]] void fail_outside_arrays(const char* address, unsigned size, Kind kind,
                                      std::int32_t where) {
    const emu_kernel& kernel = *runtime.dispatch->kernel;
    const long long offset = address - emu_arena;
    const emu_array* nearest = nullptr;
    for (unsigned i = 0; i < kernel.n_arrays; ++i) {
        if (nearest == nullptr || kernel.arrays[i].offset <= offset) {
            nearest = &kernel.arrays[i];
        }
    }
    char message[200];
    std::snprintf(
        message, sizeof message,
        "%s %u bytes out of bounds, at byte %lld of the threadgroup array '%s' of %u bytes",
        verb(kind), size, nearest == nullptr ? offset : offset - nearest->offset,
        nearest == nullptr ? "?" : nearest->name, nearest == nullptr ? 0 : nearest->size);
    fail(message, where);
}

[[noreturn]] void fail_outside_buffers(const char* address, unsigned size, Kind kind,
                                       std::int32_t where) {
    char message[200];
    const Region* nearest = checks.copies.nearest(address);
    if (nearest == nullptr || CopiedBuffers::distance(*nearest, address) > 4096) {
        std::snprintf(message, sizeof message, "%s %u bytes out of bounds, far from all buffers",
                      verb(kind), size);
    } else {
        std::snprintf(message, sizeof message,
                      "%s %u bytes out of bounds, at byte %lld of buffer(%u) of %zu bytes",
                      verb(kind), size, static_cast<long long>(address - nearest->copy),
                      nearest->argument, nearest->size);
    }
    fail(message, where);
}

[[noreturn]] void fail_race(const Access& before, Kind kind, const char* what, unsigned argument,
                            std::int32_t where) {
    char who[60];
    const bool other_group = before.group != checks.group || before.from_several_groups;
    if (other_group) {
        std::snprintf(who, sizeof who, "another group");
    } else if (before.thread == several) {
        std::snprintf(who, sizeof who, "another thread");
    } else {
        std::snprintf(who, sizeof who, "thread %u of the group", before.thread);
    }
    char message[200];
    char name[60];
    std::snprintf(name, sizeof name, what == nullptr ? "buffer(%u)" : "threadgroup memory",
                  argument);
    std::snprintf(message, sizeof message, "race: %s what %s touches %s, in %s%s%s", verb(kind),
                  who, other_group ? "in the same dispatch" : "since the last barrier for it",
                  what == nullptr ? name : "'", what == nullptr ? "" : what,
                  what == nullptr ? "" : "'");
    fail(message, where, before.where);
}

Access access_now(Kind kind, int memory, std::int32_t where) {
    const Thread& thread = *runtime.current;
    Access now{};
    now.group = checks.group;
    now.where = where;
    now.epoch = thread.epochs[memory];
    now.thread = static_cast<std::uint16_t>(thread.position.thread_index_in_threadgroup);
    now.simd_epoch = thread.simd_epochs[memory];
    now.is_atomic = kind == Kind::atomic_read || kind == Kind::atomic_write;
    return now;
}

void note(Cell* cells, unsigned size, Kind kind, const Access& now, std::uint32_t first_group,
          const char* what, unsigned argument) {
    for (unsigned i = 0; i < size; ++i) {
        const Access* before =
            is_write(kind) ? cells[i].write(now, first_group) : cells[i].read(now, first_group);
        if (before != nullptr) {
            fail_race(*before, kind, what, argument, now.where);
        }
    }
}

void check_arena(const char* address, unsigned size, Kind kind, bool reads, std::int32_t where) {
    const emu_array* array = array_of(address, size);
    if (array == nullptr) {
        fail_outside_arrays(address, size, kind, where);
    }
    const std::size_t offset = address - emu_arena;
    bool* initialized = checks.initialized + offset;
    if (reads && std::memchr(initialized, 0, size) != nullptr) {
        char message[200];
        std::snprintf(message, sizeof message,
                      "reads threadgroup memory that nobody has written: '%s', byte %zu",
                      array->name, offset - array->offset);
        fail(message, where);
    }
    note(checks.arena_cells + offset, size, kind, access_now(kind, 0, where), checks.group,
         array->name, 0);
    if (is_write(kind)) {
        std::memset(initialized, 1, size);
    }
}

void check_device(const Region& region, const char* address, unsigned size, Kind kind,
                  std::int32_t where) {
    if (is_write(kind) && !region.may_write) {
        char message[100];
        std::snprintf(message, sizeof message, "writes buffer(%u), which it may only read",
                      region.argument);
        fail(message, where);
    }
    Cell* cells = checks.device_cells + region.cell + (address - region.copy);
    note(cells, size, kind, access_now(kind, 1, where), checks.first_group, nullptr,
         region.argument);
}

void count(unsigned size, Kind kind, bool in_threadgroup) {
    emu_counters& counters = *runtime.dispatch->counters;
    if (in_threadgroup) {
        (is_write(kind) ? counters.threadgroup_bytes_written : counters.threadgroup_bytes_read) +=
            size;
    } else {
        (is_write(kind) ? counters.device_bytes_written : counters.device_bytes_read) += size;
    }
}

void access(const char* address, unsigned size, Kind kind, const void* code) {
    if (!checks.on) {
        if (in_arena(address) || traffic_note(address, size, is_write(kind))) {
            count(size, kind, in_arena(address));
        }
        return;
    }
    const std::int32_t where = place_in_library(code);
    if (in_arena(address)) {
        check_arena(address, size, kind, kind == Kind::read, where);
        count(size, kind, true);
    } else if (const Region* region = checks.copies.find(address, size)) {
        check_device(*region, address, size, kind, where);
        if (!region->by_value) {
            count(size, kind, false);
        }
    } else if (!is_private(address)) {
        fail_outside_buffers(address, size, kind, where);
    }
}

}  // namespace

void* const* checks_begin_dispatch(const emu_dispatch& dispatch) {
    checks.on = dispatch.checked != 0;
    if (!checks.on) {
        traffic_begin_dispatch(dispatch);
        return dispatch.buffers;
    }
    std::memcpy(checks.buffers, dispatch.buffers, sizeof checks.buffers);
    checks.copies.copy_in(dispatch, checks.buffers);
    const std::size_t n_bytes = checks.copies.n_bytes();
    // Zeroed pages are cells of group 0, which is before every dispatch.
    checks.device_cells =
        reinterpret_cast<Cell*>(checks.device_pages.at_least((n_bytes + 1) * sizeof(Cell)));
    checks.first_group = checks.group + 1;
    checks.library = library_of(reinterpret_cast<const void*>(dispatch.kernel->run));
    return checks.buffers;
}

void checks_end_dispatch(bool failed) {
    if (checks.on && !failed) {
        checks.copies.copy_out();
    }
}

void checks_begin_group() {
    traffic_begin_group();
    if (checks.on) {
        ++checks.group;
        std::memset(checks.initialized, 0, runtime.dispatch->kernel->threadgroup_bytes);
    }
}

#pragma GCC visibility push(default)
extern "C" {

void emu_atomic(const void* address, unsigned size, int kind, int line) {
    const char* byte = static_cast<const char*>(address);
    emu_counters& counters = *runtime.dispatch->counters;
    const bool in_threadgroup = in_arena(byte);
    ++(in_threadgroup ? counters.threadgroup_atomics : counters.device_atomics);
    counters.threadgroup_updates += in_threadgroup && kind == (emu_load | emu_store);
    if (!checks.on) {
        return;
    }
    const Kind what = (kind & emu_store) != 0 ? Kind::atomic_write : Kind::atomic_read;
    if (in_threadgroup) {
        check_arena(byte, size, what, (kind & emu_load) != 0, -line);
    } else if (const Region* region = checks.copies.find(byte, size)) {
        check_device(*region, byte, size, what, -line);
    } else {
        fail_outside_buffers(byte, size, what, -line);
    }
}

void emu_atomic_result(const void* address) {
    if (in_arena(static_cast<const char*>(address))) {
        ++runtime.dispatch->counters->returning_threadgroup_atomics;
    }
}

#define EMU_HOOK(name, size, kind)                                                              \
    void name(const char* address) {                                                            \
        access(address, size, kind, static_cast<const char*>(__builtin_return_address(0)) - 1); \
    }
#define EMU_HOOKS(size)                                     \
    EMU_HOOK(__tsan_read##size, size, Kind::read)           \
    EMU_HOOK(__tsan_write##size, size, Kind::write)         \
    EMU_HOOK(__tsan_unaligned_read##size, size, Kind::read) \
    EMU_HOOK(__tsan_unaligned_write##size, size, Kind::write)

EMU_HOOKS(1)
EMU_HOOKS(2)
EMU_HOOKS(4)
EMU_HOOKS(8)
EMU_HOOKS(16)

void __tsan_read_range(const char* address, unsigned long size) {
    access(address, static_cast<unsigned>(size), Kind::read,
           static_cast<const char*>(__builtin_return_address(0)) - 1);
}

void __tsan_write_range(const char* address, unsigned long size) {
    access(address, static_cast<unsigned>(size), Kind::write,
           static_cast<const char*>(__builtin_return_address(0)) - 1);
}

// Some compilers have these, too.
void* __tsan_memcpy(char* to, const char* from, unsigned long size) {
    __tsan_read_range(from, size);
    __tsan_write_range(to, size);
    return std::memcpy(to, from, size);
}

void* __tsan_memset(char* to, int byte, unsigned long size) {
    __tsan_write_range(to, size);
    return std::memset(to, byte, size);
}

void __tsan_init() {}
void __tsan_func_entry(const void*) {}
void __tsan_func_exit() {}

}  // extern "C"
#pragma GCC visibility pop

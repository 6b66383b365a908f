// Leaves one stack for another: emu_switch(&from, to) stores where it left and goes on where `to`
// was left. A fresh stack starts in emu_fibre_main().
//
// EMU_UCONTEXT chooses the slow portable way, which is also taken on other processors.
#pragma once

#include <cstddef>
#include <cstdint>

#if !defined(EMU_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define EMU_UCONTEXT
#endif

extern "C" void emu_fibre_main();

#ifdef EMU_UCONTEXT

#include <ucontext.h>

using Context = ucontext_t;

inline void emu_switch(Context* from, Context* to) {
    swapcontext(from, to);
}

#else

// A suspended context is its stack pointer: what a called function must preserve is on the stack.
struct Context {
    void* stack_pointer;
};

extern "C" void emu_switch(Context* from, Context* to);

#endif

// Makes a context of a stack that nobody uses: of `size` bytes from `stack` on.
void prepare_context(Context* context, char* stack, std::size_t size);

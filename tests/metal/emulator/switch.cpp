#include "switch.h"

#ifdef EMU_UCONTEXT

void prepare_context(Context* context, char* stack, std::size_t size) {
    getcontext(context);
    context->uc_stack.ss_sp = stack;
    context->uc_stack.ss_size = size;
    context->uc_link = nullptr;
    makecontext(context, emu_fibre_main, 0);
}

#else

#ifdef __APPLE__
#define EMU_SYMBOL "_emu_switch"
#else
#define EMU_SYMBOL "emu_switch"
#endif

#if defined(__x86_64__)

asm(".text\n"
    ".globl " EMU_SYMBOL "\n" EMU_SYMBOL
    ":\n"
    "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
    "  movq %rsp, (%rdi)\n"
    "  movq (%rsi), %rsp\n"
    "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
    "  ret\n");

void prepare_context(Context* context, char* stack, std::size_t size) {
    auto top = reinterpret_cast<std::uintptr_t>(stack + size) & ~std::uintptr_t(15);
    auto* words = reinterpret_cast<std::uintptr_t*>(top) - 8;
    for (int i = 0; i < 8; ++i) {
        words[i] = 0;
    }
    words[6] = reinterpret_cast<std::uintptr_t>(&emu_fibre_main);  // where `ret` goes
    context->stack_pointer = words;  // in emu_fibre_main, %rsp + 8 is a multiple of 16
}

#else  // __aarch64__

asm(".text\n"
    ".globl " EMU_SYMBOL
    "\n"
    ".p2align 2\n" EMU_SYMBOL
    ":\n"
    "  sub sp, sp, #160\n"
    "  stp x19, x20, [sp, #0]\n  stp x21, x22, [sp, #16]\n  stp x23, x24, [sp, #32]\n"
    "  stp x25, x26, [sp, #48]\n  stp x27, x28, [sp, #64]\n  stp x29, x30, [sp, #80]\n"
    "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n"
    "  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
    "  mov x9, sp\n  str x9, [x0]\n"
    "  ldr x9, [x1]\n  mov sp, x9\n"
    "  ldp x19, x20, [sp, #0]\n  ldp x21, x22, [sp, #16]\n  ldp x23, x24, [sp, #32]\n"
    "  ldp x25, x26, [sp, #48]\n  ldp x27, x28, [sp, #64]\n  ldp x29, x30, [sp, #80]\n"
    "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n"
    "  ldp d12, d13, [sp, #128]\n  ldp d14, d15, [sp, #144]\n"
    "  add sp, sp, #160\n"
    "  ret\n");

void prepare_context(Context* context, char* stack, std::size_t size) {
    auto top = reinterpret_cast<std::uintptr_t>(stack + size) & ~std::uintptr_t(15);
    auto* words = reinterpret_cast<std::uintptr_t*>(top) - 20;
    for (int i = 0; i < 20; ++i) {
        words[i] = 0;
    }
    words[11] = reinterpret_cast<std::uintptr_t>(&emu_fibre_main);  // x30, where `ret` goes
    context->stack_pointer = words;
}

#endif

#endif

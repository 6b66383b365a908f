// The order of dispatches, in one word on the device. Dispatches are numbered, and each moves the
// word from the number before its own to its own. So the word stops at the first dispatch that did
// not run, or ran out of turn, and whoever reads it knows (torchgbdt/backends/metal_turns.py):
// torch does not report that work of the GPU failed.
#pragma once

namespace torchgbdt {

// Every kernel calls it, with all its threads; index is 0 for one thread of the dispatch. These two
// buffers are the last of every kernel.
inline void take_turn(device atomic_uint* last_turn, int turn, uint index) {
    if (index == 0 && atomic_load_explicit(last_turn, memory_order_relaxed) == uint(turn) - 1u) {
        atomic_store_explicit(last_turn, uint(turn), memory_order_relaxed);
    }
}

}  // namespace torchgbdt

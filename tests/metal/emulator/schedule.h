// In which order groups and threads run, and on which stacks.
#pragma once

#include "dispatch.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <sys/mman.h>
#include <vector>

// xorshift64*: good enough to shuffle, and quick.
class Random {
  public:
    Random() = default;
    Random(bool on, unsigned long long seed)
        : on_(on), state_((seed + 1) * 0x9e3779b97f4a7c15ull | 1) {}

    unsigned below(unsigned n) {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        const auto word = static_cast<std::uint32_t>((state_ * 0x2545f4914f6cdd1dull) >> 32);
        return static_cast<unsigned>((std::uint64_t(word) * n) >> 32);
    }

    void shuffle(unsigned* items, std::size_t n) {
        for (std::size_t i = n; on_ && i > 1; --i) {
            const unsigned j = below(static_cast<unsigned>(i));
            const unsigned item = items[i - 1];
            items[i - 1] = items[j];
            items[j] = item;
        }
    }

  private:
    bool on_ = false;
    std::uint64_t state_ = 1;
};

inline unsigned n_groups(const emu_dispatch& dispatch, int d) {
    return (dispatch.threads[d] - 1) / dispatch.group[d] + 1;
}

// The groups of a dispatch, each once.
class GroupOrder {
  public:
    GroupOrder(const emu_dispatch& dispatch, Random& random) {
        std::size_t n = 1;
        for (int d = 0; d < 3; ++d) {
            size_[d] = n_groups(dispatch, d);
            n *= size_[d];
        }
        order_.resize(n);
        for (std::size_t i = 0; i < n; ++i) {
            order_[i] = static_cast<unsigned>(i);
        }
        random.shuffle(order_.data(), n);
    }

    bool next(unsigned* group) {
        if (done_ == order_.size()) {
            return false;
        }
        const unsigned index = order_[done_++];
        group[0] = index % size_[0];
        group[1] = index / size_[0] % size_[1];
        group[2] = index / size_[0] / size_[1];
        return true;
    }

  private:
    unsigned size_[3];
    std::size_t done_ = 0;
    std::vector<unsigned> order_;
};

constexpr std::size_t stack_bytes = 65536;

// A stack with a page below it that nobody may touch: an overflow faults.
inline char* allocate_stack() {
    constexpr std::size_t guard = 16384;  // a page, on every processor
    void* memory = mmap(nullptr, guard + stack_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || mprotect(memory, guard, PROT_NONE) != 0) {
        std::abort();
    }
    return static_cast<char*>(memory) + guard;
}

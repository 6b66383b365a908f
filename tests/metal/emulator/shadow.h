// Who touched a byte last: what it takes to see that two threads did, and nothing ordered them.
//
// Threads of a group are ordered by barriers that name the kind of memory, lanes of a simdgroup by
// their own barriers, too. Groups of a dispatch are not ordered at all. Two atomic accesses never
// conflict, nor do two reads.
#pragma once

#include <cstdint>

// One access. `where` is an address of code, from the start of its library, or minus a line.
struct Access {
    std::uint32_t group;  // number of the group; those of earlier dispatches are smaller
    std::int32_t where;
    std::uint16_t epoch;   // barriers passed
    std::uint16_t thread;  // or `several`
    std::uint8_t simd_epoch;
    bool is_atomic;
    bool from_several_groups;
};

constexpr std::uint16_t several = 0xffff;

class Cell {
  public:
    // The earlier access that conflicts with this one; nullptr if none does. Notes it.
    const Access* read(const Access& now, std::uint32_t first_group) {
        if (conflict(write_, now, first_group)) {
            return &write_;
        }
        if (near_.group >= first_group && near_.group != now.group) {
            if (far_.group < first_group || far_.is_atomic) {
                far_ = near_;
            }
            near_ = near_too_ = Access{};
        }
        if (near_.group != now.group || near_.epoch != now.epoch) {
            near_ = now;
            near_too_ = Access{};
        } else if (near_.thread == now.thread) {
            near_.is_atomic = near_.is_atomic && now.is_atomic;
        } else if (near_too_.group != now.group || !now.is_atomic) {
            near_too_ = now;
        }
        return nullptr;
    }

    const Access* write(const Access& now, std::uint32_t first_group) {
        for (const Access* before : {&write_, &far_, &near_, &near_too_}) {
            if (conflict(*before, now, first_group)) {
                return before;
            }
        }
        const Access before = write_;
        write_ = now;
        if (before.group < first_group) {
            return nullptr;
        }
        if (before.group != now.group || before.from_several_groups) {
            write_.from_several_groups = true;  // all of them atomic
        } else if (before.epoch == now.epoch) {
            if (before.thread != now.thread) {
                write_.thread = several;
            }
            write_.is_atomic = before.is_atomic && now.is_atomic;
        }
        return nullptr;
    }

  private:
    static bool conflict(const Access& before, const Access& now, std::uint32_t first_group) {
        if (before.group < first_group || (before.is_atomic && now.is_atomic)) {
            return false;
        }
        if (before.group != now.group || before.from_several_groups) {
            return true;
        }
        if (before.epoch != now.epoch || before.thread == now.thread) {
            return false;
        }
        const bool same_simdgroup = before.thread / 32 == now.thread / 32;
        return !same_simdgroup || before.simd_epoch == now.simd_epoch;
    }

    Access write_;
    Access far_;       // read by an earlier group
    Access near_;      // read by this group, since its last barrier
    Access near_too_;  // the same, by another thread
};

// The buffers of a checked dispatch: copies, far from each other, so that an access just outside of
// one meets none.
#pragma once

#include "dispatch.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <vector>

// Bytes that one argument binds, or several that overlap.
struct Region {
    char* original;
    char* copy;
    std::size_t size;
    std::size_t cell;  // of its first byte, in the shadow
    bool may_write;
    bool by_value;
    unsigned argument;  // the first of them
};

// Pages that grow and keep nothing.
class Pages {
  public:
    char* at_least(std::size_t size) {
        if (size > size_) {
            if (start_ != nullptr) {
                munmap(start_, size_);
            }
            void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
            if (memory == MAP_FAILED) {
                std::abort();
            }
            start_ = static_cast<char*>(memory);
            size_ = size;
        }
        return start_;
    }

  private:
    char* start_ = nullptr;
    std::size_t size_ = 0;
};

class CopiedBuffers {
  public:
    // Copies what a dispatch binds; buffers[i] becomes the address in the copy.
    void copy_in(const emu_dispatch& dispatch, void** buffers) {
        regions_.clear();
        std::vector<emu_extent> extents(dispatch.extents, dispatch.extents + dispatch.n_extents);
        std::sort(extents.begin(), extents.end(),
                  [](const emu_extent& a, const emu_extent& b) { return a.address < b.address; });
        n_bytes_ = 0;
        for (const emu_extent& extent : extents) {
            add(extent);
        }
        std::size_t offset = gap;
        for (Region& region : regions_) {
            // At the same place in its page, so as to be aligned the same way.
            offset += (reinterpret_cast<std::uintptr_t>(region.original) - offset) % 4096;
            region.copy = reinterpret_cast<char*>(offset);
            offset += region.size + gap;
        }
        char* start = pages_.at_least(offset);
        for (Region& region : regions_) {
            region.copy = start + reinterpret_cast<std::uintptr_t>(region.copy);
            if (region.size > 0) {
                std::memcpy(region.copy, region.original, region.size);
            }
        }
        for (const emu_extent& extent : extents) {
            for (const Region& region : regions_) {
                char* address = reinterpret_cast<char*>(extent.address);
                if (address >= region.original && address <= region.original + region.size) {
                    buffers[extent.argument] = region.copy + (address - region.original);
                }
            }
        }
        last_ = nullptr;
    }

    void copy_out() {
        for (const Region& region : regions_) {
            if (region.may_write && region.size > 0) {
                std::memcpy(region.original, region.copy, region.size);
            }
        }
    }

    // The region that holds these bytes; nullptr if none does.
    const Region* find(const char* address, std::size_t size) {
        if (last_ != nullptr && holds(*last_, address, size)) {
            return last_;
        }
        for (const Region& region : regions_) {
            if (holds(region, address, size)) {
                return last_ = &region;
            }
        }
        return nullptr;
    }

    // The region nearest to an address that lies in none; nullptr if there are none.
    const Region* nearest(const char* address) const {
        const Region* best = nullptr;
        for (const Region& region : regions_) {
            if (best == nullptr || distance(region, address) < distance(*best, address)) {
                best = &region;
            }
        }
        return best;
    }

    static long long distance(const Region& region, const char* address) {
        const long long from_start = address - region.copy;
        const long long size = static_cast<long long>(region.size);
        return from_start < 0 ? -from_start : from_start >= size ? from_start - size : 0;
    }

    std::size_t n_bytes() const { return n_bytes_; }

  private:
    static constexpr std::size_t gap = 1 << 20;

    static bool holds(const Region& region, const char* address, std::size_t size) {
        return address >= region.copy && address + size <= region.copy + region.size;
    }

    void add(const emu_extent& extent) {
        char* address = reinterpret_cast<char*>(extent.address);
        const bool may_write = (extent.flags & emu_may_write) != 0;
        if (!regions_.empty()) {
            Region& before = regions_.back();
            if (address < before.original + before.size && extent.size > 0) {
                const std::size_t end = (address - before.original) + extent.size;
                n_bytes_ += end > before.size ? end - before.size : 0;
                before.size = std::max(before.size, end);
                before.may_write = before.may_write || may_write;
                return;
            }
        }
        regions_.push_back({address, nullptr, static_cast<std::size_t>(extent.size), n_bytes_,
                            may_write, (extent.flags & emu_by_value) != 0, extent.argument});
        n_bytes_ += extent.size;
    }

    std::vector<Region> regions_;
    const Region* last_ = nullptr;
    Pages pages_;
    std::size_t n_bytes_ = 0;
};

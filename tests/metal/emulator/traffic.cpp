#include "traffic.h"

#include "state.h"

#include <cstdint>
#include <vector>

namespace {

struct Lines {
    std::vector<std::uint32_t> last[2];  // group that read or wrote each line last; 0: none
};

Lines lines[emu_max_buffers];
std::uint32_t group;  // of this dispatch, from 1 on

}  // namespace

void traffic_begin_dispatch(const emu_dispatch& dispatch) {
    group = 0;
    for (unsigned i = 0; i < dispatch.n_extents; ++i) {
        for (std::vector<std::uint32_t>& last : lines[i].last) {
            last.assign(dispatch.extents[i].size / emu_line_bytes + 1, 0);
        }
    }
}

void traffic_begin_group() {
    ++group;
}

bool traffic_note(const char* address, unsigned size, bool is_write) {
    const emu_dispatch& dispatch = *runtime.dispatch;
    for (unsigned i = 0; i < dispatch.n_extents; ++i) {
        const emu_extent& extent = dispatch.extents[i];
        const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(address) - extent.address;
        if (offset >= extent.size) {
            continue;
        }
        if ((extent.flags & emu_by_value) != 0) {
            return false;
        }
        // From the start of the argument: where a CPU tensor lies says nothing of a device's.
        std::uint32_t& last = lines[i].last[is_write][offset / emu_line_bytes];
        emu_traffic& traffic = dispatch.counters->arguments[extent.argument];
        traffic.bytes[is_write] += size;
        traffic.dispatch_lines[is_write] += last == 0;
        traffic.group_lines[is_write] += last != group;
        last = group;
        return true;
    }
    return false;
}

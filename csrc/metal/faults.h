// Bits of the run's fault word, 0 as long as all is well. It is set, never cleared, so it may be
// read at the next synchronisation. torch does not report that work of the GPU failed; what such a
// failure leaves behind is found by tests like these.
#pragma once

namespace torchgbdt {

constant uint fault_left_count = 1;  // route_scatter: other rows went left than the split says

}  // namespace torchgbdt

// What an instrumented kernel is asked about its accesses to memory; see checks.cpp.
#pragma once

#include "dispatch.h"

// Whether the dispatch only counts, or also copies its buffers and checks every access. Returns the
// buffers that kernels get.
void* const* checks_begin_dispatch(const emu_dispatch& dispatch);
void checks_end_dispatch(bool failed);

void checks_begin_group();

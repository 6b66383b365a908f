// Which lines of memory a dispatch moves, per argument: counted, not checked.
#pragma once

#include "dispatch.h"

enum { emu_line_bytes = 128 };

void traffic_begin_dispatch(const emu_dispatch& dispatch);
void traffic_begin_group();

// An access to a tensor; false if the address is in none.
bool traffic_note(const char* address, unsigned size, bool is_write);

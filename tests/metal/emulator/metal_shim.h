// The part of the Metal standard library that kernels may use, as C++14. Address spaces are defined
// away: the token pass has turned threadgroup variables into references to the arena.
#pragma once

#include "runtime.h"

#define device
#define thread
#define threadgroup
#define constant const

// In this order.
#include "metal_types.h"
#include "metal_vectors.h"
//
#include "metal_atomics.h"
#include "metal_math.h"
#include "metal_simd.h"

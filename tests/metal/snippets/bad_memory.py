"""Bad snippets: address spaces, atomics, threadgroup memory, simdgroups."""

from metal.snippets.bad_snippet import BadSnippet, in_kernel

BAD_MEMORY = [
    # --- pointers without address space
    in_kernel("pointer_without", "lint", "without address space", "uint* p = &numbers[i]; *p = 3;"),
    in_kernel("cast_without", "lint", "without address space", "numbers[i] = *(uint*)numbers;"),
    in_kernel(
        "reference_without", "lint", "without address space", "uint x = i; const uint& r = x;"
    ),
    in_kernel("auto_reference", "lint", "auto&", "auto& x = numbers[i]; x = 3;"),
    BadSnippet(
        "parameter_without",
        "lint",
        "without address space",
        "inline uint f(uint* p) { return *p; }",
    ),
    BadSnippet(
        "array_parameter_without",
        "lint",
        "without address space",
        "inline uint f(uint p[3]) { return p[0]; }",
    ),
    BadSnippet(
        "member_without", "lint", "without address space", "struct View { const uint* data; };"
    ),
    BadSnippet("typedef_without", "lint", "without address space", "typedef uint* Pointer;"),
    BadSnippet("result_without", "lint", "without address space", "uint* f(device uint* p);"),
    BadSnippet(
        "inner_pointer_without",
        "lint",
        "without address space",
        "inline uint f(device uint* thread* p, uint* device* q) { return 3; }",
    ),
    BadSnippet(
        "template_parameter_without",
        "lint",
        "without address space",
        "template <typename T> T first(const T* p) { return *p; }",
    ),
    # --- wrong address spaces
    in_kernel(
        "group_as_device", "address spaces", "cannot init", "device uint* p = shared; *p = 3;"
    ),
    in_kernel("device_as_group", "address spaces", "cannot init", "threadgroup uint* p = numbers;"),
    in_kernel(
        "thread_as_device", "address spaces", "cannot init", "uint x = 1; device uint* p = &x;"
    ),
    in_kernel("device_as_thread", "address spaces", "cannot init", "thread uint* p = &numbers[i];"),
    in_kernel("device_as_constant", "address spaces", "cannot init", "constant uint* p = numbers;"),
    in_kernel(
        "const_lost", "address spaces", "cannot init", "constant int* c = &n; thread int* p = c;"
    ),
    in_kernel("write_constant", "address spaces", "read-only", "n = 3;"),
    in_kernel("mixed_choice", "address spaces", "", "numbers[i] = *(n > 3 ? numbers : shared);"),
    in_kernel(
        "c_cast_between",
        "address spaces",
        "address spaces",
        "device uint* p = (device uint*)shared;",
    ),
    in_kernel(
        "reinterpret_cast_between",
        "address spaces",
        "reinterpret_cast",
        "device uint* p = reinterpret_cast<device uint*>(shared); *p = 3;",
    ),
    in_kernel(
        "cast_by_way_of_number",
        "lint",
        "hides its address space",
        "device uint* p = (device uint*)(ulong)shared;",
    ),
    BadSnippet(
        "write_const_device",
        "address spaces",
        "read-only",
        "kernel void k(device const uint* a [[buffer(0)]], uint i [[thread_position_in_grid]])"
        "{ a[i] = 3; }",
    ),
    BadSnippet(
        "argument_of_other_space",
        "address spaces",
        "no matching function",
        "inline uint first(threadgroup const uint* p) { return p[0]; }\n"
        "kernel void k(device uint* a [[buffer(0)]]) { a[0] = first(a); }",
    ),
    BadSnippet(
        "method_of_device_object",
        "lint",
        "methods are for thread objects",
        "struct Sum { uint n; void add(uint x) { n += x; } };\n"
        "kernel void k(device Sum* a [[buffer(0)]], uint i [[thread_position_in_grid]])"
        "{ a[i].add(3); }",
    ),
    BadSnippet(
        "wrong_space_beside_choice_of_structs",
        "address spaces",
        "no matching function",
        "struct S { int a; };\n"
        "inline S twice(S s) { return S{2 * s.a}; }\n"
        "inline void write(device int* out, S s) { out[0] = s.a; }\n"
        "inline void bad(threadgroup int* out, S s) { write(out, out[0] > 0 ? s : twice(s)); }",
    ),
    # --- variables of the program
    BadSnippet("global_variable", "address spaces", "constant address space", "uint total;"),
    BadSnippet("global_const", "address spaces", "constant address space", "const uint n = 3;"),
    BadSnippet(
        "global_constexpr", "address spaces", "constant address space", "constexpr uint n = 3;"
    ),
    BadSnippet(
        "constant_without_value", "address spaces", "must be initialized", "constant uint n;"
    ),
    BadSnippet(
        "group_memory_of_program",
        "address spaces",
        "constant address space",
        "threadgroup uint h[3];",
    ),
    BadSnippet(
        "group_memory_in_helper",
        "address spaces",
        "non-kernel function",
        "inline uint f() { threadgroup uint h[3]; return h[0]; }",
    ),
    in_kernel("group_memory_with_value", "address spaces", "initialize", "threadgroup uint x = 3;"),
    in_kernel(
        "group_memory_over_ours", "lint", "16384 let", "threadgroup uint more[4000]; more[i] = 1;"
    ),
    in_kernel(
        "group_memory_over_metals",
        "lint",
        "Metal has 32768",
        "threadgroup long more[4000]; more[i] = 1;",
    ),
    # --- atomics
    in_kernel("atomic_read", "lint", "atomic_load_explicit", "uint x = counts[i]; numbers[i] = x;"),
    in_kernel("atomic_read_of_group", "lint", "atomic_load_explicit", "numbers[i] = cells[lane];"),
    in_kernel("atomic_write", "address spaces", "atomic", "counts[i] = 3u;"),
    in_kernel("atomic_increment", "address spaces", "invalid", "cells[lane]++;"),
    in_kernel("atomic_add_operator", "address spaces", "invalid operands", "counts[i] += 1u;"),
    in_kernel(
        "atomic_on_plain_memory",
        "address spaces",
        "no matching function",
        "atomic_fetch_add_explicit(&numbers[i], 1u, memory_order_relaxed);",
    ),
    in_kernel(
        "atomic_without_order",
        "address spaces",
        "no matching",
        "atomic_fetch_add_explicit(&counts[i], 1u);",
    ),
    in_kernel(
        "atomic_order_acquire",
        "lint",
        "memory_order_acquire",
        "atomic_load_explicit(&counts[i], memory_order_acquire);",
    ),
    in_kernel(
        "atomic_order_seq_cst",
        "lint",
        "memory_order_seq_cst",
        "atomic_store_explicit(&counts[i], 1u, memory_order_seq_cst);",
    ),
    in_kernel(
        "atomic_without_explicit",
        "address spaces",
        "undeclared",
        "atomic_fetch_add(&counts[i], 1u);",
    ),
    in_kernel("atomic_float", "lint", "atomic_float", "threadgroup atomic_float x[3];"),
    in_kernel("atomic_of_float", "lint", "atomic<float>", "device atomic<float>* x = nullptr;"),
    in_kernel("atomic_bool", "lint", "atomic_bool", "threadgroup atomic_bool x[3];"),
    in_kernel("fence", "lint", "atomic_thread_fence", "atomic_thread_fence(memory_order_relaxed);"),
    in_kernel("atomic_of_long", "lint", "atomic_ulong", "device atomic_ulong* x = nullptr;"),
    # --- simdgroups
    in_kernel("simd_sum_of_long", "address spaces", "deleted", "sums[i] = simd_sum(sums[i]);"),
    in_kernel(
        "simd_shuffle_of_ulong", "address spaces", "deleted", "sums[i] = simd_shuffle((ulong)n, 1);"
    ),
    in_kernel("simd_max_of_bool", "address spaces", "deleted", "numbers[i] = simd_max(n > 3);"),
    in_kernel(
        "simd_sum_of_floats", "address spaces", "deleted", "floats[i] = simd_sum(floats[i]);"
    ),
    in_kernel(
        "simd_shuffle_and_fill",
        "lint",
        "not on every device",
        "numbers[i] = simd_shuffle_and_fill_up(numbers[i], 0u, 1);",
    ),
    in_kernel("quad_sum", "address spaces", "undeclared", "numbers[i] = quad_sum(numbers[i]);"),
    # --- vectors
    in_kernel("vectors_of_other_types", "address spaces", "", "int2 a = int2(1, 2); uint3 b = a;"),
    in_kernel(
        "address_of_component",
        "address spaces",
        "vector element",
        "uint2 v = uint2(1, 2); thread uint* p = &v.x;",
    ),
    in_kernel(
        "as_type_of_other_size", "address spaces", "equal size", "sums[i] = as_type<long>(n);"
    ),
]

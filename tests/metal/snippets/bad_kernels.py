"""Bad snippets: signatures of kernels, and barriers that some threads do not reach."""

from metal.snippets.bad_snippet import BadSnippet, in_kernel


def _with_parameters(name: str, says: str, parameters: str) -> BadSnippet:
    return BadSnippet(name, "lint", says, f"kernel void k({parameters}) {{}}\n")


_BUFFER = "device uint* a [[buffer(0)]], "
_MANY = ", ".join(f"device uint* a{i} [[buffer({i})]]" for i in range(32))
_WAIT = "threadgroup_barrier(mem_flags::mem_threadgroup);"
_DIFFERS = "differs between threads"

BAD_KERNELS = [
    # --- buffers
    _with_parameters("buffers_from_1", "count from 0", "device uint* a [[buffer(1)]]"),
    _with_parameters("buffer_twice", "count from 0", _BUFFER + "device uint* b [[buffer(0)]]"),
    _with_parameters("buffer_left_out", "count from 0", _BUFFER + "device uint* b [[buffer(2)]]"),
    _with_parameters("buffer_implicit", "without [[buffer", "device uint* a"),
    _with_parameters("buffer_by_value", "a pointer or a reference", "uint a [[buffer(0)]]"),
    _with_parameters("too_many_buffers", "31 buffers", _MANY),
    _with_parameters(
        "buffer_after_attribute",
        "buffers come first",
        "uint i [[thread_position_in_grid]], device uint* a [[buffer(0)]]",
    ),
    _with_parameters("tensor_in_constant", "tensors are device", "constant float* a [[buffer(0)]]"),
    _with_parameters("bytes_in_constant", "tensors are device", "constant uchar* a [[buffer(0)]]"),
    _with_parameters("long_in_constant", "int words", "constant long& a [[buffer(0)]]"),
    _with_parameters("number_in_device", "numbers are constant", "device int& n [[buffer(0)]]"),
    _with_parameters("constant_const", "const already", "constant const int* a [[buffer(0)]]"),
    _with_parameters(
        "dynamic_group_memory",
        "dynamic threadgroup memory",
        _BUFFER + "threadgroup uint* h [[threadgroup(0)]]",
    ),
    # --- attributes
    _with_parameters("attribute_unknown", "needs one attribute", "uint i [[thread_id]]"),
    _with_parameters("attribute_missing", "needs one attribute", _BUFFER + "uint i"),
    _with_parameters("attribute_of_graphics", "needs one attribute", "uint i [[vertex_id]]"),
    _with_parameters(
        "attribute_int", "is uint, uint2 or uint3", "int i [[thread_position_in_grid]]"
    ),
    _with_parameters(
        "attribute_long", "is uint, uint2 or uint3", "ulong i [[thread_position_in_grid]]"
    ),
    _with_parameters("attribute_short", "is uint, not", "ushort i [[thread_index_in_simdgroup]]"),
    _with_parameters("index_vector", "is uint, not", "uint2 i [[thread_index_in_threadgroup]]"),
    _with_parameters(
        "components_differ",
        "as many components",
        "uint2 i [[thread_position_in_grid]], uint n [[threads_per_grid]]",
    ),
    _with_parameters(
        "components_differ_in_group",
        "as many components",
        "uint3 i [[threadgroup_position_in_grid]], uint n [[thread_position_in_threadgroup]]",
    ),
    BadSnippet(
        "group_size_missing",
        "lint",
        "max_total_threads_per_threadgroup",
        "kernel void k(device uint* a [[buffer(0)]], uint i [[thread_index_in_threadgroup]])"
        "{ threadgroup uint h[256]; h[i] = a[i]; }",
    ),
    BadSnippet(
        "group_size_other",
        "lint",
        "groups have 256",
        "[[max_total_threads_per_threadgroup(512)]] kernel void k(device uint* a [[buffer(0)]]) {}",
    ),
    BadSnippet(
        "group_size_other_by_name",
        "lint",
        "groups have 256",
        "#define THREADS 128\n"
        "[[max_total_threads_per_threadgroup(THREADS)]] kernel void k("
        "device uint* a [[buffer(0)]]) {}",
    ),
    BadSnippet(
        "kernel_with_result",
        "address spaces",
        "void",
        "kernel uint k(device uint* a [[buffer(0)]]) { return a[0]; }",
    ),
    BadSnippet(
        "kernel_template",
        "address spaces",
        "template",
        "template <typename T> kernel void k(device T* a [[buffer(0)]]) {}",
    ),
    # --- barriers
    in_kernel(
        "return_before_barrier", "lint", "return before", f"if (n < 3) {{ return; }} {_WAIT}"
    ),
    in_kernel("barrier_of_some_threads", "lint", _DIFFERS, f"if (lane < 3) {{ {_WAIT} }}"),
    in_kernel("barrier_in_else", "lint", _DIFFERS, f"if (i < 3) {{ n; }} else {{ {_WAIT} }}"),
    in_kernel(
        "barrier_by_way_of_variable",
        "lint",
        _DIFFERS,
        f"const uint mine = lane * 2u; bool go; go = mine > 3u; if (go) {{ {_WAIT} }}",
    ),
    in_kernel("barrier_in_for", "lint", _DIFFERS, f"for (uint k = 0; k < lane; ++k) {{ {_WAIT} }}"),
    in_kernel(
        "barrier_in_for_from", "lint", _DIFFERS, f"for (uint k = i; k < 9u; k += 3u) {{ {_WAIT} }}"
    ),
    in_kernel(
        "barrier_in_while", "lint", _DIFFERS, f"uint k = lane; while (k > 0) {{ {_WAIT} k /= 2; }}"
    ),
    in_kernel(
        "barrier_in_do", "lint", _DIFFERS, f"uint k = 0; do {{ {_WAIT} ++k; }} while (k < lane);"
    ),
    in_kernel("barrier_in_switch", "lint", _DIFFERS, f"switch (lane) {{ case 0: {_WAIT} }}"),
    in_kernel(
        "break_before_barrier",
        "lint",
        "leaves a loop",
        f"for (int k = 0; k < n; ++k) {{ if (lane > 3) {{ break; }} {_WAIT} }}",
    ),
    BadSnippet(
        "barrier_in_helper",
        "lint",
        _DIFFERS,
        f"inline void wait_for_all() {{ {_WAIT} }}\n"
        "[[max_total_threads_per_threadgroup(256)]] kernel void k("
        "uint i [[thread_index_in_threadgroup]]) { if (i < 3) { wait_for_all(); } }",
    ),
    BadSnippet(
        "barrier_of_some_threads_in_helper",
        "lint",
        "wait_for_some: a barrier under",
        f"inline void wait_for_some(uint a, uint b) {{ if (b < 3) {{ {_WAIT} }} }}\n"
        "inline void wait_twice(uint x) { const uint y = x + 1; wait_for_some(3, y); }\n"
        "[[max_total_threads_per_threadgroup(256)]] kernel void k("
        "uint i [[thread_index_in_threadgroup]]) { wait_twice(i); }",
    ),
    BadSnippet(
        "return_in_helper",
        "lint",
        "return before",
        f"inline uint wait_for(uint n) {{ if (n < 3) {{ return n; }} {_WAIT} return 3; }}",
    ),
    in_kernel("barrier_without_flags", "address spaces", "no matching", "threadgroup_barrier();"),
]

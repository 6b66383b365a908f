"""Bad snippets: C++ that Metal does not have, and arithmetic that is not the same everywhere."""

from metal.snippets.bad_snippet import BadSnippet, in_kernel

BAD_LANGUAGE = [
    # --- words and types
    in_kernel("double", "lint", "double: is not in Metal", "double d = 1.0f; floats[i] = d;"),
    in_kernel("long_long", "lint", "long long", "long long x = 1; sums[i] = x;"),
    in_kernel("half", "lint", "half", "half h = half(1.0f); floats[i] = h;"),
    in_kernel("goto", "lint", "goto", "again: if (n > 3) goto again;"),
    in_kernel("new", "lint", "new", "thread uint* p = new uint[3]; numbers[i] = p[0];"),
    in_kernel("delete", "lint", "delete", "thread uint* p = nullptr; delete p;"),
    in_kernel("exceptions_caught", "lint", "try", "try { numbers[i] = 3; } catch (int) {}"),
    in_kernel("typeid", "lint", "typeid", "numbers[i] = typeid(uint) == typeid(int);"),
    in_kernel("asm", "lint", "asm", 'asm("nop");'),
    in_kernel("bfloat", "lint", "bfloat", "bfloat b = bfloat(1.0f); floats[i] = b;"),
    in_kernel("exceptions", "lint", "throw", "if (n < 0) throw 1;"),
    in_kernel("static_local", "lint", "static variables", "static uint calls; numbers[i] = calls;"),
    in_kernel("thread_local", "lint", "thread_local", "thread_local uint x; numbers[i] = x;"),
    in_kernel("lambda", "lint", "lambdas", "auto f = [](uint x) { return x; }; numbers[i] = f(n);"),
    in_kernel("std", "lint", "std::", "numbers[i] = std::min(n, 3);"),
    in_kernel("if_constexpr", "lint", "if constexpr", "if constexpr (sizeof(uint) == 4) { n; }"),
    in_kernel(
        "name_is_address_space", "lint", "names nothing", "uint thread = lane; (void)thread;"
    ),
    BadSnippet("inheritance", "lint", "inheritance", "struct A { uint a; }; struct B : A {};"),
    BadSnippet("virtual", "lint", "virtual", "struct A { virtual uint f() const; };"),
    BadSnippet("noexcept", "lint", "noexcept", "inline uint f(uint x) noexcept { return x; }"),
    BadSnippet("comment_not_ascii", "lint", "not ASCII", "// 2\u207b\u00b9\u00b2\u2076\n"),
    BadSnippet(
        "parameter_is_address_space",
        "lint",
        "names nothing",
        "kernel void k(device uint* a [[buffer(0)]], uint thread [[thread_position_in_grid]]) {}",
    ),
    # --- C++17 and later; Metal 3 is C++14
    in_kernel("structured_binding", "C++14", "C++17", "uint a[2] = {1, 2}; auto [x, y] = a;"),
    in_kernel(
        "if_with_initializer", "C++14", "C++17", "if (uint x = lane; x > 3) { numbers[i] = x; }"
    ),
    BadSnippet("nested_namespace", "C++14", "C++17", "namespace a::b { constant uint c = 3; }"),
    BadSnippet(
        "fold_expression",
        "C++14",
        "C++17",
        "template <typename... T> uint sum(T... x) { return (x + ...); }",
    ),
    in_kernel("array_of_variable_length", "address spaces", "constant", "uint a[n]; a[0] = lane;"),
    in_kernel("designated_initializer", "C++14", "designated", "struct P { int a; } p = {.a = 3};"),
    # --- numbers
    in_kernel("double_literal", "lint", "is a double", "floats[i] = floats[i] * 2.0;"),
    in_kernel("double_literal_point", "lint", "is a double", "floats[i] = floats[i] * 2.;"),
    in_kernel("double_literal_exponent", "lint", "is a double", "floats[i] = floats[i] * 1e-3;"),
    in_kernel("double_literal_hex", "lint", "is a double", "floats[i] = floats[i] * 0x1p-3;"),
    in_kernel("hexadecimal_float", "C++14", "C++17", "floats[i] = floats[i] * 0x1p-3f;"),
    # --- functions that differ between devices
    in_kernel("exp", "lint", "not the same bits", "floats[i] = exp(floats[i]);"),
    in_kernel("log", "lint", "not the same bits", "floats[i] = metal::log(floats[i]);"),
    in_kernel("pow", "lint", "not the same bits", "floats[i] = pow(floats[i], 2.0f);"),
    in_kernel("fma", "lint", "not the same bits", "floats[i] = fma(floats[i], 2.0f, 1.0f);"),
    in_kernel("sqrt", "lint", "not the same bits", "floats[i] = sqrt(floats[i]);"),
    in_kernel("fast_namespace", "lint", "fast::", "floats[i] = fast::max(floats[i], 1.0f);"),
    in_kernel(
        "precise_namespace", "lint", "precise::", "floats[i] = precise::min(floats[i], 1.0f);"
    ),
    in_kernel("isnan", "lint", "not the same bits", "numbers[i] = isnan(floats[i]);"),
    in_kernel(
        "unknown_function", "address spaces", "fast_divide", "floats[i] = fast_divide(1, 2);"
    ),
    in_kernel(
        "clamp_of_floats",
        "address spaces",
        "ambiguous",
        "floats[i] = clamp(floats[i], 0.0f, 1.0f);",
    ),
    # --- preprocessor
    BadSnippet("standard_header", "lint", "unknown #include", "#include <cstdint>\n"),
    BadSnippet("torch_header", "lint", "unknown #include", "#include <c10/metal/atomic.h>\n"),
    BadSnippet("own_header_not_found", "lint", "unknown # include", '# include "metal/x.h"\n'),
    BadSnippet("import", "lint", "#import", "#import <metal_stdlib>\n"),
    BadSnippet("contraction_on", "lint", "unknown #pragma", "#pragma METAL fp contract(fast)\n"),
    BadSnippet("contraction_on_in_c", "lint", "unknown #pragma", "#pragma STDC FP_CONTRACT ON\n"),
    BadSnippet(
        "function_constant",
        "lint",
        "function_constant",
        "constant uint width [[function_constant(0)]];",
    ),
    BadSnippet(
        "explicit_instantiation",
        "lint",
        "host_name",
        "template <typename T> kernel void k(device T* a [[buffer(0)]]) {}\n"
        'template [[host_name("k_uint")]] kernel void k<uint>(device uint*);',
    ),
]

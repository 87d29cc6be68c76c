//! Each rule against texts that break it, and against the nearest right ones.

use super::findings;

/// Texts with a part of what is found in them.
const WRONG: &[(&str, &str)] = &[
    ("inline double f(float x) { return x; }", "double"),
    ("inline int f(uint x) { long double y; return 0; }", "double"),
    ("inline float f(float x) { return x * 0.5; }", "0.5"),
    ("inline float f(float x) { return x * .5; }", ".5: without f"),
    ("inline float f(float x) { return x * 5.; }", "5.: without f"),
    ("inline float f(float x) { return x * 1e-3; }", "1e-3"),
    ("inline float f(float x) { return x * 1E-3; }", "1E-3"),
    ("inline float f(float x) { return x * 1E+3; }", "1E+3"),
    ("inline float f(float x) { return x * 0x1p-3; }", "0x1p-3"),
    ("inline float f(float x) { return x * 1.0L; }", "1.0L"),
    ("#define SCALE 0.5\n", "0.5"),
    // Pointers and references without an address space.
    ("inline float f(float* x) { return x[0]; }", "float*"),
    ("inline float f(float *x) { return x[0]; }", "float*"),
    ("inline float f(const float*x) { return x[0]; }", "float*"),
    ("inline float f(float const * x) { return x[0]; }", "const*"),
    ("inline float f(float* const x) { return x[0]; }", "float*"),
    ("inline float f(device const float* x, const half* y) { return x[0]; }", "half*"),
    ("inline float f(device float** x) { return x[0][0]; }", "**"),
    ("inline void f(float& x) { x = 0.0f; }", "float&"),
    ("inline void f(float &x) { x = 0.0f; }", "float&"),
    ("inline void f(float&& x) { x = 0.0f; }", "float&&"),
    ("inline void f(simd_matrix<float>& x) { matrix_fill(x, 0.0f); }", ">&"),
    ("inline void f(some_struct *x) { x->a = 0.0f; }", "some_struct*"),
    ("template <typename T>\ninline T f(T *x) { return x[0]; }", "T*"),
    ("template <typename T>\ninline T* f(uint x) { return nullptr; }", "T*"),
    ("inline float f(uint n) { float a[2]; float *p = a; return p[0]; }", "float*"),
    ("inline float f(AttentionKeys k) { AttentionKeys *p = &k; return p->low; }", "AttentionKeys*"),
    ("inline float f(uint n) { some_struct *p = g(); return p->a; }", "some_struct*"),
    ("inline uint f(thread uint& n) { for (uint &i = n; i > 0;) i--; return n; }", "uint&"),
    ("struct S { float* x; };", "float*"),
    // Casts.
    ("inline float f(device float* x) { return *((device half*)x); }", "a cast"),
    ("inline float f(device float* x) { return *((device half *)x); }", "a cast"),
    ("inline float f(thread float* x) { return ((float*)x)[0]; }", "( float *): a cast"),
    ("inline float f(thread uint* x) { return ((some_struct const*)x)->a; }", "a cast"),
    ("inline float f(threadgroup float* x) { return g((device const float*)x); }", "a cast"),
    ("inline float f(threadgroup float* x) { return g((device const float* const)x); }", "a cast"),
    ("inline float f(threadgroup float* x) { return g(static_cast<device float*>(x)); }", "static_cast"),
    // Recursion.
    ("inline uint f(uint n) { return n == 0 ? 0 : f(n - 1); }", "f: recursion"),
    ("template <typename T>\ninline T h(T n) { return n == 0 ? 0 : h<T>(n - 1); }", "h: recursion"),
    ("template <uint N>\ninline uint h(uint n) { return h<N - 1>(n); }", "h: recursion"),
    (
        "inline uint g(uint n);\ninline uint f(uint n) { return g(n); }\ninline uint g(uint n) { return f(n); }",
        "recursion",
    ),
    // Functions as values.
    ("inline void f(float (*g)(float)) {}", "a pointer to a function"),
    ("inline float f(float (&g)(float)) { return g(1.0f); }", "a pointer to a function"),
    ("inline float f(float (thread* g)(float)) { return g(1.0f); }", "a pointer to a function"),
    ("inline float f(float g(float)) { return g(1.0f); }", "a pointer to a function"),
    ("inline float f(float x) { float (*g)(float) = exp; return g(x); }", "a pointer to a function"),
    ("inline float f(float x) { float (&g)(float) = exp; return g(x); }", "a pointer to a function"),
    ("template <float G(float)>\ninline float f(float x) { return G(x); }", "a pointer to a function"),
    ("using F = float(float);\ninline float f(thread F* g) { return g(1.0f); }", "using"),
    ("typedef float F(float);", "typedef"),
    // Variables outside of functions.
    ("static float kept;", "static"),
    ("float kept;\ninline void f() { kept = 1.0f; }", "a variable outside"),
    ("inline float kept = 0.0f;", "a variable outside"),
    ("float kept(0.0f);", "a variable outside"),
    ("float kept{0.0f};", "a variable outside"),
    ("float kept[4];", "a variable outside"),
    ("const float scale = 2.0f;", "a variable outside"),
    ("constexpr float scale = 2.0f;", "a variable outside"),
    ("struct S { float a; } kept;", "a variable outside"),
    ("struct S { float a; };\nstruct S kept;", "a variable outside"),
    ("template <typename T>\nT kept;", "a variable outside"),
    ("inline float f() { return 0.0f; }\nfloat kept;", "a variable outside"),
    ("extern float kept;", "extern"),
    ("namespace n { float kept; }", "namespace"),
    // Structs and arrays.
    ("struct S { float a; float get() const { return a; } };", "no methods"),
    ("struct S { float a; S(float b); };", "no methods"),
    ("inline float f(uint n) { float a[n]; return a[0]; }", "a[n]: an array of variable length"),
    ("inline float f(uint n) { const uint m = n + 1; half a[4][m]; return a[0][0]; }", "a[m]"),
    ("template <typename T>\ninline T f(uint n) { T a[2 * n]; return a[0]; }", "a[n]"),
    // What else there is not.
    ("inline void f() { try { g(); } catch (int) {} }", "exceptions"),
    ("inline void f() { throw 1; }", "exceptions"),
    ("inline void f() { float x = std::exp(1.0f); }", "std"),
    ("inline void f() { /* no */ }", "comments"),
    ("#include \"other.h\"\n", "preprocessor"),
    ("#define SQUARE(x) ((x) * (x))\n", "preprocessor"),
    ("inline void f() {\n#pragma clang loop vectorize(enable)\n}", "preprocessor"),
];

const RIGHT: &[&str] = &[
    "// 0.5 is a double\ninline float f(device const float* x, thread half& y, uint a, uint b) {\n  y = half(0.5f);\n  \
     return x[a * b] * 1e-3f * .5f * 0x1p-3f + float(0xeu);\n}",
    "#define HIDDEN (-3.4e+38f)\n#define SLACK 8.0f\ninline float f(float x) { return x * SLACK; }",
    "template <typename T, uint N>\ninline void f(device const T* x, thread simd_matrix<T>& m, threadgroup T * t) {\n  \
     const uint rows = N * 2;\n  constexpr uint COLUMNS = N / sizeof(T);\n  T own[rows][COLUMNS];\n  float other[N + 1];\n  \
     device const T* from = x + N * rows;\n  thread T* at = own[0];\n}",
    "inline uint f(uint a, uint b, bool c) {\n  uint d = a & b;\n  a *= b;\n  if ((a & b) != 0 && c && (a * b) < d) return (a) * (b);\n  \
     for (; a < b && b > (d); a++) d &= a;\n  return d * a + g<2>(a * b);\n}",
    "constant float TABLE[2] = {1.0f, 2.0f};\nconstant uint rows = 4;\nstruct S {\n  device const S* next;\n  uint of[2];\n};\n\
     enum Kind : uint { A, B };\ninline uint f(uint n);\ninline char lowest(char) { return -128; }\n\
     static_assert(sizeof(S) == 16, \"S\");",
    "template <uint N>\ninline uint g(uint n) { return n; }\ninline uint f(uint n) { return g<2>(n) + (n < 3 ? n : h(n)); }",
];

#[test]
fn each_rule_finds_what_breaks_it() {
    for (text, expected) in WRONG {
        let found = findings(text);
        assert!(found.iter().any(|f| f.contains(expected)), "{text}: {found:?}");
    }
}

#[test]
fn what_is_right_breaks_no_rule() {
    for text in RIGHT {
        assert_eq!(findings(text), Vec::<String>::new(), "{text}");
    }
}

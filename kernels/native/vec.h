// Vectors of 16 numbers, and the one instruction that matters: 8-bit dot products.
// Included by isa.cpp, which is compiled once for each kind of processor.
#pragma once

#include <cstdint>
#include <cstring>
#include <new>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace plait {
namespace PLAIT_ISA {

typedef float F16x __attribute__((vector_size(64)));
typedef int32_t I16x __attribute__((vector_size(64)));
typedef uint32_t U16x __attribute__((vector_size(64)));
typedef uint16_t H16x __attribute__((vector_size(32)));
typedef uint8_t B64x __attribute__((vector_size(64)));

#define INLINE inline __attribute__((always_inline))
// For loops that need all registers: inlined, the compiler keeps other things in them.
#define NOINLINE __attribute__((noinline))
// Sums of several rows stay in registers only where the loop over them is unrolled.
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 32")
#endif

template <class T>
INLINE T load(const void* p) {
    T v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

template <class T>
INLINE void store(void* p, T v) {
    std::memcpy(p, &v, sizeof v);
}

// Memory whose vectors begin at a cache line: where they lie across two, each access is two.
template <class T>
struct CacheLines {
    typedef T value_type;

    CacheLines() = default;
    template <class U>
    CacheLines(const CacheLines<U>&) {}

    T* allocate(size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(64))); }
    void deallocate(T* p, size_t) { ::operator delete(p, std::align_val_t(64)); }
    friend bool operator==(const CacheLines&, const CacheLines&) { return true; }
    friend bool operator!=(const CacheLines&, const CacheLines&) { return false; }
};
template <class T>
using Array = std::vector<T, CacheLines<T>>;

// Fetches a line into the second cache: the first has too few places for lines that are under way.
INLINE void prefetch(const void* p) { __builtin_prefetch(p, 0, 2); }

INLINE F16x splat(float x) { return F16x{} + x; }

INLINE F16x to_float(I16x v) { return __builtin_convertvector(v, F16x); }

INLINE float half_to_float(uint16_t h) {
    // The bits moved into place and scaled: exact for every finite half, denormal ones too.
    const uint32_t bits = uint32_t(h & 0x7fff) << 13 | uint32_t(h & 0x8000) << 16;
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x * 0x1p112f;
}

INLINE F16x halves(const void* p) {
#if defined(__AVX512F__)
    return (F16x)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i*)p));
#else
    const U16x h = __builtin_convertvector(load<H16x>(p), U16x);
    const U16x bits = (h & 0x7fff) << 13 | (h & 0x8000) << 16;
    return load<F16x>(&bits) * 0x1p112f;
#endif
}

INLINE F16x bf16s(const void* p) {
    const U16x bits = __builtin_convertvector(load<H16x>(p), U16x) << 16;
    return load<F16x>(&bits);
}

INLINE uint16_t to_bf16(float x) {
    uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffff) > 0x7f800000) return uint16_t(bits >> 16 | 64);  // NaN stays NaN
    return uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

INLINE float from_bf16(uint16_t h) {
    const uint32_t bits = uint32_t(h) << 16;
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

INLINE float sum(F16x v) {
#if defined(__AVX512F__)
    return _mm512_reduce_add_ps((__m512)v);
#endif
    float x[16];
    store(x, v);
    for (int n = 8; n; n /= 2)
        for (int i = 0; i < n; ++i) x[i] += x[i + n];
    return x[0];
}

INLINE float max(F16x v) {
#if defined(__AVX512F__)
    return _mm512_reduce_max_ps((__m512)v);
#endif
    float x[16];
    store(x, v);
    for (int n = 8; n; n /= 2)
        for (int i = 0; i < n; ++i) x[i] = x[i] < x[i + n] ? x[i + n] : x[i];
    return x[0];
}

INLINE F16x max(F16x a, F16x b) { return a < b ? b : a; }

// One number of each of 16 vectors, joined as `sum` and `max` join: halves first.
#if defined(__AVX512F__)
template <int Low, int High, class Join>
INLINE F16x join_quarters(F16x a, F16x b, Join join) {
    const __m512 x = (__m512)a, y = (__m512)b;
    return join((F16x)_mm512_shuffle_f32x4(x, y, Low), (F16x)_mm512_shuffle_f32x4(x, y, High));
}

template <int Low, int High, class Join>
INLINE F16x join_singles(F16x a, F16x b, Join join) {
    const __m512 x = (__m512)a, y = (__m512)b;
    return join((F16x)_mm512_shuffle_ps(x, y, Low), (F16x)_mm512_shuffle_ps(x, y, High));
}

template <class Join>
INLINE F16x join_each(const F16x* v, Join join) {
    F16x a[8], b[4], c[2];
    UNROLL for (int i = 0; i < 8; ++i) a[i] = join_quarters<0x44, 0xee>(v[i], v[i + 8], join);
    UNROLL for (int i = 0; i < 4; ++i) b[i] = join_quarters<0x88, 0xdd>(a[i], a[i + 4], join);
    UNROLL for (int i = 0; i < 2; ++i) c[i] = join_singles<0x44, 0xee>(b[i], b[i + 2], join);
    const I16x order = {0, 2, 1, 3, 8, 10, 9, 11, 4, 6, 5, 7, 12, 14, 13, 15};
    return (F16x)_mm512_permutexvar_ps((__m512i)order, (__m512)join_singles<0x88, 0xdd>(c[0], c[1], join));
}

INLINE F16x sum_of_each(const F16x* v) { return join_each(v, [](F16x a, F16x b) { return a + b; }); }
INLINE F16x max_of_each(const F16x* v) { return join_each(v, [](F16x a, F16x b) { return max(a, b); }); }
#else
INLINE F16x sum_of_each(const F16x* v) {
    F16x sums;
    for (int i = 0; i < 16; ++i) sums[i] = sum(v[i]);
    return sums;
}
INLINE F16x max_of_each(const F16x* v) {
    F16x highest;
    for (int i = 0; i < 16; ++i) highest[i] = max(v[i]);
    return highest;
}
#endif

typedef int8_t S16x __attribute__((vector_size(16)));

// Rounds to the nearest whole number, for |x| < 2^22.
INLINE I16x round(F16x x) {
    const F16x shifted = x + 0x1.8p23f;  // its last bits are the number
    return load<I16x>(&shifted) - 0x4b400000;
}

INLINE int32_t sum(I16x v) {
#if defined(__AVX512F__)
    return _mm512_reduce_add_epi32((__m512i)v);
#endif
    int32_t total = 0;
    for (int i = 0; i < 16; ++i) total += v[i];
    return total;
}

constexpr float kLog2E = 1.44269504f;

// 2^x for x <= 0; 2^0 is 1, and under -126 it is 0. The polynomials are fitted to the smallest relative
// error for 2^f, |f| <= 1/2: 3e-7 where it has 5 powers, 1e-04 where it has 3.
template <int Powers = 5>
INLINE F16x exp2_negative(F16x x) {
    static_assert(Powers == 3 || Powers == 5);
    const F16x shifted = x + 0x1.8p23f;  // its last bits are the whole number next to x
    const F16x f = x - (shifted - 0x1.8p23f);
    F16x y;
    if (Powers == 5) {
        y = splat(0.00132647238f) * f + 0.00967151299f;
        y = y * f + 0.0555073358f;
        y = y * f + 0.240222424f;
        y = y * f + 0.693147004f;
    } else {
        y = splat(0.0550089315f) * f + 0.242210965f;
        y = y * f + 0.693282928f;
    }
    y = y * f + 1.0f;
    const I16x result = load<I16x>(&y) + (load<I16x>(&shifted) << 23);
    return x < -126.0f ? splat(0.0f) : load<F16x>(&result);
}

// Adds the products of 4 unsigned weights and 4 signed activations in each of 16 lanes. Where the
// instruction cannot take 8-bit unsigned weights, they are signed, and `kQ8Offset` is 0.
#if defined(__AVX512VNNI__)
constexpr int kQ8Offset = 128;
constexpr bool kHasManyRegisters = true;  // 32 of 512 bits: sums of 16 rows stay in them
INLINE I16x dot(I16x sum, B64x w, int32_t a) {
    return (I16x)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)w, _mm512_set1_epi32(a));
}
INLINE I16x dot8(I16x sum, B64x w, int32_t a) { return dot(sum, w, a); }
#elif defined(__AVX2__)
constexpr bool kHasManyRegisters = false;
struct Halves256 {
    __m256i low, high;
};
INLINE Halves256 split(B64x v) { return load<Halves256>(&v); }
#if defined(__AVXVNNI__)
constexpr int kQ8Offset = 128;
INLINE I16x dot(I16x sum, B64x w, int32_t a) {
    auto s = load<Halves256>(&sum);
    const auto x = split(w);
    const __m256i b = _mm256_set1_epi32(a);
    s.low = _mm256_dpbusd_avx_epi32(s.low, x.low, b);
    s.high = _mm256_dpbusd_avx_epi32(s.high, x.high, b);
    return load<I16x>(&s);
}
INLINE I16x dot8(I16x sum, B64x w, int32_t a) { return dot(sum, w, a); }
#else
constexpr int kQ8Offset = 0;
INLINE __m256i dot256(__m256i w, __m256i a) {
    return _mm256_madd_epi16(_mm256_maddubs_epi16(w, a), _mm256_set1_epi16(1));
}
INLINE I16x dot(I16x sum, B64x w, int32_t a) {
    const auto x = split(w);
    const __m256i b = _mm256_set1_epi32(a);
    const Halves256 s = {dot256(x.low, b), dot256(x.high, b)};
    return sum + load<I16x>(&s);
}
INLINE I16x dot8(I16x sum, B64x w, int32_t a) {
    // The sign goes to the activation: pairs of products stay under 2^15.
    const auto x = split(w);
    const __m256i b = _mm256_set1_epi32(a);
    const Halves256 s = {dot256(_mm256_abs_epi8(x.low), _mm256_sign_epi8(b, x.low)),
                         dot256(_mm256_abs_epi8(x.high), _mm256_sign_epi8(b, x.high))};
    return sum + load<I16x>(&s);
}
#endif
#else
constexpr int kQ8Offset = 0;
constexpr bool kHasManyRegisters = false;
template <class W>
INLINE I16x dot_plain(I16x sum, const W* w, const int8_t* a) {
    int32_t s[16];
    store(s, sum);
    for (int lane = 0; lane < 16; ++lane)
        for (int i = 0; i < 4; ++i) s[lane] += int32_t(w[4 * lane + i]) * a[i];
    return load<I16x>(s);
}
INLINE I16x dot(I16x sum, B64x w, int32_t a) {
    return dot_plain(sum, (const uint8_t*)&w, (const int8_t*)&a);
}
INLINE I16x dot8(I16x sum, B64x w, int32_t a) {
    return dot_plain(sum, (const int8_t*)&w, (const int8_t*)&a);
}
#endif

}  // namespace PLAIT_ISA
}  // namespace plait

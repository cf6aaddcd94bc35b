// Tiles of 16 tokens in the cache: how a token goes in, and how queries and weights meet them.
#pragma once

#include "abi.h"
#include "vec.h"

namespace plait {
namespace PLAIT_ISA {

// fp32: K [D][16], V [16][D].
struct Fp32Tiles {
    static constexpr int kBytes = 4;
    static constexpr bool kIsPaired = false;  // queries and weights are plain fp32
    struct Pair {
        F16x first, second;
    };

    static INLINE Pair keys(const uint8_t* tile, int i) {
        return {load<F16x>(tile + 128 * i), load<F16x>(tile + 128 * i + 64)};
    }
    static INLINE Pair values(const uint8_t* tile, int dim, int j, int d) {
        const float* row = (const float*)tile + 2 * j * dim + d;
        return {load<F16x>(row), load<F16x>(row + dim)};
    }
    // Fetch what of another tile lies where these keys, or values, lie: a tile of each has one size.
    static INLINE void fetch_keys(const uint8_t* tile, int i) {
        prefetch(tile + 128 * i), prefetch(tile + 128 * i + 64);
    }
    static INLINE void fetch_values(const uint8_t* tile, int dim, int j, int d) {
        prefetch(tile + 4 * (2 * j * dim + d)), prefetch(tile + 4 * ((2 * j + 1) * dim + d));
    }
    static INLINE void put(uint8_t* k, uint8_t* v, int dim, int lane, const float* from_k, const float* from_v) {
        for (int d = 0; d < dim; ++d) ((float*)k)[16 * d + lane] = from_k[d];
        std::memcpy((float*)v + lane * dim, from_v, dim * sizeof(float));
    }
    static INLINE void get(const uint8_t* k, const uint8_t* v, int dim, int lane, float* to_k, float* to_v) {
        for (int d = 0; d < dim; ++d) to_k[d] = ((const float*)k)[16 * d + lane];
        std::memcpy(to_v, (const float*)v + lane * dim, dim * sizeof(float));
    }
};

// bf16, in pairs: K [D / 2][16][2], V [8][D][2].
struct Bf16Tiles {
    static constexpr int kBytes = 2;
#if defined(__AVX512BF16__)
    static constexpr bool kIsPaired = true;  // queries and weights are bf16, too
    struct Pair {
        __m512bh both;
    };
    static INLINE Pair keys(const uint8_t* tile, int i) { return {load<__m512bh>(tile + 64 * i)}; }
    static INLINE Pair values(const uint8_t* tile, int dim, int j, int d) {
        return {load<__m512bh>(tile + 4 * (j * dim + d))};
    }
#else
    static constexpr bool kIsPaired = false;
    struct Pair {
        F16x first, second;
    };
    static INLINE Pair pair(const uint8_t* p) {
        const U16x both = load<U16x>(p);
        const U16x first = both << 16, second = both & 0xffff0000u;
        return {load<F16x>(&first), load<F16x>(&second)};
    }
    static INLINE Pair keys(const uint8_t* tile, int i) { return pair(tile + 64 * i); }
    static INLINE Pair values(const uint8_t* tile, int dim, int j, int d) { return pair(tile + 4 * (j * dim + d)); }
#endif
    static INLINE void fetch_keys(const uint8_t* tile, int i) { prefetch(tile + 64 * i); }
    static INLINE void fetch_values(const uint8_t* tile, int dim, int j, int d) { prefetch(tile + 4 * (j * dim + d)); }
    static INLINE uint16_t* key(uint8_t* k, int d, int lane) { return (uint16_t*)k + 32 * (d / 2) + 2 * lane + d % 2; }
    static INLINE uint16_t* value(uint8_t* v, int dim, int d, int lane) {
        return (uint16_t*)v + 2 * (lane / 2 * dim + d) + lane % 2;
    }
    static INLINE void put(uint8_t* k, uint8_t* v, int dim, int lane, const float* from_k, const float* from_v) {
        for (int d = 0; d < dim; ++d) {
            *key(k, d, lane) = to_bf16(from_k[d]);
            *value(v, dim, d, lane) = to_bf16(from_v[d]);
        }
    }
    static INLINE void get(const uint8_t* k, const uint8_t* v, int dim, int lane, float* to_k, float* to_v) {
        for (int d = 0; d < dim; ++d) {
            to_k[d] = from_bf16(*key((uint8_t*)k, d, lane));
            to_v[d] = from_bf16(*value((uint8_t*)v, dim, d, lane));
        }
    }
};

// Numbers that meet a Pair two at a time: fp32, or pairs of bf16 where the processor has a product
// of those. K and V are rounded to bf16 anyway, so that loses no more than they have lost.
template <class Tiles>
struct Numbers {
    const float* plain;
    const uint32_t* pairs;

    static INLINE F16x add(F16x sum, typename Tiles::Pair with, Numbers x, int64_t i) {
#if defined(__AVX512BF16__)
        if constexpr (Tiles::kIsPaired)
            return (F16x)_mm512_dpbf16_ps((__m512)sum, with.both, (__m512bh)_mm512_set1_epi32(int(x.pairs[i])));
        else
#endif
            return sum + with.first * x.plain[2 * i] + with.second * x.plain[2 * i + 1];
    }

    static INLINE void fill(F16x plain, uint32_t* pairs) {
#if defined(__AVX512BF16__)
        store(pairs, _mm512_cvtneps_pbh((__m512)plain));
#else
        (void)plain, (void)pairs;  // never called: nothing is paired there
#endif
    }
};

}  // namespace PLAIT_ISA
}  // namespace plait

// Products of activations and packed weights. A row's result does not depend on the other rows:
// each output sums its blocks in order, whatever else is computed beside it.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "activations.h"
#include "pack.h"

namespace plait {
namespace PLAIT_ISA {

struct Q4 {
    static constexpr int kBytes = kQ4Bytes;
    B64x w[8];
    F16x scale, minimum;

    static INLINE Q4 at(const uint8_t* p) {
        Q4 block;
        for (int g = 0; g < 4; ++g) {
            const B64x pair = load<B64x>(p + 64 * g);
            block.w[g] = pair & 15;
            block.w[4 + g] = pair >> 4;
        }
        block.scale = halves(p + 256);
        block.minimum = halves(p + 288);
        return block;
    }

    INLINE F16x add(F16x sum, const int8_t* q, float scale, float total, int32_t) const {
        I16x s = {};
        UNROLL for (int g = 0; g < 8; ++g) s = dot(s, w[g], load<int32_t>(q + 4 * g));
        return sum + to_float(s) * (this->scale * scale) + minimum * total;
    }

    INLINE F16x value(int group, int i) const {
        return to_float((load<I16x>(&w[group]) >> 8 * i) & 255) * scale + minimum;
    }
};

struct Q8 {
    static constexpr int kBytes = kQ8Bytes;
    B64x w[8];
    F16x scale;

    static INLINE Q8 at(const uint8_t* p) {
        Q8 block;
        for (int g = 0; g < 8; ++g) block.w[g] = load<B64x>(p + 64 * g);
        block.scale = halves(p + 512);
        return block;
    }

    INLINE F16x add(F16x sum, const int8_t* q, float scale, float, int32_t offset) const {
        I16x s = I16x{} + offset;
        UNROLL for (int g = 0; g < 8; ++g) s = dot8(s, w[g], load<int32_t>(q + 4 * g));
        return sum + to_float(s) * (this->scale * scale);
    }

    INLINE F16x value(int group, int i) const {
        const I16x byte = (load<I16x>(&w[group]) >> 8 * i) & 255;
        const I16x signed_byte = kQ8Offset ? byte - kQ8Offset : (byte ^ 128) - 128;
        return to_float(signed_byte) * scale;
    }
};

constexpr int kFetchAhead = 2560;  // bytes of a weight: memory takes longer than the products of a block
constexpr int kFewRows = 3;        // up to so many the processor fetches as fast by itself

// R rows from `row` on, all of one group, by one tile of 16 outputs, [R][16].
template <class Format, int R>
INLINE void quantized_tile(const uint8_t* w, const Activations& x, int64_t row, float* out) {
    F16x sums[R] = {};
    const RowBlocks* rows = x.group(row);
    const int at = int(row % kRows);
    for (int b = 0; b < x.num_blocks(); ++b, w += Format::kBytes) {
        if (R > kFewRows) UNROLL for (int i = 0; i < Format::kBytes; i += 64) prefetch(w + kFetchAhead + i);
        const Format block = Format::at(w);
        UNROLL for (int r = 0; r < R; ++r)
            sums[r] = block.add(sums[r], rows[b].q[at + r], rows[b].scales[at + r], rows[b].sums[at + r], rows[b].offsets[at + r]);
    }
    UNROLL for (int r = 0; r < R; ++r) store(out + 16 * r, sums[r]);
}

template <class Format, int R>
INLINE void exact_tile(const uint8_t* w, const Activations& x, int64_t row, float* out) {
    F16x sums[R] = {};
    const float* values = x.values + row * x.cols;
    for (int b = 0; b < x.num_blocks(); ++b, w += Format::kBytes) {
        const Format block = Format::at(w);
        for (int g = 0; g < 8; ++g)
            for (int i = 0; i < 4; ++i) {
                const F16x weight = block.value(g, i);
                UNROLL for (int r = 0; r < R; ++r) sums[r] += weight * values[int64_t(r) * x.cols + kBlock * b + 4 * g + i];
            }
    }
    UNROLL for (int r = 0; r < R; ++r) store(out + 16 * r, sums[r]);
}

template <bool IsBf16, int R>
INLINE void float_tile(const uint8_t* w, const Activations& x, int64_t row, float* out) {
    F16x sums[R] = {};
    const float* values = x.values + row * x.cols;
    for (int k = 0; k < x.cols; ++k) {
        const F16x weight = IsBf16 ? bf16s(w + 32 * int64_t(k)) : load<F16x>(w + 64 * int64_t(k));
        UNROLL for (int r = 0; r < R; ++r) sums[r] += weight * values[int64_t(r) * x.cols + k];
    }
    UNROLL for (int r = 0; r < R; ++r) store(out + 16 * r, sums[r]);
}

template <int R>
static void tile_of(const Linear& linear, int64_t tile, const Activations& x, int64_t row, float* out) {
    const uint8_t* w = linear.data + tile * tile_bytes(linear.kind, linear.cols);
    switch (linear.kind) {
        case kQ4: return x.is_exact ? exact_tile<Q4, R>(w, x, row, out) : quantized_tile<Q4, R>(w, x, row, out);
        case kQ8: return x.is_exact ? exact_tile<Q8, R>(w, x, row, out) : quantized_tile<Q8, R>(w, x, row, out);
        case kBf16: return float_tile<true, R>(w, x, row, out);
        default: return float_tile<false, R>(w, x, row, out);
    }
}

// Up to 16 rows from `row` on, all of one group, by one tile of 16 outputs, [rows][16]; bias included.
INLINE void multiply_group(const Linear& linear, int64_t tile, const Activations& x, int64_t row, int rows, float* out) {
    for (int done = 0; done < rows;) {
        const int left = rows - done;
        float* to = out + kTile * done;
        int n = 1;
        if (kHasManyRegisters && left >= 16) tile_of<kHasManyRegisters ? 16 : 1>(linear, tile, x, row + done, to), n = 16;
        else if (kHasManyRegisters && left >= 8) tile_of<kHasManyRegisters ? 8 : 1>(linear, tile, x, row + done, to), n = 8;
        else if (left >= 4) tile_of<4>(linear, tile, x, row + done, to), n = 4;
        else if (left >= 2) tile_of<2>(linear, tile, x, row + done, to), n = 2;
        else tile_of<1>(linear, tile, x, row + done, to);
        done += n;
    }
    if (!linear.bias) return;
    F16x bias = {};
    for (int i = 0; i < kTile && tile * kTile + i < linear.rows; ++i) bias[i] = linear.bias[tile * kTile + i];
    for (int r = 0; r < rows; ++r) store(out + kTile * r, load<F16x>(out + kTile * r) + bias);
}

// Calls `work(row, n)` for the groups of up to 16 rows in [begin, end); `begin` starts a group.
template <class Work>
INLINE void each_group(int64_t begin, int64_t end, Work work) {
    for (int64_t row = begin; row < end; row += kRows) work(row, int(std::min<int64_t>(kRows, end - row)));
}

// Rows [begin, end) by one tile of 16 outputs: `use(row, F16x)` gets each row's, bias included.
template <class Use>
INLINE void multiply(const Linear& linear, int64_t tile, const Activations& x, int64_t begin, int64_t end, Use use) {
    each_group(begin, end, [&](int64_t row, int n) {
        alignas(64) float out[kRows * kTile];
        multiply_group(linear, tile, x, row, n, out);
        for (int r = 0; r < n; ++r) use(row + r, load<F16x>(out + kTile * r));
    });
}

// The same, for outputs that lie in rows `stride` apart: `use(float*, F16x)` gets a row of `out`. What
// it will touch is fetched before the products: too far apart for the processor to foresee, and after
// 16 rows of them too late.
template <class Use>
INLINE void multiply_into(const Linear& linear, int64_t tile, const Activations& x, int64_t begin, int64_t end,
                          float* out, int64_t stride, Use use) {
    each_group(begin, end, [&](int64_t row, int n) {
        alignas(64) float sums[kRows * kTile];
        for (int r = 0; r < n; ++r) __builtin_prefetch(out + (row + r) * stride + tile * kTile, 1, 3);
        multiply_group(linear, tile, x, row, n, sums);
        for (int r = 0; r < n; ++r) use(out + (row + r) * stride, load<F16x>(sums + kTile * r));
    });
}

// Writes a tile of a row's outputs; the last one of a weight may have fewer than 16.
INLINE void put(float* row, const Linear& linear, int64_t tile, F16x sums) {
    const int64_t first = tile * kTile;
    if (first + kTile <= linear.rows) return store(row + first, sums);
    for (int i = 0; first + i < linear.rows; ++i) row[first + i] = sums[i];
}

// Dequantises one row of a weight, such as a token's embedding.
INLINE void row_of(const Linear& linear, int64_t row, float* out) {
    const uint8_t* tile = linear.data + row / kTile * tile_bytes(linear.kind, linear.cols);
    const int lane = int(row % kTile);
    if (linear.kind == kF32 || linear.kind == kBf16) {
        for (int i = 0; i < linear.cols; ++i)
            out[i] = linear.kind == kF32 ? ((const float*)tile)[16 * i + lane] : from_bf16(((const uint16_t*)tile)[16 * i + lane]);
        return;
    }
    for (int b = 0; b < linear.cols / kBlock; ++b) {
        for (int i = 0; i < kBlock; ++i) {
            if (linear.kind == kQ4) {
                const uint8_t* p = tile + int64_t(b) * kQ4Bytes;
                const int byte = p[64 * (i % 16 / 4) + 4 * lane + i % 4];
                const int nibble = i < 16 ? byte & 15 : byte >> 4;
                out[kBlock * b + i] = half_to_float(load<uint16_t>(p + 256 + 2 * lane)) * float(nibble) +
                                      half_to_float(load<uint16_t>(p + 288 + 2 * lane));
            } else {
                const uint8_t* p = tile + int64_t(b) * kQ8Bytes;
                const uint8_t byte = p[64 * (i / 4) + 4 * lane + i % 4];
                const int number = kQ8Offset ? int(byte) - kQ8Offset : int(int8_t(byte));
                out[kBlock * b + i] = half_to_float(load<uint16_t>(p + 512 + 2 * lane)) * float(number);
            }
        }
    }
}

}  // namespace PLAIT_ISA
}  // namespace plait

// Products of activations and packed weights. A row's result does not depend on the other rows:
// each output sums its blocks in order, whatever else is computed beside it.
#pragma once

#include <cmath>

#include "abi.h"
#include "pack.h"
#include "vec.h"

namespace plait {
namespace PLAIT_ISA {

// Rows of activations [rows, cols] as a weight wants them: fp32, or 8 bits a block of 32 numbers.
struct Activations {
    float* values;     // [rows, cols]
    int8_t* q;         // [rows, cols]
    float* scales;     // [rows, cols / 32]
    float* sums;       // [rows, cols / 32] of what the block stands for
    int32_t* offsets;  // [rows, cols / 32] what corrects the offset of 8-bit weights
    int cols;
    bool is_exact;

    int blocks() const { return cols / kBlock; }
};

// Puts a row into place; `row` may be `values` itself.
INLINE void set_row(const Activations& to, int64_t index, const float* row) {
    if (row != to.values + index * to.cols) std::memcpy(to.values + index * to.cols, row, to.cols * sizeof(float));
    if (to.is_exact) return;
    const int blocks = to.blocks();
    for (int b = 0; b < blocks; ++b) {
        const F16x low = load<F16x>(row + kBlock * b), high = load<F16x>(row + kBlock * b + 16);
        const F16x poison = (low - low) + (high - high);  // NaN where a number is not finite
        const float scale = max(max(max(low, -low), max(high, -high))) / 127.0f + sum(poison);
        const float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
        int8_t* q = to.q + index * to.cols + kBlock * b;
        const I16x q_low = round(low * inverse), q_high = round(high * inverse);
        store(q, __builtin_convertvector(q_low, S16x));
        store(q + 16, __builtin_convertvector(q_high, S16x));
        const int32_t total = sum(q_low + q_high);
        to.scales[index * blocks + b] = scale;
        to.sums[index * blocks + b] = scale * float(total);
        to.offsets[index * blocks + b] = -kQ8Offset * total;
    }
}

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

// R rows from `row` on by one tile of 16 outputs, [R][16].
template <class Format, int R>
INLINE void quantized_tile(const uint8_t* w, const Activations& x, int64_t row, float* out) {
    F16x sums[R] = {};
    const int blocks = x.blocks();
    const int8_t* q = x.q + row * x.cols;
    const int64_t first = row * blocks;
    for (int b = 0; b < blocks; ++b, w += Format::kBytes) {
        const Format block = Format::at(w);
        UNROLL for (int r = 0; r < R; ++r) {
            const int64_t i = first + int64_t(r) * blocks + b;
            sums[r] = block.add(sums[r], q + int64_t(r) * x.cols + kBlock * b, x.scales[i], x.sums[i], x.offsets[i]);
        }
    }
    UNROLL for (int r = 0; r < R; ++r) store(out + 16 * r, sums[r]);
}

template <class Format, int R>
INLINE void exact_tile(const uint8_t* w, const Activations& x, int64_t row, float* out) {
    F16x sums[R] = {};
    const float* values = x.values + row * x.cols;
    for (int b = 0; b < x.blocks(); ++b, w += Format::kBytes) {
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

// Rows [begin, end) by one tile of 16 outputs: `use(row, F16x)` gets each row's, bias included.
template <class Use>
INLINE void multiply(const Linear& linear, int64_t tile, const Activations& x, int64_t begin, int64_t end, Use use) {
    alignas(64) float out[kRowTile * 16];
    F16x bias = {};
    if (linear.bias) {
        const int64_t first = tile * kTile;
        for (int i = 0; i < kTile && first + i < linear.rows; ++i) bias[i] = linear.bias[first + i];
    }
    for (int64_t row = begin; row < end;) {
        const int64_t left = end - row;
        int n = 1;
        if (kRowTile == 16 && left >= 16) tile_of<kRowTile>(linear, tile, x, row, out), n = 16;
        else if (kRowTile >= 8 && left >= 8) tile_of<kRowTile / 2>(linear, tile, x, row, out), n = 8;
        else if (left >= 4) tile_of<4>(linear, tile, x, row, out), n = 4;
        else if (left >= 2) tile_of<2>(linear, tile, x, row, out), n = 2;
        else tile_of<1>(linear, tile, x, row, out);
        for (int r = 0; r < n; ++r) use(row + r, load<F16x>(out + 16 * r) + bias);
        row += n;
    }
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

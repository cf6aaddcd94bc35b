// Rows of activations as a weight wants them: fp32, or 8 bits a block of 32 numbers.
#pragma once

#include "abi.h"
#include "vec.h"

namespace plait {
namespace PLAIT_ISA {

constexpr int kRows = 16;  // of activations that lie together, so that a product reads one stream

// 32 columns of 16 rows.
struct alignas(64) RowBlocks {
    int8_t q[kRows][kBlock];
    float scales[kRows];
    float sums[kRows];       // of what the row's numbers stand for
    int32_t offsets[kRows];  // what corrects the offset of 8-bit weights
};

struct Activations {
    float* values;      // [rows, cols]
    RowBlocks* blocks;  // [rows / 16, cols / 32]; unused where all is exact
    int cols;
    bool is_exact;

    int num_blocks() const { return cols / kBlock; }
    RowBlocks* group(int64_t row) const { return blocks + row / kRows * num_blocks(); }
};

// Puts 32 numbers of a row into place, in 8 bits.
INLINE void set_block(const Activations& to, int64_t row, int block, F16x low, F16x high) {
    const F16x poison = (low - low) + (high - high);  // NaN where a number is not finite
    const float scale = max(max(max(low, -low), max(high, -high))) / 127.0f + sum(poison);
    const float inverse = scale > 0.0f ? 1.0f / scale : 0.0f;
    const I16x q_low = round(low * inverse), q_high = round(high * inverse);
    const int32_t total = sum(q_low + q_high);
    RowBlocks& blocks = to.group(row)[block];
    const int at = int(row % kRows);
    store(blocks.q[at], __builtin_convertvector(q_low, S16x));
    store(blocks.q[at] + 16, __builtin_convertvector(q_high, S16x));
    blocks.scales[at] = scale;
    blocks.sums[at] = scale * float(total);
    blocks.offsets[at] = -kQ8Offset * total;
}

// Puts a row into place; `from` may be its place in `values`.
INLINE void set_row(const Activations& to, int64_t row, const float* from) {
    float* values = to.values + row * to.cols;
    if (from != values) std::memcpy(values, from, to.cols * sizeof(float));
    if (to.is_exact) return;
    for (int b = 0; b < to.num_blocks(); ++b)
        set_block(to, row, b, load<F16x>(from + kBlock * b), load<F16x>(from + kBlock * b + 16));
}

// Activations that own their memory.
class Room {
  public:
    Activations get(int64_t rows, int cols, bool is_exact) {
        values_.resize(std::max<size_t>(values_.size(), rows * cols));
        const size_t blocks = (rows + kRows - 1) / kRows * (cols / kBlock);
        if (!is_exact) blocks_.resize(std::max(blocks_.size(), blocks));
        return {values_.data(), blocks_.data(), cols, is_exact};
    }

  private:
    Array<float> values_;
    Array<RowBlocks> blocks_;
};

}  // namespace PLAIT_ISA
}  // namespace plait

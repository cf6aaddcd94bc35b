// Weights laid out for the dot product, once at load. Plain code: it runs at the speed of memory.
//
// Q4: of each block of 32 columns and 16 rows 256 bytes of nibbles, then 16 scales and 16 minima.
// In group g (of 4) lie bytes 4g..4g+3 of each row's 16 bytes: column 4g + i in the low halves,
// column 16 + 4g + i in the high ones. Q8: 8 groups of 4 columns each, then 16 scales; the numbers
// are offset by `q8_offset`. bf16 and fp32: a row of 16 for each column.
#pragma once

#include <cstddef>
#include <cstring>

#include "abi.h"

namespace plait {

// GGML's numbers of the formats that `pack` takes.
enum Ggml : int32_t { kGgmlF32 = 0, kGgmlF16 = 1, kGgmlQ4_0 = 2, kGgmlQ4_1 = 3, kGgmlQ8_0 = 8, kGgmlBf16 = 30 };

constexpr int kQ4Bytes = 16 * 16 + 2 * 16 * 2;  // a block of 16 rows
constexpr int kQ8Bytes = 16 * 32 + 16 * 2;

inline int64_t num_tiles(int64_t rows) { return (rows + kTile - 1) / kTile; }

inline int64_t tile_bytes(int32_t kind, int64_t cols) {
    switch (kind) {
        case kQ4: return cols / kBlock * kQ4Bytes;
        case kQ8: return cols / kBlock * kQ8Bytes;
        case kBf16: return cols * kTile * 2;
        default: return cols * kTile * 4;
    }
}

inline uint16_t minus_eight_times(uint16_t half) {
    const int exponent = half >> 10 & 31;
    if (exponent == 0) {  // denormal: its bits are a whole number
        const int bits = (half & 0x3ff) * 8;
        int shift = 0, mantissa = bits;
        if (bits < 0x400) return uint16_t((half & 0x8000 ? 0 : 0x8000) | bits);
        while (mantissa >= 0x800) mantissa >>= 1, ++shift;
        return uint16_t((half & 0x8000 ? 0 : 0x8000) | (shift + 1) << 10 | (mantissa & 0x3ff));
    }
    return uint16_t((half ^ 0x8000) + (3 << 10));
}

inline void pack_q4(const uint8_t* raw, int lane, int64_t blocks, bool has_minimum, uint8_t* tile) {
    const int size = has_minimum ? 20 : 18;
    for (int64_t b = 0; b < blocks; ++b, raw += size, tile += kQ4Bytes) {
        const uint8_t* nibbles = raw + size - 16;
        for (int g = 0; g < 4; ++g) std::memcpy(tile + 64 * g + 4 * lane, nibbles + 4 * g, 4);
        uint16_t scale, minimum;
        std::memcpy(&scale, raw, 2);
        if (has_minimum) std::memcpy(&minimum, raw + 2, 2);
        else minimum = minus_eight_times(scale);
        std::memcpy(tile + 256 + 2 * lane, &scale, 2);
        std::memcpy(tile + 288 + 2 * lane, &minimum, 2);
    }
}

inline void pack_q8(const uint8_t* raw, int lane, int64_t blocks, uint8_t offset, uint8_t* tile) {
    for (int64_t b = 0; b < blocks; ++b, raw += 34, tile += kQ8Bytes) {
        for (int g = 0; g < 8; ++g)
            for (int i = 0; i < 4; ++i) tile[64 * g + 4 * lane + i] = uint8_t(raw[2 + 4 * g + i] + offset);
        std::memcpy(tile + 512 + 2 * lane, raw, 2);
    }
}

// Writes rows [begin, end) of a weight; `tiles` is the whole weight, zero before. False: unknown.
inline bool pack(int32_t ggml, const uint8_t* raw, int64_t begin, int64_t end, int64_t cols,
                 uint8_t q8_offset, uint8_t* tiles) {
    for (int64_t row = begin; row < end; ++row) {
        const int lane = int(row % kTile);
        const int64_t tile = row / kTile;
        switch (ggml) {
            case kGgmlQ4_0:
            case kGgmlQ4_1:
                pack_q4(raw, lane, cols / kBlock, ggml == kGgmlQ4_1, tiles + tile * tile_bytes(kQ4, cols));
                raw += cols / kBlock * (ggml == kGgmlQ4_1 ? 20 : 18);
                break;
            case kGgmlQ8_0:
                pack_q8(raw, lane, cols / kBlock, q8_offset, tiles + tile * tile_bytes(kQ8, cols));
                raw += cols / kBlock * 34;
                break;
            case kGgmlBf16: {
                auto* out = (uint16_t*)(tiles + tile * tile_bytes(kBf16, cols)) + lane;
                for (int64_t i = 0; i < cols; ++i) std::memcpy(out + kTile * i, raw + 2 * i, 2);
                raw += 2 * cols;
                break;
            }
            case kGgmlF32: {
                auto* out = (float*)(tiles + tile * tile_bytes(kF32, cols)) + lane;
                for (int64_t i = 0; i < cols; ++i) std::memcpy(out + kTile * i, raw + 4 * i, 4);
                raw += 4 * cols;
                break;
            }
            default: return false;
        }
    }
    return true;
}

}  // namespace plait

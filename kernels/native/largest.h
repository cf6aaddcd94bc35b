// The largest of a row of numbers that come 16 at a time, in any order.
#pragma once

#include <cfloat>

#include "abi.h"
#include "vec.h"

namespace plait {
namespace PLAIT_ISA {

// Of each of 16 lanes the largest number so far, and the tile it came in: the first of equals.
struct Largest {
    F16x top = splat(-INFINITY), poison = {};
    I16x at = {};

    // Takes a tile, of which `num` numbers count.
    INLINE void add(int64_t tile, F16x x, int64_t num) {
        if (num < kTile)
            for (int64_t i = num; i < kTile; ++i) x[i] = -FLT_MAX;
        const I16x tiles = I16x{} + int32_t(tile);
        const I16x is_better = (x > top) | ((x == top) & (tiles < at));
        top = is_better ? x : top;
        at = is_better ? tiles : at;
        poison += x - x;  // NaN where a number is not finite
    }

    void add(const Largest& other) {
        const I16x is_better = (other.top > top) | ((other.top == top) & (other.at < at));
        top = is_better ? other.top : top;
        at = is_better ? other.at : at;
        poison += other.poison;
    }

    // The place of the largest number in its row, or kNotFinite if any number is not finite.
    int64_t place() const {
        if (sum(poison) != 0.0f) return kNotFinite;
        const float best = max(top);
        int64_t first = INT64_MAX;
        for (int i = 0; i < kTile; ++i)
            if (top[i] == best && at[i] * int64_t(kTile) + i < first) first = at[i] * int64_t(kTile) + i;
        return first;
    }
};

}  // namespace PLAIT_ISA
}  // namespace plait

// Draws tokens from rows of logits, as kernels/sampling/reference.py defines it. Weights are whole
// numbers: their sums are exact in any order, so that all processors, and numpy, draw alike.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "abi.h"
#include "vec.h"

namespace plait {
namespace PLAIT_ISA {

constexpr int kOctaveBits = 25;  // a weight halves every 2^25 steps under the largest logit
constexpr int kWeightBits = 44;  // the largest weight is 2^44, so 2^19 of them fit 64 bits
constexpr float kStepsPerUnit = 0x1.715476p+25f;  // log2(e) octaves
constexpr float kMostSteps = 63.0f * (1 << kOctaveBits);
constexpr int kPointBits = 53;
constexpr int kInRun = 1024, kInBlock = 64;  // numbers that are looked at together
// 2^-x = 1 - x (c0 - x (c1 - ...)) for x in [0, 1), in units of 2^-31, to 6e-9.
constexpr uint32_t kFirst = 1488522040, kSecond = 515878639, kThird = 119168801;
constexpr uint32_t kFourth = 20577648, kFifth = 2743352, kSixth = 236086;

// Finds the largest number, the first of equals; NaN counts as the largest.
static void largest_of(const float* row, int64_t width, float* peak, int64_t* id) {
    float top = -INFINITY, poison = 0.0f;
    int64_t begin = 0;  // of the run in which the largest number was found
    for (int64_t first = 0; first < width; first += kInRun) {
        const int64_t end = std::min(width, first + kInRun);
        F16x largest = splat(-INFINITY), differences = {};
        int64_t i = first;
        for (; i + 16 <= end; i += 16) {
            const F16x x = load<F16x>(row + i);
            largest = max(largest, x);
            differences += x - x;  // NaN where a number is not finite
        }
        float found = max(largest);
        poison += sum(differences);
        for (; i < end; ++i) found = found < row[i] ? row[i] : found, poison += row[i] - row[i];
        if (found > top) top = found, begin = first;
    }
    int64_t at = begin;
    if (poison == 0.0f) {
        while (row[at] != top) ++at;
    } else {
        at = 0;
        for (int64_t j = 1; j < width && !std::isnan(row[at]); ++j)
            if (row[at] < row[j] || std::isnan(row[j])) at = j;
    }
    *peak = row[at], *id = at;
}

// Steps of a logit under the largest one.
INLINE uint32_t steps_of(float value, float peak, float temperature) {
    const float steps = (peak - value) / temperature * kStepsPerUnit;
    return uint32_t(int32_t(steps < kMostSteps ? steps : kMostSteps));
}

INLINE uint32_t product(uint32_t a, uint32_t b) { return uint32_t(uint64_t(a) * b >> 32); }

INLINE uint64_t weight_of(uint32_t steps) {
    const uint32_t x = steps << (32 - kOctaveBits);
    uint32_t y = kFifth - product(x, kSixth);
    y = kFourth - product(x, y);
    y = kThird - product(x, y);
    y = kSecond - product(x, y);
    y = kFirst - product(x, y);
    y = (1u << 31) - product(x, y);
    return (uint64_t(y) << (kWeightBits - 31)) >> (steps >> kOctaveBits);
}

#if defined(__AVX2__)
constexpr int kAtOnce = 4;

// The same for 4 numbers; of 64 bits the low 32 count.
INLINE __m256i products(__m256i a, __m256i b) { return _mm256_srli_epi64(_mm256_mul_epu32(a, b), 32); }

INLINE void weights_of(const uint32_t* steps, uint64_t* weights) {
    const __m256i wide = _mm256_cvtepu32_epi64(_mm_loadu_si128((const __m128i*)steps));
    const __m256i x = _mm256_slli_epi64(wide, 32 - kOctaveBits);
    __m256i y = _mm256_sub_epi64(_mm256_set1_epi64x(kFifth), products(x, _mm256_set1_epi64x(kSixth)));
    for (const uint32_t constant : {kFourth, kThird, kSecond, kFirst, 1u << 31})
        y = _mm256_sub_epi64(_mm256_set1_epi64x(constant), products(x, y));
    y = _mm256_srlv_epi64(_mm256_slli_epi64(y, kWeightBits - 31), _mm256_srli_epi64(wide, kOctaveBits));
    _mm256_storeu_si256((__m256i*)weights, y);
}
#else
constexpr int kAtOnce = 1;

INLINE void weights_of(const uint32_t* steps, uint64_t* weights) { *weights = weight_of(*steps); }
#endif

// Draws rows one after the other; keeps its room from one to the next.
class Sampler {
  public:
    int64_t draw(const float* row, int64_t width, const DrawRow& how) {
        float peak;
        int64_t favourite;
        largest_of(row, width, &peak, &favourite);
        if (!std::isfinite(peak)) return kNotFinite;
        const bool is_greedy = how.temperature == 0.0f, is_allowed = allowed(how, favourite / 32) >> (favourite % 32) & 1;
        if (is_greedy && is_allowed) return favourite;
        gather(row, width, how);
        if (size_ == 0) return kDeadEnd;
        if (!is_allowed) {
            largest_of(values_.data(), size_, &peak, &favourite);
            if (!std::isfinite(peak)) return kDeadEnd;
            if (is_greedy) return ids_[favourite];
        }
        if (how.top_k > 0 && how.top_k < size_) keep_largest(how.top_k);
        weigh(peak, how.temperature);
        if (how.top_p < 1.0) keep_heaviest(how.top_p);
        if (how.min_p > 0.0) drop_lightest(how.min_p);
        return ids_[pick(how.point)];
    }

  private:
    static uint32_t allowed(const DrawRow& how, int64_t word) {
        if (!how.mask) return uint32_t(how.known[word]);
        return word < how.mask_len ? uint32_t(how.known[word] & how.mask[word]) : 0;
    }

    // Takes what may be drawn, in the order of the ids.
    void gather(const float* row, int64_t width, const DrawRow& how) {
        if (int64_t(values_.size()) < width) {
            values_.resize(width), ids_.resize(width), keys_.resize(width), weights_.resize(width);
            places_.resize(width), rest_.resize(width);
        }
        float* values = values_.data();
        int32_t* ids = ids_.data();
        int64_t n = 0;
        for (int64_t first = 0; first < width; first += 32) {
            uint32_t bits = allowed(how, first / 32);
            if (bits == ~0u) {
                std::memcpy(values + n, row + first, 32 * sizeof(float));
                for (int i = 0; i < 32; ++i) ids[n + i] = int32_t(first + i);
                n += 32;
                continue;
            }
            for (; bits; bits &= bits - 1, ++n) {
                const int64_t id = first + __builtin_ctz(bits);
                values[n] = row[id], ids[n] = int32_t(id);
            }
        }
        size_ = n;
    }

    void weigh(float peak, float temperature) {
        const int64_t n = size_;
        const float* values = values_.data();
        uint32_t* __restrict keys = keys_.data();
        uint64_t* __restrict weights = weights_.data();
        for (int64_t i = 0; i < n; ++i) keys[i] = steps_of(values[i], peak, temperature);
        int64_t i = 0;
        for (; i + kAtOnce <= n; i += kAtOnce) weights_of(keys + i, weights + i);
        for (; i < n; ++i) weights[i] = weight_of(keys[i]);
    }

    uint64_t total() const {
        const uint64_t* weights = weights_.data();
        uint64_t sum = 0;
        for (int64_t i = 0, n = size_; i < n; ++i) sum += weights[i];
        return sum;
    }

    void keep_largest(int64_t num) {
        // Where so many blocks have a number over a bound, no smaller number is among the largest.
        const int64_t n = size_, blocks = n / kInBlock;
        const float* values = values_.data();
        float bound = -INFINITY;
        if (num <= blocks) {
            float* tops = reinterpret_cast<float*>(rest_.data());
            for (int64_t b = 0; b < blocks; ++b) {
                F16x top = load<F16x>(values + b * kInBlock);
                for (int i = 16; i < kInBlock; i += 16) top = max(top, load<F16x>(values + b * kInBlock + i));
                tops[b] = max(top);
            }
            std::nth_element(tops, tops + num - 1, tops + blocks, [](float a, float b) { return a > b; });
            bound = tops[num - 1];
        }
        int32_t* places = places_.data();
        int64_t count = 0;
        for (int64_t i = 0; i < n; ++i) {
            places[count] = int32_t(i);
            count += values[i] >= bound;
        }
        for (int64_t j = 0; j < count; ++j) {
            const float value = values[places[j]] + 0.0f;  // of both zeros one
            uint32_t bits;
            std::memcpy(&bits, &value, sizeof bits);
            keys_[places[j]] = bits >> 31 ? bits : ~(bits | 0x80000000u);  // the larger the number, the smaller
        }
        keep(count, uint64_t(num), [](int32_t) { return uint64_t(1); });
    }

    void keep_heaviest(double share) {
        // All that are lighter than a mean share of what may be left out cannot be needed.
        const int64_t n = size_;
        const uint64_t* weights = weights_.data();
        const uint64_t all = total(), wanted = std::min(all, uint64_t(share * double(all)));
        const uint64_t least = uint64_t((1.0 - share) * double(all) / double(n) * 0.999);
        int32_t* places = places_.data();
        int64_t count = 0;
        for (int64_t i = 0; i < n; ++i) {
            places[count] = int32_t(i);
            count += weights[i] >= least;
        }
        keep(count, std::max<uint64_t>(wanted, 1), [&](int32_t place) { return weights[place]; });
    }

    void drop_lightest(double share) {
        const double least = std::ldexp(share, kWeightBits);
        uint64_t* weights = weights_.data();
        for (int64_t i = 0, n = size_; i < n; ++i) weights[i] = double(weights[i]) < least ? 0 : weights[i];
    }

    // Of some places, in order, keeps those that come first by key, then by place, until their
    // weights reach a sum. Bits of the keys, the high ones first, sort what is still in question.
    template <class Weight>
    void keep(int64_t count, uint64_t wanted, Weight weight) {
        constexpr int kBits[] = {11, 11, 10};
        const uint32_t* keys = keys_.data();
        const int32_t* places = places_.data();
        int32_t* rest = rest_.data();
        std::copy(places, places + count, rest);
        int64_t num = count;
        int shift = 32;
        for (const int bits : kBits) {
            shift -= bits;
            const uint32_t low = (1u << bits) - 1;
            uint64_t sums[1 << 11] = {};
            for (int64_t i = 0; i < num; ++i) sums[keys[rest[i]] >> shift & low] += weight(rest[i]);
            uint32_t bucket = 0;
            while (sums[bucket] < wanted) wanted -= sums[bucket++];
            int64_t left = 0;
            for (int64_t i = 0; i < num; ++i)
                if ((keys[rest[i]] >> shift & low) == bucket) rest[left++] = rest[i];
            num = left;
        }
        const uint64_t one = weight(rest[0]);  // those that are left are equal
        const uint32_t key = keys[rest[0]];
        const int32_t last = rest[(wanted + one - 1) / one - 1];
        int64_t n = 0;
        for (int64_t j = 0; j < count; ++j) {
            const int32_t i = places[j];
            if (keys[i] > key || (keys[i] == key && i > last)) continue;
            values_[n] = values_[i], ids_[n] = ids_[i], weights_[n] = weights_[i], ++n;
        }
        size_ = n;
    }

    // Gives the place in which `point` of 2^53 of the whole weight falls.
    int64_t pick(uint64_t point) const {
        const uint64_t* weights = weights_.data();
        uint64_t left = uint64_t((unsigned __int128)point * total() >> kPointBits);
        int64_t i = 0;
        for (; i + kInBlock <= size_; i += kInBlock) {
            uint64_t sum = 0;
            for (int j = 0; j < kInBlock; ++j) sum += weights[i + j];
            if (left < sum) break;
            left -= sum;
        }
        while (left >= weights[i]) left -= weights[i++];
        return i;
    }

    std::vector<float> values_;  // of what may be drawn
    std::vector<int32_t> ids_, places_, rest_;
    std::vector<uint32_t> keys_;
    std::vector<uint64_t> weights_;
    int64_t size_ = 0;
};

// log P of some ids under a row; NaN where its largest number is not finite. Sums of 128 numbers are fp32.
static void logprobs_of(const float* row, int64_t width, const int64_t* ids, int64_t num_ids, double* found) {
    if (num_ids == 0) return;
    float peak;
    int64_t at;
    largest_of(row, width, &peak, &at);
    if (!std::isfinite(peak)) {
        std::fill_n(found, num_ids, NAN);
        return;
    }
    double total = 0.0;
    int64_t i = 0;
    for (; i + 128 <= width; i += 128) {
        F16x part = {};
        for (int j = 0; j < 128; j += 16) part += exp2_negative((load<F16x>(row + i + j) - peak) * kLog2E);
        total += sum(part);
    }
    for (; i < width; ++i) total += std::exp(double(row[i]) - peak);
    const double rest = std::log(total);
    for (int64_t j = 0; j < num_ids; ++j) found[j] = double(row[ids[j]]) - double(peak) - rest;
}

}  // namespace PLAIT_ISA
}  // namespace plait

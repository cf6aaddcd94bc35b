// Attention over tiles of the cache, with a running softmax over chunks of 64 tokens.
//
// Chunks begin at multiples of 64 of a text's positions, whoever shares them: so a row's result
// is the same alone, in a batch, and behind a shared prefix.
// After: FlashAttention's running softmax; cascade attention over shared prefixes.
#pragma once

#include <cmath>
#include <vector>

#include "kv.h"

namespace plait {
namespace PLAIT_ISA {

#if defined(__AVX512F__)
constexpr int kScoreQueries = 24, kValueQueries = 6;  // what 32 registers hold
#else
constexpr int kScoreQueries = 4, kValueQueries = 1;
#endif

// One thread's room, for up to `queries` pairs of a row and a head.
struct AttentionRoom {
    std::vector<float> q, out, scores, largest, total;
    std::vector<uint32_t> q_pairs, p_pairs;
    std::vector<uint8_t> tiles;  // [2][4 tiles], for tokens that do not lie side by side

    void resize(int queries, int dim) {
        if (int(largest.size()) >= queries && q.size() >= size_t(queries) * dim) return;
        for (auto* each : {&q, &out}) each->resize(size_t(queries) * dim);
        q_pairs.resize(size_t(queries) * dim / 2);
        scores.resize(size_t(queries) * kChunk);
        p_pairs.resize(size_t(queries) * kChunk / 2);
        for (auto* each : {&largest, &total}) each->resize(queries);
        tiles.resize(size_t(8) * kTile * dim * 4);
    }
};

template <class Tiles>
class Attention {
  public:
    Attention(const Model& model, const Cache& cache, const Batch& batch, int layer)
        : batch_(batch), dim_(model.head_dim), num_kv_heads_(model.num_kv_heads),
          heads_(model.num_heads / model.num_kv_heads), tile_bytes_(int64_t(kTile) * dim_ * Tiles::kBytes) {
        const int64_t half = cache.num_slots / kTile * num_kv_heads_ * tile_bytes_;
        k_ = cache.data + 2 * half * layer;
        v_ = k_ + half;
    }

    // The tile of K, or of V, that holds a slot.
    uint8_t* k(int64_t slot, int head) const { return k_ + (slot / kTile * num_kv_heads_ + head) * tile_bytes_; }
    uint8_t* v(int64_t slot, int head) const { return v_ + (slot / kTile * num_kv_heads_ + head) * tile_bytes_; }

    void copy(int64_t from, int64_t to) const {
        float a[kMaxHeadDim], b[kMaxHeadDim];
        for (int head = 0; head < num_kv_heads_; ++head) {
            Tiles::get(k(from, head), v(from, head), dim_, int(from % kTile), a, b);
            Tiles::put(k(to, head), v(to, head), dim_, int(to % kTile), a, b);
        }
    }

    // One KV head of one group of rows: `qkv` has the heads of a row `stride` apart from the next
    // row's; `out` likewise.
    void run(int group, int kv_head, const float* q, int64_t q_stride, float* out, int64_t out_stride,
             AttentionRoom& room) const {
        const int begin = batch_.group_rows[group], end = batch_.group_rows[group + 1];
        const int queries = (end - begin) * heads_;
        room.resize(queries, dim_);
        const float scale = 1.0f / std::sqrt(float(dim_));
        for (int i = 0; i < queries; ++i) {
            const float* from = q + batch_.rows[begin + i / heads_] * q_stride + (kv_head * heads_ + i % heads_) * dim_;
            float* to = &room.q[size_t(i) * dim_];
            for (int d = 0; d < dim_; ++d) to[d] = from[d] * scale;
            if (Tiles::kIsPaired) Numbers<Tiles>::fill(to, dim_, &room.q_pairs[size_t(i) * dim_ / 2]);
            room.largest[i] = -INFINITY;
            room.total[i] = 0.0f;
        }
        std::fill(room.out.begin(), room.out.begin() + size_t(queries) * dim_, 0.0f);
        for (int part = batch_.group_parts[group]; part < batch_.group_parts[group + 1]; ++part)
            run_part(batch_.parts + 5 * part, begin, kv_head, room);
        for (int i = 0; i < queries; ++i) {
            float* to = out + batch_.rows[begin + i / heads_] * out_stride + (kv_head * heads_ + i % heads_) * dim_;
            const float inverse = 1.0f / room.total[i];
            for (int d = 0; d < dim_; ++d) to[d] = room.out[size_t(i) * dim_ + d] * inverse;
        }
    }

  private:
    void run_part(const int32_t* part, int group_begin, int kv_head, AttentionRoom& room) const {
        const int first = part[0] - group_begin, last = part[1] - group_begin;
        const uint8_t* k[4];
        const uint8_t* v[4];
        for (int begin = part[3]; begin < part[4]; begin += kChunk) {
            const int count = std::min(kChunk, part[4] - begin);
            find(part[2], begin, count, kv_head, room, k, v);
            score(first * heads_, last * heads_, count, k, room);
            for (int row = first; row < last; ++row) {
                const int seen = batch_.positions[batch_.rows[group_begin + row]] + 1 - begin;
                for (int head = 0; head < heads_; ++head) soften(row * heads_ + head, std::min(count, seen), count, room);
            }
            mix(first * heads_, last * heads_, count, v, room);
        }
    }

    // Finds the tiles of tokens [begin, begin + count) of a sequence; gathers them if need be.
    void find(int sequence, int begin, int count, int head, AttentionRoom& room, const uint8_t** k,
              const uint8_t** v) const {
        const int32_t* table = batch_.block_tables + int64_t(sequence) * batch_.max_blocks;
        const int size = batch_.block_size;
        for (int i = 0; kTile * i < count; ++i) {
            const int at = begin + kTile * i, left = std::min(kTile, count - kTile * i);
            const int64_t slot = int64_t(table[at / size]) * size + at % size;
            // An odd token would be paired with one that may hold anything, NaN included.
            if (size % kTile == 0 && left % 2 == 0) {
                k[i] = this->k(slot, head), v[i] = this->v(slot, head);
                continue;
            }
            uint8_t* to_k = &room.tiles[i * tile_bytes_];
            uint8_t* to_v = &room.tiles[(4 + i) * tile_bytes_];
            std::memset(to_v, 0, tile_bytes_);
            float a[kMaxHeadDim], b[kMaxHeadDim];
            for (int j = 0; j < left; ++j) {
                const int64_t from = int64_t(table[(at + j) / size]) * size + (at + j) % size;
                Tiles::get(this->k(from, head), this->v(from, head), dim_, int(from % kTile), a, b);
                Tiles::put(to_k, to_v, dim_, j, a, b);
            }
            k[i] = to_k, v[i] = to_v;
        }
    }

    static INLINE Numbers<Tiles> numbers(const std::vector<float>& plain, const std::vector<uint32_t>& pairs, int64_t at) {
        return {plain.data() + at, pairs.data() + at / 2};
    }

    template <int Q>
    void score_some(int query, const uint8_t* tile, int column, AttentionRoom& room) const {
        F16x sums[Q] = {};
        const auto q = numbers(room.q, room.q_pairs, int64_t(query) * dim_);
        for (int i = 0; i < dim_ / 2; ++i) {
            const auto keys = Tiles::keys(tile, i);
            UNROLL for (int r = 0; r < Q; ++r) sums[r] = Numbers<Tiles>::add(sums[r], keys, q, int64_t(r) * (dim_ / 2) + i);
        }
        UNROLL for (int r = 0; r < Q; ++r) store(&room.scores[size_t(query + r) * kChunk + column], sums[r]);
    }

    void score(int query, int end, int count, const uint8_t** tiles, AttentionRoom& room) const {
        while (query < end) {
            const int left = end - query;
            for (int i = 0; kTile * i < count; ++i) {
                if (left >= kScoreQueries) score_some<kScoreQueries>(query, tiles[i], kTile * i, room);
                else if (left >= kScoreQueries / 2) score_some<kScoreQueries / 2>(query, tiles[i], kTile * i, room);
                else if (left >= 3) score_some<3>(query, tiles[i], kTile * i, room);
                else score_some<1>(query, tiles[i], kTile * i, room);
            }
            query += left >= kScoreQueries ? kScoreQueries : left >= kScoreQueries / 2 ? kScoreQueries / 2 : left >= 3 ? 3 : 1;
        }
    }

    // Turns the scores of a query into weights; it sees `seen` of the `count` tokens.
    void soften(int query, int seen, int count, AttentionRoom& room) const {
        float* scores = &room.scores[size_t(query) * kChunk];
        const int padded = (count + kTile - 1) / kTile * kTile;
        for (int j = std::max(seen, 0); j < padded; ++j) scores[j] = -INFINITY;
        F16x highest = splat(-INFINITY);
        for (int j = 0; j < padded; j += 16) highest = max(highest, load<F16x>(scores + j));
        const float before = room.largest[query], now = std::max(before, max(highest));
        F16x sums = {};
        for (int j = 0; j < padded; j += 16) {
            // Where nothing was seen so far, -inf less itself would be NaN.
            const F16x weights = seen > 0 ? exp_negative(load<F16x>(scores + j) - now) : splat(0.0f);
            store(scores + j, weights);
            sums += weights;
        }
        if (Tiles::kIsPaired) Numbers<Tiles>::fill(scores, padded, &room.p_pairs[size_t(query) * kChunk / 2]);
        const float fade = before == now ? 1.0f : before == -INFINITY ? 0.0f : std::exp(before - now);
        room.largest[query] = now;
        room.total[query] = room.total[query] * fade + sum(sums);
        if (fade == 1.0f) return;
        float* out = &room.out[size_t(query) * dim_];
        for (int d = 0; d < dim_; d += 16) store(out + d, load<F16x>(out + d) * fade);
    }

    template <int Q, int N>
    void mix_some(int query, int d, int count, const uint8_t** tiles, AttentionRoom& room) const {
        F16x sums[Q][N];
        UNROLL for (int r = 0; r < Q; ++r)
            UNROLL for (int n = 0; n < N; ++n) sums[r][n] = load<F16x>(&room.out[size_t(query + r) * dim_ + d + 16 * n]);
        const auto p = numbers(room.scores, room.p_pairs, int64_t(query) * kChunk);
        for (int j = 0; 2 * j < count; ++j) {
            UNROLL for (int n = 0; n < N; ++n) {
                const auto values = Tiles::values(tiles[j / 8], dim_, j % 8, d + 16 * n);
                UNROLL for (int r = 0; r < Q; ++r)
                    sums[r][n] = Numbers<Tiles>::add(sums[r][n], values, p, int64_t(r) * (kChunk / 2) + j);
            }
        }
        UNROLL for (int r = 0; r < Q; ++r)
            UNROLL for (int n = 0; n < N; ++n) store(&room.out[size_t(query + r) * dim_ + d + 16 * n], sums[r][n]);
    }

    template <int Q>
    void mix_rows(int query, int count, const uint8_t** tiles, AttentionRoom& room) const {
        int d = 0;
        for (; d + 64 <= dim_; d += 64) mix_some<Q, 4>(query, d, count, tiles, room);
        for (; d < dim_; d += 16) mix_some<Q, 1>(query, d, count, tiles, room);
    }

    void mix(int query, int end, int count, const uint8_t** tiles, AttentionRoom& room) const {
        for (; query + kValueQueries <= end; query += kValueQueries) mix_rows<kValueQueries>(query, count, tiles, room);
        for (; query + 3 <= end; query += 3) mix_rows<3>(query, count, tiles, room);
        for (; query < end; ++query) mix_rows<1>(query, count, tiles, room);
    }

    const Batch& batch_;
    int dim_, num_kv_heads_, heads_;
    int64_t tile_bytes_;
    uint8_t* k_;
    uint8_t* v_;
};

}  // namespace PLAIT_ISA
}  // namespace plait

// Attention over tiles of the cache, with a running softmax over chunks of tokens (kChunk).
//
// Chunks begin at multiples of their size in a text's positions, whoever shares them: so a row's result
// is the same alone, in a batch, and behind a shared prefix.
// After: FlashAttention's running softmax; cascade attention over shared prefixes.
#pragma once

#include <cmath>
#include <vector>

#include "kv.h"

namespace plait {
namespace PLAIT_ISA {

#if defined(__AVX512F__)
constexpr int kScoreQueries = 6, kValueQueries = 12, kTilesAtOnce = 4;  // what 32 registers hold
#else
constexpr int kScoreQueries = 4, kValueQueries = 1, kTilesAtOnce = 1;
#endif

constexpr I16x kLanes = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// One thread's room, for up to `queries` pairs of a row and a head.
struct AttentionRoom {
    Array<float> q, out, scores, largest, total;
    Array<uint32_t> q_pairs, p_pairs;
    Array<uint8_t> tiles;  // K, V of a chunk, for tokens that do not lie side by side

    void resize(int queries, int dim) {
        if (int(largest.size()) >= queries + 15 && q.size() >= size_t(queries) * dim) return;
        for (auto* each : {&q, &out}) each->resize(size_t(queries) * dim);
        q_pairs.resize(size_t(queries) * dim / 2);
        scores.resize(size_t(queries) * kChunk);
        p_pairs.resize(size_t(queries) * kChunk / 2);
        for (auto* each : {&largest, &total}) each->resize(queries + 15);  // whole vectors are read
        tiles.resize(size_t(2 * kChunk / kTile) * kTile * dim * 4);
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

    // One piece of the work: a KV head of a group of rows. `q` has the heads of a row `q_stride` apart
    // from the next row's; `out` likewise.
    void run(int64_t piece, const float* q, int64_t q_stride, float* out, int64_t out_stride, AttentionRoom& room) const {
        const int group = int(piece / num_kv_heads_), kv_head = int(piece % num_kv_heads_);
        const int begin = batch_.group_rows[group], end = batch_.group_rows[group + 1];
        const int queries = (end - begin) * heads_;
        room.resize(queries, dim_);
        const float scale = kLog2E / std::sqrt(float(dim_));  // weights are powers of two
        for (int i = 0; i < queries; ++i) {
            const float* from = q + batch_.rows[begin + i / heads_] * q_stride + (kv_head * heads_ + i % heads_) * dim_;
            float* to = &room.q[size_t(i) * dim_];
            for (int d = 0; d < dim_; ++d) to[d] = from[d] * scale;
            if (Tiles::kIsPaired)
                for (int d = 0; d < dim_; d += 16) Numbers<Tiles>::fill(load<F16x>(to + d), &room.q_pairs[(size_t(i) * dim_ + d) / 2]);
            room.largest[i] = -INFINITY;
            room.total[i] = 0.0f;
        }
        std::fill(room.out.begin(), room.out.begin() + size_t(queries) * dim_, 0.0f);
        for (Place at = first(piece); at.piece == piece; at = next(at)) run_chunk(at, begin, kv_head, room);
        for (int i = 0; i < queries; ++i) {
            float* to = out + batch_.rows[begin + i / heads_] * out_stride + (kv_head * heads_ + i % heads_) * dim_;
            const float inverse = 1.0f / room.total[i];
            for (int d = 0; d < dim_; ++d) to[d] = room.out[size_t(i) * dim_ + d] * inverse;
        }
    }

  private:
    // Where a chunk lies: at a token of a part of a piece's context.
    struct Place {
        int64_t piece;
        int part, token;
    };
    // The tiles of a chunk.
    struct Chunk {
        const uint8_t* k[kChunk / kTile];
        const uint8_t* v[kChunk / kTile];
    };

    const int32_t* part(int index) const { return batch_.parts + 5 * index; }
    int64_t pieces() const { return int64_t(batch_.num_groups) * num_kv_heads_; }

    Place first(int64_t piece) const {
        if (piece == pieces()) return {piece, 0, 0};
        const int at = batch_.group_parts[piece / num_kv_heads_];
        return {piece, at, part(at)[3]};
    }

    Place next(Place at) const {
        if ((at.token += kChunk) < part(at.part)[4]) return at;
        if (++at.part < batch_.group_parts[at.piece / num_kv_heads_ + 1]) return {at.piece, at.part, part(at.part)[3]};
        return first(at.piece + 1);
    }

    void run_chunk(Place at, int group_begin, int kv_head, AttentionRoom& room) const {
        const int32_t* part = this->part(at.part);
        const int first = part[0] - group_begin, last = part[1] - group_begin;
        const int count = std::min(kChunk, part[4] - at.token);
        Chunk chunk;
        find(part[2], at.token, count, kv_head, room, chunk);
        score(first * heads_, last * heads_, count, chunk, room);
        soften(first, last, group_begin, at.token, (count + kTile - 1) / kTile * kTile, room);
        mix(first * heads_, last * heads_, count, chunk, room, next(at));
    }

    bool is_tiled() const { return batch_.block_size % kTile == 0; }

    int64_t slot(int sequence, int token) const {
        const int size = batch_.block_size;
        return int64_t(batch_.block_tables[int64_t(sequence) * batch_.max_blocks + token / size]) * size + token % size;
    }

    // Finds the tiles of tokens [begin, begin + count) of a sequence; gathers them if need be.
    void find(int sequence, int begin, int count, int head, AttentionRoom& room, Chunk& chunk) const {
        for (int i = 0; kTile * i < count; ++i) {
            const int at = begin + kTile * i, left = std::min(kTile, count - kTile * i);
            // An odd token would be paired with one that may hold anything, NaN included.
            if (is_tiled() && left % 2 == 0) {
                chunk.k[i] = k(slot(sequence, at), head), chunk.v[i] = v(slot(sequence, at), head);
                continue;
            }
            uint8_t* to_k = &room.tiles[i * tile_bytes_];
            uint8_t* to_v = &room.tiles[(kChunk / kTile + i) * tile_bytes_];
            std::memset(to_v, 0, tile_bytes_);
            float a[kMaxHeadDim], b[kMaxHeadDim];
            for (int j = 0; j < left; ++j) {
                const int64_t from = slot(sequence, at + j);
                Tiles::get(k(from, head), v(from, head), dim_, int(from % kTile), a, b);
                Tiles::put(to_k, to_v, dim_, j, a, b);
            }
            chunk.k[i] = to_k, chunk.v[i] = to_v;
        }
    }

    // Finds what will be read after a chunk, to be fetched meanwhile: the keys of the next. Where there
    // are none it is what is read now, which costs nothing.
    void find_next(Place at, Chunk& chunk) const {
        for (int i = 0; i < kChunk / kTile; ++i) {
            const bool is_there = is_tiled() && at.piece < pieces() && at.token + kTile * i < part(at.part)[4];
            chunk.k[i] = is_there ? k(slot(part(at.part)[2], at.token + kTile * i), int(at.piece % num_kv_heads_)) : chunk.v[0];
        }
    }

    static INLINE Numbers<Tiles> numbers(const Array<float>& plain, const Array<uint32_t>& pairs, int64_t at) {
        return {plain.data() + at, pairs.data() + at / 2};
    }

    // N tiles at once: few queries alone would wait for their own sums.
    template <int Q, int N>
    NOINLINE void score_some(int query, int i, const Chunk& chunk, AttentionRoom& room) const {
        F16x sums[Q][N] = {};
        const auto q = numbers(room.q, room.q_pairs, int64_t(query) * dim_);
        for (int j = 0; j < dim_ / 2; ++j) {
            UNROLL for (int n = 0; n < N; ++n) {
                const auto keys = Tiles::keys(chunk.k[i + n], j);
                Tiles::fetch_keys(chunk.v[i + n], j);  // the values are read next
                UNROLL for (int r = 0; r < Q; ++r)
                    sums[r][n] = Numbers<Tiles>::add(sums[r][n], keys, q, int64_t(r) * (dim_ / 2) + j);
            }
        }
        UNROLL for (int r = 0; r < Q; ++r)
            UNROLL for (int n = 0; n < N; ++n) store(&room.scores[size_t(query + r) * kChunk + kTile * (i + n)], sums[r][n]);
    }

    template <int Q, int N>
    void score_rows(int query, int tiles, const Chunk& chunk, AttentionRoom& room) const {
        int i = 0;
        for (; i + N <= tiles; i += N) score_some<Q, N>(query, i, chunk, room);
        for (; i < tiles; ++i) score_some<Q, 1>(query, i, chunk, room);
    }

    void score(int query, int end, int count, const Chunk& chunk, AttentionRoom& room) const {
        const int tiles = (count + kTile - 1) / kTile;
        for (; query + kScoreQueries <= end; query += kScoreQueries) score_rows<kScoreQueries, kTilesAtOnce>(query, tiles, chunk, room);
        for (; query + 3 <= end; query += 3) score_rows<3, kTilesAtOnce>(query, tiles, chunk, room);
        for (; query < end; ++query) score_rows<1, kTilesAtOnce>(query, tiles, chunk, room);
    }

    // Turns the scores of rows [first, last) into weights. What is known of a whole query, its largest
    // score and its sum, is found for 16 queries at a time: one by one each would wait for itself.
    // `count` fills whole tiles.
    void soften(int first, int last, int group_begin, int token, int count, AttentionRoom& room) const {
        const int begin = first * heads_, end = last * heads_;
        for (int row = first; row < last; ++row) {
            const int seen = batch_.positions[batch_.rows[group_begin + row]] + 1 - token;
            for (int query = row * heads_; query < (row + 1) * heads_ && seen < count; ++query) hide(query, seen, count, room);
        }
        for (int query = begin; query < end; query += 16) {
            const int n = std::min(16, end - query);
            if (count == kChunk) soften_some<kChunk>(query, n, kChunk, room);
            else soften_some<0>(query, n, count, room);
        }
    }

    // Hides the tokens that a query does not see.
    void hide(int query, int seen, int count, AttentionRoom& room) const {
        float* scores = &room.scores[size_t(query) * kChunk];
        for (int i = std::max(0, seen) / 16 * 16; i < count; i += 16)
            store(scores + i, kLanes + i < seen ? load<F16x>(scores + i) : splat(-INFINITY));
    }

    // The weights of up to 16 queries; `Count` tokens, or if that is 0 `count`.
    template <int Count>
    NOINLINE void soften_some(int query, int queries, int count, AttentionRoom& room) const {
        const int num = Count ? Count : count;
        F16x highest[16], sums[16];
        for (int i = 0; i < queries; ++i) {
            const float* scores = &room.scores[size_t(query + i) * kChunk];
            highest[i] = load<F16x>(scores);
            UNROLL for (int at = 16; at < num; at += 16) highest[i] = max(highest[i], load<F16x>(scores + at));
        }
        // The others of the 16 may be queries of rows that do not see this chunk: theirs stays as it is.
        for (int i = queries; i < 16; ++i) highest[i] = splat(-INFINITY), sums[i] = splat(0.0f);
        alignas(64) float nows[16], fades[16];
        const F16x before = load<F16x>(&room.largest[query]), now = max(before, max_of_each(highest));
        const F16x fade = before == now ? splat(1.0f) : exp2_negative(before - now);
        store(&room.largest[query], now);
        store(fades, fade);
        store(nows, now == -INFINITY ? splat(0.0f) : now);  // nothing seen: -inf less itself would be NaN
        for (int i = 0; i < queries; ++i) {
            float* scores = &room.scores[size_t(query + i) * kChunk];
            F16x total = {};
            UNROLL for (int at = 0; at < num; at += 16) {
                const F16x weights = exp2_negative<Tiles::kIsPaired ? 3 : 5>(load<F16x>(scores + at) - nows[i]);
                total += weights;
                if (Tiles::kIsPaired) Numbers<Tiles>::fill(weights, &room.p_pairs[(size_t(query + i) * kChunk + at) / 2]);
                else store(scores + at, weights);
            }
            sums[i] = total;
            float* out = &room.out[size_t(query + i) * dim_];
            for (int d = 0; d < dim_ && fades[i] != 1.0f; d += 16) store(out + d, load<F16x>(out + d) * fades[i]);
        }
        store(&room.total[query], load<F16x>(&room.total[query]) * fade + sum_of_each(sums));
    }

    template <int Q, int N>
    NOINLINE void mix_some(int query, int d, int count, const Chunk& chunk, const Chunk& ahead, AttentionRoom& room) const {
        F16x sums[Q * N];
        float* out = &room.out[size_t(query) * dim_ + d];
        UNROLL for (int i = 0; i < Q * N; ++i) sums[i] = load<F16x>(out + i / N * dim_ + 16 * (i % N));
        const auto p = numbers(room.scores, room.p_pairs, int64_t(query) * kChunk);
        for (int j = 0; 2 * j < count; ++j) {
            typename Tiles::Pair values[N];
            UNROLL for (int n = 0; n < N; ++n) {
                values[n] = Tiles::values(chunk.v[j / 8], dim_, j % 8, d + 16 * n);
                Tiles::fetch_values(ahead.k[j / 8], dim_, j % 8, d + 16 * n);
            }
            UNROLL for (int i = 0; i < Q * N; ++i)
                sums[i] = Numbers<Tiles>::add(sums[i], values[i % N], p, int64_t(i / N) * (kChunk / 2) + j);
        }
        UNROLL for (int i = 0; i < Q * N; ++i) store(out + i / N * dim_ + 16 * (i % N), sums[i]);
    }

    template <int Q, int N>
    void mix_rows(int query, int count, const Chunk& chunk, const Chunk& ahead, AttentionRoom& room) const {
        int d = 0;
        for (; d + 16 * N <= dim_; d += 16 * N) mix_some<Q, N>(query, d, count, chunk, ahead, room);
        for (; d < dim_; d += 16) mix_some<Q, 1>(query, d, count, chunk, ahead, room);
    }

    void mix(int query, int end, int count, const Chunk& chunk, AttentionRoom& room, Place next) const {
        Chunk ahead = chunk;
        find_next(next, ahead);
        for (; query + kValueQueries <= end; query += kValueQueries) mix_rows<kValueQueries, 2>(query, count, chunk, ahead, room);
        for (; query + 3 <= end; query += 3) mix_rows<3, 4>(query, count, chunk, ahead, room);
        for (; query < end; ++query) mix_rows<1, 4>(query, count, chunk, ahead, room);
    }

    const Batch& batch_;
    int dim_, num_kv_heads_, heads_;
    int64_t tile_bytes_;
    uint8_t* k_;
    uint8_t* v_;
};

}  // namespace PLAIT_ISA
}  // namespace plait

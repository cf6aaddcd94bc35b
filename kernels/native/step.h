// One forward pass: all layers in one call, the threads meeting between what depends on each other.
#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <vector>

#include "attention.h"
#include "linear.h"
#include "pool.h"

namespace plait {
namespace PLAIT_ISA {

constexpr int kRowsAtOnce = 4;     // rows of a norm that a thread takes
constexpr int kTilesAtOnce = 2;    // tiles of a weight
constexpr int kFewRows = 4;        // of activations: up to so many, reading a weight is all that counts

// Work that threads take piece by piece; each counter serves one phase of a step.
class Counters {
  public:
    explicit Counters(int size) : next_(size) {}

    template <class Work>
    void each(int phase, int64_t size, int64_t at_once, Work work) {
        for (int64_t begin; (begin = next_[phase].fetch_add(at_once, std::memory_order_relaxed)) < size;)
            for (int64_t i = begin; i < std::min(begin + at_once, size); ++i) work(i);
    }

  private:
    std::vector<std::atomic<int64_t>> next_;
};

// Activations that own their memory.
class Room {
  public:
    Activations get(int64_t rows, int cols, bool is_exact) {
        values_.resize(std::max<size_t>(values_.size(), rows * cols));
        const size_t blocks = rows * (cols / kBlock);
        if (!is_exact && blocks > scales_.size()) {
            scales_.resize(blocks), sums_.resize(blocks), offsets_.resize(blocks);
        }
        if (!is_exact) q_.resize(std::max<size_t>(q_.size(), rows * cols));
        return {values_.data(), q_.data(), scales_.data(), sums_.data(), offsets_.data(), cols, is_exact};
    }

  private:
    std::vector<float> values_, scales_, sums_;
    std::vector<int8_t> q_;
    std::vector<int32_t> offsets_;
};

struct Buffers {
    std::vector<float> x, qkv;
    Room normed, attended, inner, wanted;
    std::vector<AttentionRoom> attention;
};

INLINE void norm_row(const float* x, const float* weight, int size, float eps, float* out) {
    F16x squares = {};
    int i = 0;
    for (; i + 16 <= size; i += 16) {
        const F16x v = load<F16x>(x + i);
        squares += v * v;
    }
    float total = sum(squares);
    for (; i < size; ++i) total += x[i] * x[i];
    const float inverse = 1.0f / std::sqrt(total / float(size) + eps);
    for (int j = 0; j < size; ++j) out[j] = x[j] * inverse * weight[j];
}

INLINE void turn(float* head, const float* cos, const float* sin, int half) {
    for (int i = 0; i < half; ++i) {
        const float a = head[i], b = head[half + i];
        head[i] = a * cos[i] - b * sin[i];
        head[half + i] = b * cos[i] + a * sin[i];
    }
}

INLINE F16x silu(F16x x) {
    const F16x e = exp_negative(max(x, -x) * -1.0f);
    const F16x sigmoid_of_size = 1.0f / (1.0f + e);
    return x * (x < 0.0f ? e * sigmoid_of_size : sigmoid_of_size);
}

// One thread's place in a step: all threads go through the same phases.
struct Thread {
    int id;
    int phase = 0;
};

template <class Tiles>
class Step {
  public:
    Step(const Model& model, const Cache& cache, const Batch& batch, Buffers& buffers, Pool& pool, float* logits)
        : m_(model), cache_(cache), b_(batch), pool_(pool), logits_(logits), buffers_(buffers),
          counters_(kMaxPhases * model.num_layers + 2), rows_(batch.num_tokens),
          heads_width_(model.num_heads * model.head_dim), kv_width_(model.num_kv_heads * model.head_dim),
          stride_(heads_width_ + 2 * kv_width_) {
        const bool is_exact = model.is_exact;
        buffers.x.resize(std::max<size_t>(buffers.x.size(), rows_ * model.hidden));
        buffers.qkv.resize(std::max<size_t>(buffers.qkv.size(), rows_ * stride_));
        normed_ = buffers.normed.get(rows_, model.hidden, is_exact);
        attended_ = buffers.attended.get(rows_, heads_width_, is_exact);
        inner_ = buffers.inner.get(rows_, model.inner, is_exact);
        wanted_ = buffers.wanted.get(batch.num_logits, model.hidden, is_exact);
        buffers.attention.resize(pool.num_threads());
        x_ = buffers.x.data();
    }

    // What every thread does.
    void run(Thread thread) {
        each(thread, rows_, kRowsAtOnce, [&](int64_t row) {
            row_of(m_.embedding, b_.token_ids[row], x_ + row * m_.hidden);
            enter(row, m_.layers[0].input_norm);
        });
        for (int i = 0; i < m_.num_layers; ++i) run_layer(thread, i);
        each(thread, num_tiles(m_.head.rows), tiles_at_once(num_tiles(m_.head.rows)), [&](int64_t tile) {
            multiply(m_.head, tile, wanted_, 0, b_.num_logits, [&](int64_t row, F16x sums) {
                put(logits_ + row * m_.head.rows, m_.head, tile, sums);
            });
        });
    }

  private:
    // For few rows a thread reads one long run of a weight, which the memory likes; for many, little
    // by little, so that none waits for the other.
    int64_t tiles_at_once(int64_t tiles) const {
        const int64_t threads = pool_.num_threads();
        return rows_ <= kFewRows ? (tiles + threads - 1) / threads : kTilesAtOnce;
    }

    static constexpr int kMaxPhases = 11;  // of a layer

    // One phase: all of it is done, by all threads, when it returns.
    template <class Work>
    void each(Thread& thread, int64_t size, int64_t at_once, Work work) {
        counters_.each(thread.phase++, size, at_once, work);
        pool_.barrier.wait();
    }

    void run_layer(Thread& thread, int index) {
        const Layer& layer = m_.layers[index];
        const Attention<Tiles> attention(m_, cache_, b_, index);
        float* qkv = buffers_.qkv.data();
        const int64_t q_tiles = num_tiles(layer.q.rows), k_tiles = num_tiles(layer.k.rows);
        each(thread, q_tiles + 2 * k_tiles, tiles_at_once(q_tiles + 2 * k_tiles), [&](int64_t tile) {
            if (tile < q_tiles) return project(layer.q, tile, qkv);
            tile -= q_tiles;
            if (tile < k_tiles) return project(layer.k, tile, qkv + heads_width_);
            project(layer.v, tile - k_tiles, qkv + heads_width_ + kv_width_);
        });
        each(thread, rows_, kRowsAtOnce, [&](int64_t row) { keep(layer, attention, row); });
        if (b_.num_copies) each(thread, b_.num_copies, 1, [&](int64_t i) { attention.copy(b_.copy_from[i], b_.copy_to[i]); });
        each(thread, int64_t(b_.num_groups) * m_.num_kv_heads, 1, [&](int64_t i) {
            attention.run(int(i / m_.num_kv_heads), int(i % m_.num_kv_heads), qkv, stride_, attended_.values,
                          attended_.cols, buffers_.attention[thread.id]);
        });
        add_projected(thread, layer.o, attended_, layer.post_norm, nullptr);
        each(thread, num_tiles(layer.gate.rows), tiles_at_once(num_tiles(layer.gate.rows)), [&](int64_t tile) { open_gate(layer, tile); });
        const bool is_last = index + 1 == m_.num_layers;
        add_projected(thread, layer.down, inner_, is_last ? nullptr : m_.layers[index + 1].input_norm, m_.norm);
    }

    // Normalises a row of the hidden states for what comes next.
    void enter(int64_t row, const float* weight) {
        float* to = normed_.values + row * m_.hidden;
        norm_row(x_ + row * m_.hidden, weight, m_.hidden, m_.eps, to);
        set_row(normed_, row, to);
    }

    void project(const Linear& linear, int64_t tile, float* out) {
        multiply(linear, tile, normed_, 0, rows_, [&](int64_t row, F16x sums) {
            put(out + row * stride_, linear, tile, sums);
        });
    }

    // Turns queries and keys, and puts the keys and values of a row into the cache.
    void keep(const Layer& layer, const Attention<Tiles>& attention, int64_t row) {
        float* q = buffers_.qkv.data() + row * stride_;
        float* k = q + heads_width_;
        const float* v = k + kv_width_;
        const int dim = m_.head_dim;
        const float* cos = b_.cos + row * (dim / 2);
        const float* sin = b_.sin + row * (dim / 2);
        for (int head = 0; head < m_.num_heads; ++head) {
            if (layer.q_norm) norm_row(q + head * dim, layer.q_norm, dim, m_.eps, q + head * dim);
            turn(q + head * dim, cos, sin, dim / 2);
        }
        const int64_t slot = b_.slots[row];
        for (int head = 0; head < m_.num_kv_heads; ++head) {
            if (layer.k_norm) norm_row(k + head * dim, layer.k_norm, dim, m_.eps, k + head * dim);
            turn(k + head * dim, cos, sin, dim / 2);
            Tiles::put(attention.k(slot, head), attention.v(slot, head), dim, int(slot % kTile), k + head * dim, v + head * dim);
        }
    }

    // Adds a product to the hidden states, and normalises them: all rows, or at the end the wanted.
    void add_projected(Thread& thread, const Linear& linear, const Activations& from, const float* weight, const float* last) {
        if (!from.is_exact)
            each(thread, rows_, kRowsAtOnce, [&](int64_t row) { set_row(from, row, from.values + row * from.cols); });
        each(thread, num_tiles(linear.rows), tiles_at_once(num_tiles(linear.rows)), [&](int64_t tile) {
            multiply(linear, tile, from, 0, rows_, [&](int64_t row, F16x sums) {
                add(x_ + row * m_.hidden, linear, tile, sums);
            });
        });
        if (weight) return each(thread, rows_, kRowsAtOnce, [&](int64_t row) { enter(row, weight); });
        each(thread, b_.num_logits, 1, [&](int64_t i) {
            float* to = wanted_.values + i * m_.hidden;
            norm_row(x_ + b_.logit_rows[i] * m_.hidden, last, m_.hidden, m_.eps, to);
            set_row(wanted_, i, to);
        });
    }

    void open_gate(const Layer& layer, int64_t tile) {
        float* out = inner_.values;
        multiply(layer.gate, tile, normed_, 0, rows_, [&](int64_t row, F16x sums) {
            put(out + row * m_.inner, layer.gate, tile, silu(sums));
        });
        multiply(layer.up, tile, normed_, 0, rows_, [&](int64_t row, F16x sums) {
            float* at = out + row * m_.inner + tile * kTile;
            for (int i = 0; i < kTile && tile * kTile + i < m_.inner; ++i) at[i] *= sums[i];
        });
    }

    // Writes a tile of a row's outputs; the last one of a weight may have fewer than 16.
    INLINE void put(float* row, const Linear& linear, int64_t tile, F16x sums) {
        const int64_t first = tile * kTile;
        if (first + kTile <= linear.rows) return store(row + first, sums);
        for (int i = 0; first + i < linear.rows; ++i) row[first + i] = sums[i];
    }

    INLINE void add(float* row, const Linear& linear, int64_t tile, F16x sums) {
        const int64_t first = tile * kTile;
        if (first + kTile <= linear.rows) return store(row + first, load<F16x>(row + first) + sums);
        for (int i = 0; first + i < linear.rows; ++i) row[first + i] += sums[i];
    }

    const Model& m_;
    const Cache& cache_;
    const Batch& b_;
    Pool& pool_;
    float* logits_;
    Buffers& buffers_;
    Counters counters_;
    int64_t rows_;
    int heads_width_, kv_width_, stride_;
    Activations normed_, attended_, inner_, wanted_;
    float* x_;
};

}  // namespace PLAIT_ISA
}  // namespace plait

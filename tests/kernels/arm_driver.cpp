// One forward pass of a small random model, and draws from its logits, printed: to compare processors.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "abi.h"

using namespace plait;

extern "C" {
void plait_threads(int32_t);
int32_t plait_choose(const char*);
int64_t plait_packed_bytes(int32_t, int64_t, int64_t);
int32_t plait_pack(int32_t, const uint8_t*, int64_t, int64_t, int64_t, uint8_t*);
void* plait_make_buffers();
void plait_step(const Model*, const Cache*, const Batch*, void*, float*, int64_t*);
void plait_sample(const float*, int64_t, int64_t, const DrawRow*, int64_t, int64_t*);
void plait_logprobs(const float*, int64_t, int64_t, const int64_t*, const int64_t*, int64_t, double*);
}

static std::mt19937 random_bits(7);  // the same numbers everywhere, unlike the library's distributions

static float number() { return float(random_bits() % 2001) / 1000.0f - 1.0f; }

static uint16_t half(float x) {  // of the scales here: normal numbers between 2^-14 and 1
    uint32_t bits;
    std::memcpy(&bits, &x, 4);
    return uint16_t((bits >> 16 & 0x8000) | (((bits >> 23 & 255) - 112) << 10) | (bits >> 13 & 1023));
}

struct Weight {
    std::vector<uint8_t> tiles;
    Linear linear;
};

// A weight in one of GGML's formats: 0 F32, 2 Q4_0, 3 Q4_1, 8 Q8_0, 30 BF16.
static Weight weight(int ggml, int rows, int cols) {
    const int kind = ggml == 0 ? kF32 : ggml == 8 ? kQ8 : ggml == 30 ? kBf16 : kQ4;
    std::vector<uint8_t> raw;
    auto put = [&](const void* data, int size) { raw.insert(raw.end(), (const uint8_t*)data, (const uint8_t*)data + size); };
    for (int i = 0; i < rows * cols / kBlock; ++i) {
        const uint16_t scale = half(0.002f + float(random_bits() % 100) / 20000.0f), low = half(-0.03f);
        if (ggml == 2 || ggml == 3 || ggml == 8) put(&scale, 2);
        if (ggml == 3) put(&low, 2);
        for (int j = 0; j < kBlock; ++j) {
            const float x = number() * 0.1f;
            uint32_t bits;
            std::memcpy(&bits, &x, 4);
            const uint16_t top = uint16_t(bits >> 16);
            const uint8_t byte = uint8_t(random_bits());
            if (ggml == 0) put(&x, 4);
            if (ggml == 30) put(&top, 2);
            if (ggml == 8 || ((ggml == 2 || ggml == 3) && j < kBlock / 2)) put(&byte, 1);
        }
    }
    Weight made{std::vector<uint8_t>(plait_packed_bytes(kind, rows, cols)), {}};
    if (!plait_pack(ggml, raw.data(), 0, rows, cols, made.tiles.data())) std::printf("pack %d failed\n", ggml);
    made.linear = Linear{nullptr, nullptr, kind, rows, cols, 0};
    return made;
}

int main() {
    const int hidden = 64, heads = 2, kv_heads = 1, dim = 32, inner = 96, vocab = 80, block = 16;
    if (!plait_choose("portable")) return std::puts("no portable kernels"), 1;
    plait_threads(2);
    std::vector<float> ones(hidden, 1.0f);
    Weight all[] = {weight(0, heads * dim, hidden), weight(30, kv_heads * dim, hidden), weight(8, kv_heads * dim, hidden),
                    weight(2, hidden, heads * dim), weight(3, inner, hidden),           weight(3, inner, hidden),
                    weight(2, hidden, inner),       weight(8, vocab, hidden)};
    for (Weight& each : all) each.linear.data = each.tiles.data();
    const Layer layer{ones.data(),   ones.data(),   nullptr,       nullptr,       all[0].linear, all[1].linear,
                      all[2].linear, all[3].linear, all[4].linear, all[5].linear, all[6].linear};
    const int lengths[] = {5, 20};
    std::vector<int32_t> ids, positions, rows, tables = {0, 0, 1, 2}, group_rows = {0}, group_parts = {0}, parts;
    std::vector<float> cosines, sines;
    std::vector<int64_t> slots, logit_rows = {4, 24};
    for (int seq = 0; seq < 2; ++seq)
        for (int at = 0; at < lengths[seq]; ++at) {
            const int row = int(ids.size());
            ids.push_back(int32_t(random_bits() % vocab)), positions.push_back(at), rows.push_back(row);
            slots.push_back(tables[seq * 2 + at / block] * block + at % block);
            for (int i = 0; i < dim / 2; ++i) {
                const double angle = at * std::pow(10000.0, -2.0 * i / dim);
                cosines.push_back(float(std::cos(angle))), sines.push_back(float(std::sin(angle)));
            }
            group_rows.push_back(row + 1), group_parts.push_back(row + 1);
            for (int32_t field : {row, row + 1, seq, 0, at + 1}) parts.push_back(field);
        }
    for (const int is_exact : {0, 1})
        for (const int is_bf16 : {0, 1}) {
            const Model model{1, hidden, heads, kv_heads, dim, inner, vocab, is_exact, 1e-5f, 0, ones.data(), all[7].linear, all[7].linear, &layer};
            std::vector<float> memory(2 * 3 * block * kv_heads * dim);
            const Cache cache{(uint8_t*)memory.data(), 3 * block, is_bf16, 0};
            const Batch batch{25, 2, 2, block, 0, 2, 25, 25, ids.data(), positions.data(), cosines.data(), sines.data(),
                              slots.data(), tables.data(), nullptr, nullptr, logit_rows.data(), group_rows.data(),
                              rows.data(), group_parts.data(), parts.data()};
            std::vector<float> logits(2 * vocab, NAN);
            int64_t largest[2], drawn[2];
            plait_step(&model, &cache, &batch, plait_make_buffers(), logits.data(), largest);
            const std::vector<int32_t> known = {-1, -1, 0xffff};  // 80 tokens
            const DrawRow draw[2] = {{known.data(), nullptr, 1ull << 51, 0.9, 0.0, 0.8f, 0, 0, 0},
                                     {known.data(), nullptr, 3ull << 51, 1.0, 0.05, 1.0f, 0, 10, 0}};
            plait_sample(logits.data(), vocab, vocab, draw, 2, drawn);
            const int64_t starts[] = {0, 1, 2}, wanted[] = {3, 4};
            double found[2];
            plait_logprobs(logits.data(), vocab, vocab, starts, wanted, 2, found);
            for (float logit : logits) std::printf("%.7g\n", logit);
            for (int i = 0; i < 2; ++i) std::printf("%lld\n%lld\n%.7g\n", (long long)largest[i], (long long)drawn[i], found[i]);
        }
}

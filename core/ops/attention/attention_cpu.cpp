// Defines attention on the CPU, tile by tile. Dao et al., "FlashAttention: fast and
// memory-efficient exact attention with IO-awareness", 2022, algorithms 1 and 4; Dao,
// "FlashAttention-2", 2023.
//
// Rows of any layout and dtype are brought into tiles of the type that attention_isa.cpp computes
// in. Threads share queries of batch items forward, and batch items (or ranges of keys, when there
// are few) backward; items that share the gradient of a mask follow each other in one thread.
#include "core/ops/attention/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/device/philox.h"
#include "core/device/threads.h"
#include "core/ops/attention/attention_tiles.h"
#include "core/ops/random/random.h"
#include "core/ops/random/random_draw.h"

namespace rushlight {

ISA_TABLES(RandomLoops, random_loops)

namespace {

using namespace attention_cpu_detail;

constexpr int64_t kKeys = 64;        // of a tile of scores
constexpr int64_t kRows = 64;        // of a tile of scores
constexpr int64_t kCausalRows = 32;  // where rows see different numbers of keys
constexpr int64_t kQueries = 256;    // that share a tile of keys in the L2 cache

const RandomLoops& random_loops() { return active(random_loops_sets); }

// Which batch items backward works on one after the other: those of one share of a mask gradient,
// or each on its own without one.
template <class T>
class Groups {
 public:
  Groups(const Attention& a, const Tensor& mask_grad) : order_(size_t(a.items())), offsets_() {
    std::iota(order_.begin(), order_.end(), 0);
    groups_ = a.items();
    if (!mask_grad.defined()) return;
    shares_ = mask_grad.size(0);
    Tensor first = alias(mask_grad, ShapeRef(mask_grad.sizes()).subspan(1),
                         ShapeRef(mask_grad.strides()).subspan(1), mask_grad.offset());
    Shape sizes(a.batch);
    sizes.push_back(a.queries());
    sizes.push_back(a.keys());
    Shape strides = broadcast_strides(first, sizes);
    strides.pop_back();
    row_ = strides.back();
    strides.pop_back();
    data_ = first.data<T>();
    share_ = mask_grad.stride(0);
    for (int64_t index : order_) offsets_.push_back(offset_of(a.batch, strides, index));
    std::ranges::stable_sort(order_, {}, [&](int64_t index) { return offsets_[size_t(index)]; });
    groups_ = shares_;
    for (size_t i = 1; i < order_.size(); ++i)
      if (offset(order_[i]) != offset(order_[i - 1])) groups_ += shares_;
  }

  int64_t size() const { return groups_; }
  std::span<const int64_t> items(int64_t group) const {
    int64_t sharing = int64_t(order_.size()) * shares_ / groups_, share = group % shares_;
    int64_t first = group / shares_ * sharing, begin = sharing * share / shares_;
    return {&order_[size_t(first + begin)], size_t(sharing * (share + 1) / shares_ - begin)};
  }
  // Where the group adds the mask gradients of a query of a batch item, beginning with key 0.
  T* sums(int64_t group, int64_t index, int64_t query) const {
    return data_ + offset(index) + group % shares_ * share_ + query * row_;
  }

 private:
  int64_t offset(int64_t index) const { return offsets_[size_t(index)]; }

  std::vector<int64_t> order_, offsets_;  // items by offset; the offset of each item
  int64_t groups_, shares_ = 1, share_ = 0, row_ = 0;
  T* data_ = nullptr;
};

// Drops elements of tiles of probabilities.
template <class T>
class Drop {
 public:
  explicit Drop(const Attention& a)
      : attention_(a),
        per_row_(a.counters_per_row()),
        threshold_(dropout_threshold(a.dropout_p)),
        scale_(T(kept_scale(a.dropout_p))) {}

  void apply(int64_t index, int64_t query, int64_t key, T* tile, int64_t rows,
             int64_t width) const {
    if (attention_.dropout_p == 0) return;
    uint32_t words[kKeys];
    bool keep[kKeys];
    uint64_t row = uint64_t(index * attention_.queries() + query);
    for (int64_t r = 0; r < rows; ++r, ++row, tile += kKeys) {
      random_loops().words(attention_.draw.seed,
                           attention_.draw.offset + row * uint64_t(per_row_) + uint64_t(key / 4),
                           (width + 3) / 4, words);
      if constexpr (std::is_same_v<T, float>)
        random_loops().dropout_f32(words, width, threshold_, scale_, tile, tile, keep);
      else random_loops().dropout_f64(words, width, threshold_, scale_, tile, tile, keep);
    }
  }

 private:
  const Attention& attention_;
  int64_t per_row_;
  uint32_t threshold_;
  T scale_;
};

// Which rows of a tile of scores are computed together, from `row` on: few where it is causal and
// the diagonal passes through, so that little is computed in vain.
struct Strip {
  Strip(const Attention& a, int64_t row, int64_t end, int64_t key, int64_t width_in) {
    bool diagonal = a.is_causal && row < key + width_in;
    rows = std::min(end - row, diagonal ? kCausalRows : kRows);
    keys.first = a.is_causal ? row - key + 1 : width_in;
    keys.step = a.is_causal;
    keys.width = a.is_causal ? std::clamp<int64_t>(row + rows - key, 0, width_in) : width_in;
  }
  int64_t rows;
  VisibleKeys keys;
};

template <class T>
void forward(const Attention& a, const Tensor& output, const Tensor& logsumexp) {
  const AttentionLoopsOf<T>& loop = loops<T>();
  const int64_t L = a.queries(), S = a.keys(), E = padded_features(a.query),
                V = padded_features(a.value);
  Rows<T> query(a.query, a.batch), key(a.key, a.batch), value(a.value, a.batch),
      out(output, a.batch);
  Mask<T> mask(a);
  Drop<T> drop(a);
  int64_t queries = kQueries;  // fewer, when all threads would not have some
  while (queries > kRows && a.items() * ((L + queries - 1) / queries) < 4 * num_threads())
    queries /= 2;
  const int64_t tiles = (L + queries - 1) / queries;
  parallel_for(
      0, a.items() * tiles, grain(work(a) / double(tiles)), [&](int64_t begin, int64_t end) {
        Scratch<T> scratch(queries * (E + V + 2) + kKeys * (2 * E + V) + kRows * kKeys);
        T *q = scratch.take(queries * E), *o = scratch.take(queries * V),
          *k = scratch.take(kKeys * E), *k_turned = scratch.take(E * kKeys),
          *v = scratch.take(kKeys * V), *scores = scratch.take(kRows * kKeys),
          *largest = scratch.take(queries), *total = scratch.take(queries);
        for (int64_t t = begin; t < end; ++t) {
          int64_t index = t / tiles, first = t % tiles * queries,
                  rows = std::min(queries, L - first);
          const T* asked = query.tile(query.item(index), first, rows, q, E);
          std::fill_n(o, rows * V, T(0));
          std::fill_n(largest, rows, -std::numeric_limits<T>::infinity());
          std::fill_n(total, rows, T(0));
          int64_t last_key = a.is_causal ? std::min(S, first + rows) : S;
          for (int64_t j = 0; j < last_key; j += kKeys) {
            int64_t width = std::min(kKeys, S - j);
            loop.transpose(key.tile(key.item(index), j, width, k, E, padded(width) - width), E,
                           padded(width), E, T(a.scale), k_turned, kKeys);
            const T* given = value.tile(value.item(index), j, width, v, V);
            for (int64_t i = 0; i < rows;) {
              Strip strip(a, first + i, first + rows, j, width);
              int64_t w = strip.keys.width, r = i;
              i += strip.rows;
              if (w == 0) continue;
              loop.multiply(strip.rows, padded(w), E, asked + r * E, E, 1, k_turned, kKeys, scores,
                            kKeys, false);
              mask.apply(index, first + r, j, scores, kKeys, strip.rows, w);
              loop.exponentials(scores, kKeys, strip.rows, strip.keys, largest + r, total + r,
                                o + r * V, V, V);
              drop.apply(index, first + r, j, scores, strip.rows, w);
              loop.multiply(strip.rows, V, w, scores, kKeys, 1, given, V, o + r * V, V, true);
            }
          }
          T* sums = logsumexp.data<T>() + index * L + first;
          for (int64_t r = 0; r < rows; ++r) {
            loop.scale(o + r * V, total[r] == 0 ? T(0) : 1 / total[r], V);
            out.store(out.item(index), first + r, o + r * V);
            sums[r] = largest[r] + std::log(total[r]);
          }
        }
      });
}

template <class T>
void backward(const Attention& a, const Tensor& grad, const Tensor& output, const Tensor& logsumexp,
              const AttentionGrads& grads) {
  const AttentionLoopsOf<T>& loop = loops<T>();
  const int64_t L = a.queries(), S = a.keys(), E = padded_features(a.query),
                V = padded_features(a.value), items = a.items();
  Rows<T> query(a.query, a.batch), key(a.key, a.batch), value(a.value, a.batch),
      out(output, a.batch), out_grad(grad, a.batch);
  std::optional<Rows<T>> grad_query, grad_key, grad_value;
  if (grads.query.defined()) grad_query.emplace(grads.query, a.batch);
  if (grads.key.defined()) grad_key.emplace(grads.key, a.batch);
  if (grads.value.defined()) grad_value.emplace(grads.value, a.batch);
  Mask<T> mask(a);
  Drop<T> drop(a);
  // Ranges of keys that have a gradient of the queries each, which are added up afterwards.
  const int64_t key_tiles = (S + kKeys - 1) / kKeys;
  int64_t parts = 1;
  const Groups<T> groups(a, grads.mask);
  const double group_work = work(a) * double(items) / double(groups.size());
  if (groups.size() < num_threads() && group_work > kMultiplicationsPerThread)
    parts = std::clamp<int64_t>(num_threads() / groups.size(), 1, std::max<int64_t>(1, key_tiles));
  CpuBuffer query_grads(size_t(parts > 1 ? items * parts * L * E : 0) * sizeof(T));
  auto run = [&](int64_t begin, int64_t end) {
    Scratch<T> scratch(L * (2 * E + V + 1) + 16 + kKeys * (3 * E + 3 * V + 2 * kRows) + V);
    T *q = scratch.take(L * E), *g = scratch.take(L * V), *dots = scratch.take(L),
      *dq = scratch.take(L * E), *k = scratch.take(kKeys * E), *k_turned = scratch.take(E * kKeys),
      *dk = scratch.take(kKeys * E), *v = scratch.take(kKeys * V),
      *v_turned = scratch.take(V * kKeys), *dv = scratch.take(kKeys * V),
      *scores = scratch.take(kRows * kKeys), *slopes = scratch.take(kRows * kKeys),
      *row = scratch.take(V);
    auto run_item = [&](int64_t group, int64_t index, int64_t part) {
      if (parts > 1) dq = static_cast<T*>(query_grads.data()) + (index * parts + part) * L * E;
      query.load(query.item(index), 0, L, q, E);
      out_grad.load(out_grad.item(index), 0, L, g, V);
      for (int64_t i = 0; i < L; ++i) {
        out.load(out.item(index), i, 1, row, V);
        dots[i] = loop.dot(row, g + i * V, V);
      }
      std::fill_n(dq, L * E, T(0));
      const T* sums = logsumexp.data<T>() + index * L;
      for (int64_t tile = key_tiles * part / parts; tile < key_tiles * (part + 1) / parts; ++tile) {
        int64_t j = tile * kKeys, width = std::min(kKeys, S - j);
        key.load(key.item(index), j, width, k, E);
        std::fill(k + width * E, k + padded(width) * E, T(0));
        loop.transpose(k, E, padded(width), E, T(a.scale), k_turned, kKeys);
        value.load(value.item(index), j, width, v, V);
        std::fill(v + width * V, v + padded(width) * V, T(0));
        loop.transpose(v, V, padded(width), V, T(1), v_turned, kKeys);
        std::fill_n(dk, width * E, T(0));
        std::fill_n(dv, width * V, T(0));
        for (int64_t i = a.is_causal ? std::min(j, L) : 0; i < L;) {
          Strip strip(a, i, L, j, width);
          int64_t w = strip.keys.width, r = i, rows = strip.rows;
          i += rows;
          const T *q_rows = q + r * E, *g_rows = g + r * V;
          loop.multiply(rows, padded(w), E, q_rows, E, 1, k_turned, kKeys, scores, kKeys, false);
          loop.multiply(rows, padded(w), V, g_rows, V, 1, v_turned, kKeys, slopes, kKeys, false);
          mask.apply(index, r, j, scores, kKeys, rows, w);
          drop.apply(index, r, j, slopes, rows, w);
          loop.score_grads(scores, slopes, kKeys, rows, strip.keys, sums + r, dots + r);
          if (grads.mask.defined())
            for (int64_t n = 0; n < rows; ++n)
              loop.add(groups.sums(group, index, r + n) + j, slopes + n * kKeys, w);
          if (grad_value) {
            drop.apply(index, r, j, scores, rows, w);
            loop.multiply(w, V, rows, scores, 1, kKeys, g_rows, V, dv, V, true);
          }
          if (grad_key) loop.multiply(w, E, rows, slopes, 1, kKeys, q_rows, E, dk, E, true);
          if (grad_query) loop.multiply(rows, E, w, slopes, kKeys, 1, k, E, dq + r * E, E, true);
        }
        if (grad_key) loop.scale(dk, T(a.scale), width * E);
        for (int64_t n = 0; n < width; ++n) {
          if (grad_key) grad_key->store(grad_key->item(index), j + n, dk + n * E);
          if (grad_value) grad_value->store(grad_value->item(index), j + n, dv + n * V);
        }
      }
      if (!grad_query || parts > 1) return;
      loop.scale(dq, T(a.scale), L * E);
      for (int64_t i = 0; i < L; ++i) grad_query->store(grad_query->item(index), i, dq + i * E);
    };
    for (int64_t t = begin; t < end; ++t)
      for (int64_t index : groups.items(t / parts)) run_item(t / parts, index, t % parts);
  };
  parallel_for(0, groups.size() * parts, grain(group_work / double(parts)), run);
  if (!grad_query || parts == 1) return;
  parallel_for(0, items * L, grain(double(parts * E)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t index = i / L, r = i % L;
      T* first = static_cast<T*>(query_grads.data()) + (index * parts * L + r) * E;
      for (int64_t p = 1; p < parts; ++p) loop.add(first, first + p * L * E, E);
      loop.scale(first, T(a.scale), E);
      grad_query->store(grad_query->item(index), r, first);
    }
  });
}

}  // namespace

void attention_cpu(const Attention& attention, const Tensor& output, const Tensor& logsumexp) {
  if (attention_of_one_query(attention, output, logsumexp) ||
      attention_of_bfloat16(attention, output, logsumexp))
    return;
  if (logsumexp.dtype() == DType::float64) forward<double>(attention, output, logsumexp);
  else forward<float>(attention, output, logsumexp);
}

void attention_backward_cpu(const Attention& attention, const Tensor& grad, const Tensor& output,
                            const Tensor& logsumexp, const AttentionGrads& grads) {
  auto run = logsumexp.dtype() == DType::float64 ? backward<double> : backward<float>;
  run(attention, grad, output, logsumexp, grads);
}

}  // namespace rushlight

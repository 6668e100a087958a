// Defines attention on the CPU, tile by tile. Dao et al., "FlashAttention: fast and
// memory-efficient exact attention with IO-awareness", 2022, algorithms 1 and 4; Dao,
// "FlashAttention-2", 2023.
//
// Rows of any layout and dtype are brought into tiles of the type that attention_isa.cpp computes
// in. Threads share queries of batch items forward, and batch items (or ranges of keys, when there
// are few) backward; items that share the gradient of a mask follow each other in one thread.
#include "core/base/ceil_div.h"
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
  while (queries > kRows && a.items() * ceil_div(L, queries) < 4 * num_threads()) queries /= 2;
  const int64_t tiles = ceil_div(L, queries);
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

// One call of attention_backward_cpu.
template <class T>
class Backward {
 public:
  Backward(const Attention& attention, const Tensor& grad, const Tensor& output,
           const Tensor& logsumexp, const AttentionGrads& grads)
      : a_(attention),
        L_(a_.queries()),
        S_(a_.keys()),
        E_(padded_features(a_.query)),
        V_(padded_features(a_.value)),
        query_(a_.query, a_.batch),
        key_(a_.key, a_.batch),
        value_(a_.value, a_.batch),
        out_(output, a_.batch),
        out_grad_(grad, a_.batch),
        grad_query_(rows_of(grads.query)),
        grad_key_(rows_of(grads.key)),
        grad_value_(rows_of(grads.value)),
        has_grad_mask_(grads.mask.defined()),
        logsumexp_(logsumexp.data<T>()),
        mask_(a_),
        drop_(a_),
        groups_(a_, grads.mask),
        group_work_(work(a_) * double(a_.items()) / double(groups_.size())),
        parts_(count_parts()),
        query_grads_(size_t(parts_ > 1 ? a_.items() * parts_ * L_ * E_ : 0) * sizeof(T)) {}

  void run() {
    parallel_for(0, groups_.size() * parts_, grain(group_work_ / double(parts_)),
                 [&](int64_t begin, int64_t end) {
                   Tiles tiles(L_, E_, V_);
                   for (int64_t t = begin; t < end; ++t)
                     for (int64_t index : groups_.items(t / parts_))
                       add_item(tiles, t / parts_, index, t % parts_);
                 });
    if (grad_query_ && parts_ > 1) add_parts();
  }

 private:
  // What one thread computes in: of all queries, of a tile of keys, and of both.
  struct Tiles {
    Tiles(int64_t L, int64_t E, int64_t V)
        : scratch(L * (2 * E + V + 1) + 16 + kKeys * (3 * E + 3 * V + 2 * kRows) + V) {
      for (T** queries : {&q, &dq}) *queries = scratch.take(L * E);
      for (T** keys : {&k, &k_turned, &dk}) *keys = scratch.take(kKeys * E);
      for (T** values : {&v, &v_turned, &dv}) *values = scratch.take(kKeys * V);
      for (T** both : {&scores, &slopes}) *both = scratch.take(kRows * kKeys);
      g = scratch.take(L * V);
      dots = scratch.take(L);
      row = scratch.take(V);
    }
    Scratch<T> scratch;
    T *q, *dq, *g, *dots, *row;
    T *k, *k_turned, *dk, *v, *v_turned, *dv;
    T *scores, *slopes;
  };

  std::optional<Rows<T>> rows_of(const Tensor& grad) const {
    if (!grad.defined()) return std::nullopt;
    return Rows<T>(grad, a_.batch);
  }

  int64_t key_tiles() const { return ceil_div(S_, kKeys); }
  // Ranges of keys that have a gradient of the queries each, which are added up afterwards.
  int64_t count_parts() const {
    if (groups_.size() >= num_threads() || group_work_ <= kMultiplicationsPerThread) return 1;
    return std::clamp<int64_t>(num_threads() / groups_.size(), 1,
                               std::max<int64_t>(1, key_tiles()));
  }
  T* query_grads(int64_t index, int64_t part) {
    return static_cast<T*>(query_grads_.data()) + (index * parts_ + part) * L_ * E_;
  }

  void add_item(Tiles& t, int64_t group, int64_t index, int64_t part) {
    if (parts_ > 1) t.dq = query_grads(index, part);
    query_.load(query_.item(index), 0, L_, t.q, E_);
    out_grad_.load(out_grad_.item(index), 0, L_, t.g, V_);
    for (int64_t i = 0; i < L_; ++i) {
      out_.load(out_.item(index), i, 1, t.row, V_);
      t.dots[i] = loop_.dot(t.row, t.g + i * V_, V_);
    }
    std::fill_n(t.dq, L_ * E_, T(0));
    for (int64_t tile = key_tiles() * part / parts_; tile < key_tiles() * (part + 1) / parts_;
         ++tile)
      add_keys(t, group, index, tile * kKeys);
    if (!grad_query_ || parts_ > 1) return;
    loop_.scale(t.dq, T(a_.scale), L_ * E_);
    for (int64_t i = 0; i < L_; ++i) grad_query_->store(grad_query_->item(index), i, t.dq + i * E_);
  }

  // The gradients of the keys from j on, and what they add to those of the queries.
  void add_keys(Tiles& t, int64_t group, int64_t index, int64_t j) {
    int64_t width = std::min(kKeys, S_ - j);
    load_turned(key_, index, j, width, E_, T(a_.scale), t.k, t.k_turned);
    load_turned(value_, index, j, width, V_, T(1), t.v, t.v_turned);
    std::fill_n(t.dk, width * E_, T(0));
    std::fill_n(t.dv, width * V_, T(0));
    for (int64_t i = a_.is_causal ? std::min(j, L_) : 0; i < L_;) {
      Strip strip(a_, i, L_, j, width);
      add_strip(t, group, index, i, j, strip);
      i += strip.rows;
    }
    if (grad_key_) loop_.scale(t.dk, T(a_.scale), width * E_);
    for (int64_t n = 0; n < width; ++n) {
      if (grad_key_) grad_key_->store(grad_key_->item(index), j + n, t.dk + n * E_);
      if (grad_value_) grad_value_->store(grad_value_->item(index), j + n, t.dv + n * V_);
    }
  }

  void load_turned(const Rows<T>& from, int64_t index, int64_t first, int64_t width,
                   int64_t features, T scale, T* to, T* turned) {
    from.load(from.item(index), first, width, to, features);
    std::fill(to + width * features, to + padded(width) * features, T(0));
    loop_.transpose(to, features, padded(width), features, scale, turned, kKeys);
  }

  // What the queries of a strip, from r on, and the keys from j on add to the gradients.
  void add_strip(Tiles& t, int64_t group, int64_t index, int64_t r, int64_t j, const Strip& strip) {
    int64_t rows = strip.rows, w = strip.keys.width;
    const T *q = t.q + r * E_, *g = t.g + r * V_;
    loop_.multiply(rows, padded(w), E_, q, E_, 1, t.k_turned, kKeys, t.scores, kKeys, false);
    loop_.multiply(rows, padded(w), V_, g, V_, 1, t.v_turned, kKeys, t.slopes, kKeys, false);
    mask_.apply(index, r, j, t.scores, kKeys, rows, w);
    drop_.apply(index, r, j, t.slopes, rows, w);
    loop_.score_grads(t.scores, t.slopes, kKeys, rows, strip.keys, logsumexp_ + index * L_ + r,
                      t.dots + r);
    if (has_grad_mask_)
      for (int64_t n = 0; n < rows; ++n)
        loop_.add(groups_.sums(group, index, r + n) + j, t.slopes + n * kKeys, w);
    if (grad_value_) {
      drop_.apply(index, r, j, t.scores, rows, w);
      loop_.multiply(w, V_, rows, t.scores, 1, kKeys, g, V_, t.dv, V_, true);
    }
    if (grad_key_) loop_.multiply(w, E_, rows, t.slopes, 1, kKeys, q, E_, t.dk, E_, true);
    if (grad_query_)
      loop_.multiply(rows, E_, w, t.slopes, kKeys, 1, t.k, E_, t.dq + r * E_, E_, true);
  }

  void add_parts() {
    parallel_for(0, a_.items() * L_, grain(double(parts_ * E_)), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t index = i / L_, r = i % L_;
        T* first = query_grads(index, 0) + r * E_;
        for (int64_t p = 1; p < parts_; ++p) loop_.add(first, first + p * L_ * E_, E_);
        loop_.scale(first, T(a_.scale), E_);
        grad_query_->store(grad_query_->item(index), r, first);
      }
    });
  }

  const AttentionLoopsOf<T>& loop_ = loops<T>();
  const Attention& a_;
  const int64_t L_, S_, E_, V_;
  Rows<T> query_, key_, value_, out_, out_grad_;
  std::optional<Rows<T>> grad_query_, grad_key_, grad_value_;
  bool has_grad_mask_;
  const T* logsumexp_;
  Mask<T> mask_;
  Drop<T> drop_;
  Groups<T> groups_;
  double group_work_;  // in multiplications
  int64_t parts_;
  CpuBuffer query_grads_;
};

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
  if (logsumexp.dtype() == DType::float64)
    Backward<double>(attention, grad, output, logsumexp, grads).run();
  else Backward<float>(attention, grad, output, logsumexp, grads).run();
}

}  // namespace rushlight

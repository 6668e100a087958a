// Defines attention of one query, as in decoding with a cache of keys: over keys and values where
// they lie. Tiles would copy and turn what is read only once.
#include <cmath>

#include "core/ops/attention/attention_tiles.h"
#include "core/ops/matmul/row_products.h"

namespace rushlight {

ISA_TABLES(RowProductLoops, row_product_loops)

namespace {

using namespace attention_cpu_detail;

template <class T>
const RowProducts<T>& products_with(DType matrix) {
  const RowProductLoops& loops = active(row_product_loops_sets);
  if constexpr (std::is_same_v<T, double>) return loops.f64;
  else if (matrix == DType::float16) return loops.f16;
  else return matrix == DType::bfloat16 ? loops.bf16 : loops.f32;
}

bool has_rows(const Tensor& t) {
  return t.stride(-1) == 1 && t.size(-1) > 0 && t.size(-1) % kRowProductColumns == 0;
}

template <class T>
void attend(const Attention& a, const Tensor& output, const Tensor& logsumexp) {
  const AttentionLoopsOf<T>& loop = loops<T>();
  const RowProducts<T>& product = products_with<T>(a.query.dtype());
  const int64_t S = a.keys(), E = a.query.size(-1), V = a.value.size(-1);
  const Rows<T> query(a.query, a.batch), key(a.key, a.batch), value(a.value, a.batch),
      out(output, a.batch);
  const Mask<T> mask(a);
  const int64_t seen = a.is_causal ? 1 : S;
  parallel_for(0, a.items(), grain(work(a)), [&](int64_t begin, int64_t end) {
    Scratch<T> scratch(padded(E) + padded(V) + padded(S));
    T *q = scratch.take(E), *o = scratch.take(V), *scores = scratch.take(S);
    for (int64_t index = begin; index < end; ++index) {
      T largest = -std::numeric_limits<T>::infinity(), total = 0;
      query.load(query.item(index), 0, 1, q, E);
      loop.scale(q, T(a.scale), E);
      std::fill_n(o, V, T(0));
      product.dots(q, key.item(index), a.key.stride(-2), seen, E, scores);
      mask.apply(index, 0, 0, scores, S, 1, seen);
      loop.exponentials(scores, S, 1, {seen, seen, 0}, &largest, &total, o, V, V);
      product.add_rows(scores, value.item(index), a.value.stride(-2), seen, V, o);
      loop.scale(o, total == 0 ? T(0) : 1 / total, V);
      out.store(out.item(index), 0, o);
      logsumexp.data<T>()[index] = largest + std::log(total);
    }
  });
}

}  // namespace

bool attention_of_one_query(const Attention& a, const Tensor& output, const Tensor& logsumexp) {
  if (a.queries() > 1 || a.keys() == 0 || a.dropout_p != 0 || !has_rows(a.key) ||
      !has_rows(a.value))
    return false;
  (logsumexp.dtype() == DType::float64 ? attend<double> : attend<float>)(a, output, logsumexp);
  return true;
}

}  // namespace rushlight

// Defines attention of bfloat16 on processors that multiply tiles of bfloat16: oneDNN multiplies,
// and the scores in between are float32. Otherwise as attention_cpu.cpp, whose tiles are smaller.
#include <cmath>

#include "core/base/ceil_div.h"
#include "core/device/cpu_features.h"
#include "core/device/onednn.h"
#include "core/ops/attention/attention_tiles.h"

namespace rushlight {
namespace {

using namespace attention_cpu_detail;

constexpr int64_t kFewest = 32;     // queries and keys that are worth the calls
constexpr int64_t kStep = 64;       // between sizes of tiles
constexpr int64_t kMostRows = 256;  // of a tile of scores
constexpr int64_t kMostKeys = 512;
constexpr int64_t kMostCausal = 128;  // rows and keys, where the diagonal passes through

// How many a tile has of `n` rows or keys: few sizes, as each takes oneDNN milliseconds once.
int64_t tile_size(int64_t n, int64_t most) {
  int64_t tiles = ceil_div(n, most);
  return ceil_div(n, tiles * kStep) * kStep;
}

void multiply(const onednn::Matmul& product, const void* a, const void* b, void* c) {
  ASSERT(onednn::matmul(product, a, b, nullptr, c));
}

// Rows of a tensor, where they lie or copied into a tile with zeros after them.
struct TileRows {
  const BFloat16* data;
  int64_t ld;
};

class Operand {
 public:
  Operand(const Tensor& t, ShapeRef batch)
      : rows_(t, batch), columns_(t.size(-1)), ld_(t.size(-2) == 1 ? columns_ : t.stride(-2)) {
    is_plain_ = (columns_ == 1 || t.stride(-1) == 1) && ld_ >= columns_;
  }
  // `count` rows of batch item `index`; `tile` has room for `size` of them.
  TileRows read(int64_t index, int64_t first, int64_t count, int64_t size, BFloat16* tile) const {
    const char* item = rows_.item(index);
    if (is_plain_ && count == size)
      return {reinterpret_cast<const BFloat16*>(item) + first * ld_, ld_};
    rows_.load(item, first, count, tile, columns_);
    std::fill_n(tile + count * columns_, (size - count) * columns_, BFloat16());
    return {tile, columns_};
  }

 private:
  Rows<BFloat16> rows_;
  int64_t columns_, ld_;
  bool is_plain_;
};

}  // namespace

bool attention_of_bfloat16(const Attention& a, const Tensor& output, const Tensor& logsumexp) {
  const int64_t L = a.queries(), S = a.keys(), E = a.query.size(-1), V = a.value.size(-1);
  if (a.query.dtype() != DType::bfloat16 || a.dropout_p != 0 || std::min(L, S) < kFewest ||
      std::min(E, V) < kAttentionLanes || V % kAttentionLanes != 0 || active_isa() != Isa::v4 ||
      !onednn::has_bfloat16_tiles())
    return false;
  const AttentionLoopsOf<float>& loop = loops<float>();
  const Operand query(a.query, a.batch), key(a.key, a.batch), value(a.value, a.batch);
  const Rows<float> out(output, a.batch);
  const Mask<float> mask(a);
  const CastLoop shorten = cast_loop(DType::float32, DType::bfloat16);
  int64_t most = a.is_causal ? kMostCausal : kMostRows;
  while (most > 64 && a.items() * ceil_div(L, most) < 4 * num_threads()) most /= 2;
  const int64_t M = tile_size(L, most), N = tile_size(S, a.is_causal ? kMostCausal : kMostKeys);
  const int64_t tiles = ceil_div(L, M);

  onednn::Matmul scoring{DType::bfloat16, DType::float32, 1, M, N, E, {}, {},
                         {0, N, 1},       float(a.scale)};
  onednn::Matmul weighting{
      DType::bfloat16, DType::float32, 1, M, V, N, {0, N, 1}, {}, {0, V, 1}, 1, 1};
  auto attend = [&](int64_t begin, int64_t end) {
    Scratch<float> floats(M * (N + V + 2) + 64);
    Scratch<BFloat16> halves(M * (E + N) + N * (E + V) + 64);
    float *scores = floats.take(M * N), *o = floats.take(M * V), *largest = floats.take(M),
          *total = floats.take(M);
    BFloat16 *q = halves.take(M * E), *k = halves.take(N * E), *v = halves.take(N * V),
             *weights = halves.take(M * N);
    onednn::Matmul score = scoring, weigh = weighting;
    for (int64_t t = begin; t < end; ++t) {
      int64_t index = t / tiles, first = t % tiles * M, rows = std::min(M, L - first);
      TileRows asked = query.read(index, first, rows, M, q);
      std::fill_n(o, M * V, 0.0f);
      std::fill_n(largest, rows, -std::numeric_limits<float>::infinity());
      std::fill_n(total, rows, 0.0f);
      int64_t last_key = a.is_causal ? std::min(S, first + rows) : S;
      for (int64_t j = 0; j < last_key; j += N) {
        int64_t width = std::min(N, S - j);
        TileRows against = key.read(index, j, width, N, k),
                 given = value.read(index, j, width, N, v);
        score.a = {0, asked.ld, 1};
        score.b = {0, 1, against.ld};
        multiply(score, asked.data, against.data, scores);
        mask.apply(index, first, j, scores, N, rows, width);
        VisibleKeys seen{width, a.is_causal ? first - j + 1 : width, a.is_causal};
        loop.exponentials(scores, N, rows, seen, largest, total, o, V, V);
        for (int64_t r = 0; r < rows && width < N; ++r)
          std::fill_n(scores + r * N + width, N - width, 0.0f);
        shorten(scores, weights, rows * N);
        weigh.b = {0, given.ld, 1};
        multiply(weigh, weights, given.data, o);
      }
      float* sums = logsumexp.data<float>() + index * L + first;
      for (int64_t r = 0; r < rows; ++r) {
        loop.scale(o + r * V, total[r] == 0 ? 0 : 1 / total[r], V);
        out.store(out.item(index), first + r, o + r * V);
        sums[r] = largest[r] + std::log(total[r]);
      }
    }
  };
  parallel_for(0, a.items() * tiles, grain(work(a) / double(tiles)), attend);
  return true;
}

}  // namespace rushlight

// Defines the draws that choose among numbered things: permutations, and categories by weight.
//
// Both are made on the CPU for all devices: a permutation is a chain of swaps, and weights must be
// read in any case, to refuse those that are wrong.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/device/threads.h"
#include "core/ops/random/random_draw.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

// Fisher and Yates: each place in turn is swapped with a random one that is not before it.
template <class Index>
void shuffle(Index* order, const uint64_t* random, int64_t n) {
  std::iota(order, order + n, Index(0));
  for (int64_t i = 0; i < n; ++i) {
    auto ahead = static_cast<unsigned __int128>(random[i]) * uint64_t(n - i) >> 64;
    std::swap(order[i], order[i + int64_t(ahead)]);
  }
}

// Writes the running sums of the weights of a row, or refuses them.
void add_up(const double* weight, int64_t columns, int64_t row, double* sums) {
  double sum = 0;
  bool right = true;
  for (int64_t c = 0; c < columns; ++c) {
    right &= weight[c] >= 0 && weight[c] < INFINITY;
    sums[c] = sum += weight[c];
  }
  if (!right) {
    const double* wrong =
        std::find_if(weight, weight + columns, [](double w) { return !(w >= 0 && w < INFINITY); });
    CHECK(false, "probability tensor contains either `inf`, `nan` or element < 0: ", *wrong,
          " in row ", row);
  }
  CHECK(sum > 0, "invalid multinomial distribution (sum of probabilities <= 0) in row ", row);
  CHECK(sum < INFINITY, "invalid multinomial distribution (infinite sum of probabilities) in row ",
        row);
}

// The column whose part of the sum holds a random point.
void choose_again_and_again(const std::vector<double>& sums, const double* drawn, int64_t count,
                            int64_t* to) {
  auto last = std::lower_bound(sums.begin(), sums.end(), sums.back()) - sums.begin();
  for (int64_t i = 0; i < count; ++i) {
    auto found = std::upper_bound(sums.begin(), sums.end(), drawn[i] * sums.back());
    to[i] = std::min(last, found - sums.begin());
  }
}

struct Clock {
  double rings;
  int64_t column;
  friend bool operator<(const Clock& a, const Clock& b) { return a.rings < b.rings; }
};

// The columns whose exponential clocks, as fast as their weight, ring first.
void choose_once(const double* weight, const double* drawn, int64_t row, int64_t count,
                 std::vector<Clock>& clocks, int64_t* to) {
  int64_t possible = 0;
  for (size_t c = 0; c < clocks.size(); ++c) {
    possible += weight[c] > 0;
    clocks[c] = {weight[c] > 0 ? drawn[c] / weight[c] : INFINITY, int64_t(c)};
  }
  CHECK(possible >= count,
        "invalid multinomial distribution (with replacement=False, not enough non-negative "
        "category to sample): ",
        possible, " in row ", row, " for ", count, " samples");
  std::partial_sort(clocks.begin(), clocks.begin() + count, clocks.end());
  for (int64_t i = 0; i < count; ++i) to[i] = clocks[size_t(i)].column;
}

}  // namespace

Tensor permutation(int64_t n, Generator* generator) {
  Tensor words = empty(Shape{n}, DType::int64);
  draw_integers(words, INT64_MIN, INT64_MAX, generator, true);
  const uint64_t* random = words.data<uint64_t>();
  // Most of the time goes into waiting for memory: small numbers stay in the cache for longer.
  bool is_small = n <= int64_t(1) << 31;
  Tensor order = empty(Shape{n}, is_small ? DType::int32 : DType::int64);
  if (is_small) shuffle(order.data<int32_t>(), random, n);
  else shuffle(order.data<int64_t>(), random, n);
  return order;
}

Tensor draw_categories(const Tensor& weights, int64_t count, bool replacement,
                       Generator* generator) {
  Shape sizes = weights.sizes();
  sizes.back() = count;
  if (weights.device().is_meta()) return empty(sizes, DType::int64, weights.device());
  Tensor table = to_contiguous(to_dtype(on_cpu(weights), DType::float64));
  int64_t columns = weights.size(-1), rows = weights.dim() == 2 ? weights.size(0) : 1;
  Tensor out = empty(sizes, DType::int64);
  Tensor random = empty(Shape{rows, replacement ? count : columns}, DType::float64);
  if (replacement) draw_uniform(random, 0, 1, generator);
  else draw_exponential(random, 1, generator);
  int64_t grain = 16384 / (columns + random.size(1)) + 1;
  parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    std::vector<double> sums(static_cast<size_t>(columns));
    std::vector<Clock> clocks(static_cast<size_t>(replacement ? 0 : columns));
    for (int64_t r = begin; r < end; ++r) {
      const double* weight = table.data<double>() + r * columns;
      const double* drawn = random.data<double>() + r * random.size(1);
      int64_t* to = out.data<int64_t>() + r * count;
      add_up(weight, columns, r, sums.data());
      if (replacement) choose_again_and_again(sums, drawn, count, to);
      else choose_once(weight, drawn, r, count, clocks, to);
    }
  });
  if (weights.device().is_cpu()) return out;
  Tensor there = empty(sizes, DType::int64, weights.device());
  copy_into(there, out);
  return there;
}

}  // namespace rushlight

// Owns the draws: filling a tensor with random numbers of a distribution. Without a generator they
// take from the default one.
#pragma once

#include <algorithm>

#include "core/tensor/generator.h"

namespace rushlight {

// The least and the largest number of an integral dtype or bool that an int64 holds.
std::pair<int64_t, int64_t> integer_range(DType dtype);
// How many binary digits a floating-point dtype has.
int float_digits(DType dtype);

// Each fills `out`, whatever its layout, and returns it.
Tensor draw_uniform(const Tensor& out, double from, double to, Generator* generator);
Tensor draw_normal(const Tensor& out, double mean, double std, Generator* generator);
Tensor draw_log_normal(const Tensor& out, double mean, double std, Generator* generator);
// Neither 0 nor infinite, whatever the rate and the dtype.
Tensor draw_exponential(const Tensor& out, double rate, Generator* generator);
Tensor draw_cauchy(const Tensor& out, double median, double sigma, Generator* generator);
// 1, 2, ...; at most what the dtype holds.
Tensor draw_geometric(const Tensor& out, double p, Generator* generator);
// From low to high - 1, or to high itself when it is `included`.
Tensor draw_integers(const Tensor& out, int64_t low, int64_t high, Generator* generator,
                     bool included = false);
// One with probability `chances`, which broadcasts to out.
Tensor draw_bernoulli(const Tensor& out, const Tensor& chances, Generator* generator);

// A copy on the CPU, or the tensor itself.
Tensor on_cpu(const Tensor& tensor);

// 0 to n - 1 in random order.
Tensor permutation(int64_t n, Generator* generator);
// Shape (count,) or (rows, count): column numbers by the weights in the rows of `weights`.
Tensor draw_categories(const Tensor& weights, int64_t count, bool replacement,
                       Generator* generator);

// What elements are multiplied by that dropout keeps.
inline double kept_scale(double p) { return p == 1 ? 0 : 1 / (1 - p); }
// Dropout keeps what has a random word of at least this.
inline uint32_t dropout_threshold(double p) { return uint32_t(std::min(p * 0x1p32, 0x1p32 - 1)); }
// input with elements dropped (zero) with probability p < 1 and the others scaled, and the mask of
// those kept; both in the layout of a dense input.
std::pair<Tensor, Tensor> draw_dropout(const Tensor& input, double p, Generator* generator);

}  // namespace rushlight

// oneDNN through our wrapper against plain loops: matrix products and convolutions, both layouts.
#include "core/device/onednn.h"

#include <cmath>
#include <limits>
#include <random>
#include <thread>
#include <vector>

#include "core/device/threads.h"
#include "core/tests/device/fork.h"
#include "core/tests/device/library_path.h"
#include "core/tests/expect.h"

using namespace rushlight;
using onednn::Convolution;
using onednn::ImageLayout;
using onednn::Matmul;
using onednn::MatrixStrides;

namespace {

std::mt19937 generator(0);

float as_float(float value) { return value; }
float as_float(BFloat16 value) { return to_float(value); }
void assign(float& to, float value) { to = value; }
void assign(BFloat16& to, float value) { to = to_bfloat16(value); }

// Small integers: sums of them are exact in float32, and are rounded once to bfloat16.
template <class T>
std::vector<T> random_integers(int64_t count) {
  std::uniform_int_distribution<int> integers(-3, 3);
  std::vector<T> values(count);
  for (T& value : values) assign(value, float(integers(generator)));
  return values;
}

template <class T>
std::vector<T> not_numbers(int64_t count) {
  std::vector<T> values(count);
  for (T& value : values) assign(value, std::numeric_limits<float>::quiet_NaN());
  return values;
}

template <class T>
bool same(T actual, float expected) {
  T rounded;
  assign(rounded, expected);
  return as_float(actual) == as_float(rounded);
}

// ---- matrix products ----------------------------------------------------------------------------

template <class T>
void matmul_matches_a_plain_loop(int64_t batch, int64_t m, int64_t n, int64_t k, bool trans_a,
                                 bool trans_b, bool has_bias, bool one_b) {
  MatrixStrides a_strides =
      trans_a ? MatrixStrides{m * k, 1, m} : MatrixStrides{m * (k + 2), k + 2, 1};
  MatrixStrides b_strides = trans_b ? MatrixStrides{n * k, 1, k} : MatrixStrides{n * k, n, 1};
  if (one_b) b_strides.batch = 0;
  MatrixStrides c_strides = {m * (n + 1), n + 1, 1};
  std::vector<T> a = random_integers<T>(batch * m * (k + 2)), b = random_integers<T>(batch * n * k);
  std::vector<T> bias = random_integers<T>(n), c = not_numbers<T>(batch * m * (n + 1));
  Matmul product{dtype_of<T>, dtype_of<T>, batch, m, n, k, a_strides, b_strides, c_strides};
  expect(onednn::matmul(product, a.data(), b.data(), has_bias ? bias.data() : nullptr, c.data()));
  auto at = [](const std::vector<T>& values, MatrixStrides s, int64_t i, int64_t j, int64_t l) {
    return as_float(values[i * s.batch + j * s.row + l * s.column]);
  };
  for (int64_t i = 0; i < batch; ++i) {
    for (int64_t row = 0; row < m; ++row) {
      for (int64_t column = 0; column < n; ++column) {
        float sum = has_bias ? as_float(bias[column]) : 0;
        for (int64_t l = 0; l < k; ++l) {
          sum += at(a, a_strides, i, row, l) * at(b, b_strides, i, l, column);
        }
        expect(same(c[i * c_strides.batch + row * c_strides.row + column], sum));
      }
      expect(std::isnan(as_float(c[i * c_strides.batch + row * c_strides.row + n])));
    }
  }
}

template <class T>
void check_matmul() {
  for (bool trans_a : {false, true}) {
    for (bool trans_b : {false, true}) {
      for (bool has_bias : {false, true}) {
        matmul_matches_a_plain_loop<T>(1, 17, 33, 20, trans_a, trans_b, has_bias, false);
        matmul_matches_a_plain_loop<T>(3, 8, 5, 16, trans_a, trans_b, has_bias, false);
        matmul_matches_a_plain_loop<T>(3, 8, 5, 16, trans_a, trans_b, has_bias, true);
        matmul_matches_a_plain_loop<T>(1, 1, 30, 20, trans_a, trans_b, has_bias, false);
        matmul_matches_a_plain_loop<T>(2, 30, 1, 20, trans_a, trans_b, has_bias, false);
        matmul_matches_a_plain_loop<T>(1, 1, 1, 1, trans_a, trans_b, has_bias, false);
      }
    }
  }
}

void half_inputs_may_give_a_float_result() {
  std::vector<BFloat16> a = random_integers<BFloat16>(40 * 500), b = random_integers<BFloat16>(500);
  std::vector<float> c(40);
  Matmul product{DType::bfloat16, DType::float32, 1, 40, 1, 500, {0, 500, 1}, {0, 1, 1}, {0, 1, 1}};
  expect(onednn::matmul(product, a.data(), b.data(), nullptr, c.data()));
  for (int64_t i = 0; i < 40; ++i) {
    float sum = 0;
    for (int64_t l = 0; l < 500; ++l) sum += as_float(a[i * 500 + l]) * as_float(b[l]);
    expect(c[i] == sum);
  }
}

void what_has_no_fast_code_is_left_to_the_caller() {
  std::vector<double> a(4), b(4), c(4, 7.0);
  Matmul doubles{DType::float64, DType::float64, 1, 2, 2, 2, {0, 2, 1}, {0, 2, 1}, {0, 2, 1}};
  expect(!onednn::matmul(doubles, a.data(), b.data(), nullptr, c.data()) && c[0] == 7.0);
  std::vector<float> x(100), y(100);
  Matmul strided{DType::float32, DType::float32, 1, 2, 2, 2, {0, 8, 2}, {0, 2, 1}, {0, 2, 1}};
  expect(!onednn::matmul(strided, x.data(), x.data(), nullptr, y.data()));
  Matmul expanded{DType::float32, DType::float32, 1, 2, 2, 2, {0, 0, 1}, {0, 2, 1}, {0, 2, 1}};
  expect(!onednn::matmul(expanded, x.data(), x.data(), nullptr, y.data()));
  Matmul windows{DType::float32, DType::float32, 3, 2, 2, 4, {2, 4, 1}, {0, 2, 1}, {4, 2, 1}};
  expect(!onednn::matmul(windows, x.data(), x.data(), nullptr, y.data()));
}

// ---- convolutions -------------------------------------------------------------------------------

// An array of logical dims (N, C, D, H, W), in either layout.
template <class T>
struct Image {
  int64_t channels;
  std::array<int64_t, 3> size;
  ImageLayout layout;
  std::vector<T> values;

  int64_t position(int64_t n, int64_t c, int64_t z, int64_t y, int64_t x) const {
    auto [depth, height, width] = size;
    return layout == ImageLayout::channels_first
               ? (((n * channels + c) * depth + z) * height + y) * width + x
               : (((n * depth + z) * height + y) * width + x) * channels + c;
  }
};

// Fills the dims that a convolution does not use with those of a point.
std::array<int64_t, 3> three(const Convolution& conv, const std::array<int64_t, 3>& values,
                             int64_t fill) {
  std::array<int64_t, 3> result{fill, fill, fill};
  for (int i = 0; i < conv.dims; ++i) result[3 - conv.dims + i] = values[i];
  return result;
}

// Calls visit(input position, weight position, output position) for every product.
template <class T, class Visit>
void walk(const Convolution& conv, const Image<T>& input, const Image<T>& weight,
          const Image<T>& output, Visit visit) {
  auto stride = three(conv, conv.stride, 1), dilation = three(conv, conv.dilation, 1);
  auto padding = three(conv, conv.padding_before, 0);
  int64_t group_in = conv.in_channels / conv.groups, group_out = conv.out_channels / conv.groups;
  auto inside = [&](int64_t i, int d) { return i >= 0 && i < input.size[d]; };
  for (int64_t n = 0; n < conv.batch; ++n)
    for (int64_t o = 0; o < conv.out_channels; ++o)
      for (int64_t c = 0; c < group_in; ++c)
        for (int64_t z = 0; z < output.size[0]; ++z)
          for (int64_t y = 0; y < output.size[1]; ++y)
            for (int64_t x = 0; x < output.size[2]; ++x)
              for (int64_t kz = 0; kz < weight.size[0]; ++kz)
                for (int64_t ky = 0; ky < weight.size[1]; ++ky)
                  for (int64_t kx = 0; kx < weight.size[2]; ++kx) {
                    int64_t iz = z * stride[0] + kz * dilation[0] - padding[0];
                    int64_t iy = y * stride[1] + ky * dilation[1] - padding[1];
                    int64_t ix = x * stride[2] + kx * dilation[2] - padding[2];
                    if (!inside(iz, 0) || !inside(iy, 1) || !inside(ix, 2)) continue;
                    visit(input.position(n, o / group_out * group_in + c, iz, iy, ix),
                          weight.position(o, c, kz, ky, kx), output.position(n, o, z, y, x));
                  }
}

template <class T>
bool all_same(const std::vector<T>& actual, const std::vector<float>& expected) {
  for (size_t i = 0; i < actual.size(); ++i) {
    if (!same(actual[i], expected[i])) return false;
  }
  return true;
}

template <class T>
void convolution_matches_a_plain_loop(Convolution conv, ImageLayout layout,
                                      ImageLayout weight_layout) {
  conv.dtype = dtype_of<T>;
  conv.layout = layout;
  conv.weight_layout = weight_layout;
  std::array<int64_t, 3> out_size{};
  for (int i = 0; i < conv.dims; ++i) out_size[i] = conv.out_size(i);
  Image<T> input{conv.in_channels, three(conv, conv.size, 1), layout, {}};
  Image<T> output{conv.out_channels, three(conv, out_size, 1), layout, {}};
  Image<T> weight{conv.in_channels / conv.groups, three(conv, conv.kernel, 1), weight_layout, {}};
  auto points = [](const auto& size) { return size[0] * size[1] * size[2]; };
  int64_t inputs = conv.batch * conv.in_channels * points(input.size);
  int64_t outputs = conv.batch * conv.out_channels * points(output.size);
  int64_t weights = conv.out_channels * weight.channels * points(weight.size);
  input.values = random_integers<T>(inputs);
  weight.values = random_integers<T>(weights);
  std::vector<T> bias = random_integers<T>(conv.out_channels);
  std::vector<T> grad_output = random_integers<T>(outputs);

  std::vector<float> plain(outputs), with_bias(outputs), relu(outputs);
  std::vector<float> grad_input(inputs), grad_weight(weights), grad_bias(conv.out_channels);
  walk(conv, input, weight, output, [&](int64_t i, int64_t w, int64_t o) {
    plain[o] += as_float(input.values[i]) * as_float(weight.values[w]);
    grad_input[i] += as_float(grad_output[o]) * as_float(weight.values[w]);
    grad_weight[w] += as_float(grad_output[o]) * as_float(input.values[i]);
  });
  for (int64_t n = 0; n < conv.batch; ++n) {
    for (int64_t c = 0; c < conv.out_channels; ++c) {
      for (int64_t p = 0; p < points(output.size); ++p) {
        int64_t o = output.position(n, c, 0, 0, p);  // p counts points across rows
        with_bias[o] = plain[o] + as_float(bias[c]);
        relu[o] = std::max(with_bias[o], 0.0f);
        grad_bias[c] += as_float(grad_output[o]);
      }
    }
  }

  // Depthwise convolutions are declined where oneDNN has no code of their own.
  auto matches = [&](bool ran, const std::vector<T>& actual, const std::vector<float>& expected) {
    expect(ran ? all_same(actual, expected) : conv.is_depthwise());
  };
  std::vector<T> result = not_numbers<T>(outputs);
  matches(onednn::conv_forward(conv, input.values.data(), weight.values.data(), nullptr, false,
                               result.data()),
          result, plain);
  matches(onednn::conv_forward(conv, input.values.data(), weight.values.data(), bias.data(), false,
                               result.data()),
          result, with_bias);
  matches(onednn::conv_forward(conv, input.values.data(), weight.values.data(), bias.data(), true,
                               result.data()),
          result, relu);

  result = not_numbers<T>(inputs);
  matches(
      onednn::conv_backward_input(conv, grad_output.data(), weight.values.data(), result.data()),
      result, grad_input);

  std::vector<T> bias_result = not_numbers<T>(conv.out_channels);
  for (T* bias_address : {static_cast<T*>(nullptr), bias_result.data()}) {
    result = not_numbers<T>(weights);
    bool ran = onednn::conv_backward_weight(conv, input.values.data(), grad_output.data(),
                                            result.data(), bias_address);
    matches(ran, result, grad_weight);
    if (bias_address) matches(ran, bias_result, grad_bias);
  }
}

template <class T>
void check_convolutions() {
  // dtype, layouts | dims, batch, groups, in, out | size, kernel, stride, dilation | padding
  constexpr ImageLayout kAny = ImageLayout::channels_first;
  DType dtype = dtype_of<T>;
  for (ImageLayout layout : {ImageLayout::channels_first, ImageLayout::channels_last}) {
    for (ImageLayout weight_layout : {ImageLayout::channels_first, ImageLayout::channels_last}) {
      for (const Convolution& conv : {
               Convolution{dtype,
                           kAny,
                           kAny,
                           2,
                           2,
                           1,
                           3,
                           8,
                           {9, 7},
                           {3, 3},
                           {1, 1},
                           {1, 1},
                           {1, 1},
                           {1, 1}},
               Convolution{dtype,
                           kAny,
                           kAny,
                           2,
                           1,
                           1,
                           16,
                           32,
                           {8, 8},
                           {1, 1},
                           {1, 1},
                           {1, 1},
                           {0, 0},
                           {0, 0}},
               Convolution{dtype,
                           kAny,
                           kAny,
                           2,
                           2,
                           2,
                           6,
                           4,
                           {11, 10},
                           {3, 2},
                           {2, 3},
                           {1, 2},
                           {2, 0},
                           {1, 1}},
               Convolution{dtype,
                           kAny,
                           kAny,
                           2,
                           1,
                           16,
                           16,
                           16,
                           {8, 8},
                           {3, 3},
                           {2, 2},
                           {1, 1},
                           {1, 1},
                           {1, 1}},
               Convolution{dtype, kAny, kAny, 1, 3, 1, 5, 7, {20}, {4}, {2}, {3}, {4}, {2}},
               Convolution{dtype,
                           kAny,
                           kAny,
                           3,
                           1,
                           1,
                           4,
                           6,
                           {5, 6, 7},
                           {3, 2, 3},
                           {1, 2, 1},
                           {1, 1, 2},
                           {1, 0, 2},
                           {0, 1, 2}},
           }) {
        convolution_matches_a_plain_loop<T>(conv, layout, weight_layout);
      }
    }
  }
}

// ---- the library as a whole ---------------------------------------------------------------------

void threads_may_call_at_once() {
  std::vector<std::thread> callers;
  for (int t = 0; t < 3; ++t) {
    callers.emplace_back([] {
      std::vector<float> a(64 * 64, 1), c(64 * 64);
      for (int64_t m = 1; m <= 64; ++m) {
        Matmul product{DType::float32, DType::float32, 1,         m, 64, 64,
                       {0, 64, 1},     {0, 64, 1},     {0, 64, 1}};
        expect(onednn::matmul(product, a.data(), a.data(), nullptr, c.data()));
        expect(c[0] == 64 && c[m * 64 - 1] == 64);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

void calls_inside_a_parallel_region_work() {
  parallel_for(0, 3, 1, [](int64_t, int64_t) {
    std::vector<float> a(100 * 100, 1), c(100 * 100);
    Matmul product{DType::float32, DType::float32, 1,          100, 100, 100,
                   {0, 100, 1},    {0, 100, 1},    {0, 100, 1}};
    expect(onednn::matmul(product, a.data(), a.data(), nullptr, c.data()));
    for (float value : c) expect(value == 100);
  });
}

void a_forked_child_may_call() {
  std::vector<float> a(200 * 200, 1), c(200 * 200);
  Matmul product{DType::float32, DType::float32, 1,          200, 200, 200,
                 {0, 200, 1},    {0, 200, 1},    {0, 200, 1}};
  expect(onednn::matmul(product, a.data(), a.data(), nullptr, c.data()));
  for (int threads : {1, 2}) {
    expect_child_succeeds([&] {
      set_num_threads(threads);
      std::vector<float> child_c(200 * 200);
      expect(onednn::matmul(product, a.data(), a.data(), nullptr, child_c.data()));
      expect(child_c == c);
    });
  }
}

void more_shapes_than_are_kept_stay_right() {
  std::vector<float> a(700, 1), c(1);
  for (int round = 0; round < 2; ++round) {
    for (int64_t k = 1; k <= 700; ++k) {
      Matmul product{DType::float32, DType::float32, 1, 1, 1, k, {0, k, 1}, {0, 1, 1}, {0, 1, 1}};
      expect(onednn::matmul(product, a.data(), a.data(), nullptr, c.data()));
      expect(c[0] == float(k));
    }
  }
}

void switched_off_it_leaves_all_to_the_caller() {
  float a = 1, c = 7;
  Matmul product{DType::float32, DType::float32, 1, 1, 1, 1, {0, 1, 1}, {0, 1, 1}, {0, 1, 1}};
  onednn::set_enabled(false);
  expect(!onednn::available());
  expect(!onednn::matmul(product, &a, &a, nullptr, &c) && c == 7);
  onednn::set_enabled(true);
  expect(onednn::available());
}

bool has_bfloat16_code() {
  BFloat16 a = to_bfloat16(1), c;
  Matmul product{DType::bfloat16, DType::bfloat16, 1, 1, 1, 1, {0, 1, 1}, {0, 1, 1}, {0, 1, 1}};
  return onednn::matmul(product, &a, &a, nullptr, &c);
}

}  // namespace

int main() {
  find_python_libraries();
  if (!onednn::available()) {  // other processors than x86-64 have no package of it
    float value = 0;
    expect(!onednn::matmul({}, &value, &value, nullptr, &value));
    return 0;
  }
  for (int threads : {1, 3}) {
    set_num_threads(threads);
    check_matmul<float>();
    check_convolutions<float>();
    if (!has_bfloat16_code()) continue;  // it needs AVX-512
    check_matmul<BFloat16>();
    check_convolutions<BFloat16>();
    half_inputs_may_give_a_float_result();
  }
  what_has_no_fast_code_is_left_to_the_caller();
  threads_may_call_at_once();
  calls_inside_a_parallel_region_work();
  a_forked_child_may_call();
  more_shapes_than_are_kept_stay_right();
  switched_off_it_leaves_all_to_the_caller();
}

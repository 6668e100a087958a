// Defines the kernels of convolution on the CPU: oneDNN where it has the code and is worth its
// reorders, else our loops for single channels, else products of the weights with the windows of
// each image, copied out into columns.
#include <algorithm>
#include <cstring>

#include "core/base/ceil_div.h"
#include "core/device/allocator.h"
#include "core/device/openblas.h"
#include "core/device/threads.h"
#include "core/ops/conv/conv.h"
#include "core/ops/conv/depthwise.h"
#include "core/ops/conv/joined_groups.h"
#include "core/ops/matmul/matmul.h"
#include "core/tensor/memory_order.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

// One group of one image as a matrix: a column for each output point, holding its window.
class Columns {
 public:
  explicit Columns(const Convolution& original) : conv_(in_three_dims(original)) {
    for (int d = 0; d < 3; ++d) out_[size_t(d)] = conv_.out_size(d);
  }

  int64_t channels() const { return conv_.in_channels / conv_.groups; }
  int64_t rows() const { return channels() * conv_.taps(); }
  int64_t points() const { return out_[0] * out_[1] * out_[2]; }
  int64_t pixels() const { return conv_.size[0] * conv_.size[1] * conv_.size[2]; }

  template <class T>
  void gather(const T* image, T* columns) const {
    std::fill_n(columns, rows() * points(), T(0));
    int64_t stride = conv_.stride[2];
    for_each_run(channels(), [&](int64_t row, int64_t point, int64_t pixel, int64_t count) {
      T* column = columns + row * points() + point;
      for (int64_t i = 0; i < count; ++i) column[i] = image[pixel + i * stride];
    });
  }

  // The columns as rows, their taps before the channels, of an image with its channels last.
  template <class T>
  void gather_rows(const T* image, T* rows_of_points) const {
    std::fill_n(rows_of_points, rows() * points(), T(0));
    int64_t stride = conv_.stride[2];
    for_each_run(1, [&](int64_t tap, int64_t point, int64_t pixel, int64_t count) {
      for (int64_t i = 0; i < count; ++i)
        std::copy_n(image + (pixel + i * stride) * channels(), channels(),
                    rows_of_points + (point + i) * rows() + tap * channels());
    });
  }

  template <class T>
  void scatter_add(const T* columns, T* image) const {
    int64_t stride = conv_.stride[2];
    for_each_run(channels(), [&](int64_t row, int64_t point, int64_t pixel, int64_t count) {
      const T* column = columns + row * points() + point;
      for (int64_t i = 0; i < count; ++i) image[pixel + i * stride] += column[i];
    });
  }

 private:
  // The outputs along dim d whose window has its element number `tap` inside the image.
  std::pair<int64_t, int64_t> inside(size_t d, int64_t tap) const {
    int64_t shift = conv_.padding_before[d] - tap * conv_.dilation[d], stride = conv_.stride[d];
    int64_t last = conv_.size[d] - 1 + shift;  // output i looks at i * stride - shift
    int64_t begin = shift > 0 ? ceil_div(shift, stride) : 0;
    int64_t end = last < 0 ? 0 : std::min(out_[d], last / stride + 1);
    return {begin, std::max(begin, end)};
  }

  // Calls f(row of the columns, point, place in the image, count) for each run of a row of outputs
  // whose pixels are inside the image; they are stride[2] apart.
  template <class F>
  void for_each_run(int64_t channels, F&& f) const {
    auto place = [&](size_t d, int64_t out, int64_t tap) {
      return out * conv_.stride[d] - conv_.padding_before[d] + tap * conv_.dilation[d];
    };
    int64_t row = 0;
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t tap0 = 0; tap0 < conv_.kernel[0]; ++tap0)
        for (int64_t tap1 = 0; tap1 < conv_.kernel[1]; ++tap1)
          for (int64_t tap2 = 0; tap2 < conv_.kernel[2]; ++tap2, ++row) {
            auto [begin0, end0] = inside(0, tap0);
            auto [begin1, end1] = inside(1, tap1);
            auto [begin2, end2] = inside(2, tap2);
            if (begin2 == end2) continue;
            for (int64_t i = begin0; i < end0; ++i)
              for (int64_t j = begin1; j < end1; ++j) {
                int64_t line = (c * conv_.size[0] + place(0, i, tap0)) * conv_.size[1];
                int64_t pixel = (line + place(1, j, tap1)) * conv_.size[2] + place(2, begin2, tap2);
                int64_t point = (i * out_[1] + j) * out_[2] + begin2;
                f(row, point, pixel, end2 - begin2);
              }
          }
  }

  Convolution conv_;
  std::array<int64_t, 3> out_;
};

// Calls f with a value-less tag of the C++ type; others have been widened.
template <class F>
void visit_columns_type(DType dtype, F&& f) {
  if (dtype == DType::float32) return f(Tag<float>{});
  ASSERT(dtype == DType::float64);
  f(Tag<double>{});
}

template <class T>
void forward(const Convolution& conv, const T* input, const T* weight, const T* bias, T* output) {
  if (conv.is_depthwise()) return depthwise_forward(conv, dtype_of<T>, input, weight, bias, output);
  Columns columns(conv);
  int64_t m = conv.out_channels / conv.groups, n = columns.points(), k = columns.rows();
  parallel_for(0, conv.batch * conv.groups, 1, [&](int64_t begin, int64_t end) {
    CpuBuffer buffer(size_t(k * n) * sizeof(T));
    T* matrix = static_cast<T*>(buffer.data());
    for (int64_t i = begin; i < end; ++i) {
      int64_t group = i % conv.groups;
      T* out = output + i * m * n;
      columns.gather(input + i * columns.channels() * columns.pixels(), matrix);
      if (bias)
        for (int64_t c = 0; c < m; ++c) std::fill_n(out + c * n, n, bias[group * m + c]);
      openblas::gemm(dtype_of<T>, false, false, m, n, k, 1, weight + group * m * k, k, matrix, n,
                     bias ? 1 : 0, out, n);
    }
  });
}

// For so few outputs of each channel, bringing the weights into a format of oneDNN takes longer
// than their product with the columns. Measured: half the time for 16 outputs, equal from 128.
constexpr int64_t kFewPoints = 64;

bool has_few_points(const Convolution& conv, const Columns& columns) {
  bool same_layout = conv.weight_layout == conv.layout || columns.rows() == conv.in_channels;
  return conv.dtype == DType::float32 && conv.groups == 1 && same_layout &&
         conv.batch * columns.points() <= kFewPoints;
}

// Operands lie in the layout of conv.
void forward_few_points(const Convolution& conv, const Columns& columns, const float* input,
                        const float* weight, const float* bias, float* output) {
  bool last = conv.layout == onednn::ImageLayout::channels_last;
  int64_t m = conv.out_channels, k = columns.rows(), points = columns.points();
  int64_t image_size = columns.channels() * columns.pixels();
  CpuBuffer buffer(size_t((k + m) * points) * sizeof(float));
  auto* matrix = static_cast<float*>(buffer.data());
  float* by_channel = matrix + k * points;
  for (int64_t image = 0; image < conv.batch; ++image) {
    const float* pixels = input + image * image_size;
    if (last) columns.gather_rows(pixels, matrix);
    else columns.gather(pixels, matrix);
    float* out = output + image * m * points;
    float* product = last ? by_channel : out;
    multiply_on_cpu({.dtype = DType::float32,
                     .m = m,
                     .n = points,
                     .k = k,
                     .a = {reinterpret_cast<const char*>(weight), {false, k}},
                     .b = {reinterpret_cast<const char*>(matrix), {last, last ? k : points}},
                     .c = reinterpret_cast<char*>(product)});
    for (int64_t c = 0; c < m; ++c)
      for (int64_t i = 0; i < points; ++i)
        out[last ? i * m + c : c * points + i] = product[c * points + i] + (bias ? bias[c] : 0);
  }
}

template <class T>
void backward_input(const Convolution& conv, const T* grad, const T* weight, T* grad_input) {
  if (conv.is_depthwise())
    return depthwise_backward_input(conv, dtype_of<T>, grad, weight, grad_input);
  Columns columns(conv);
  int64_t m = conv.out_channels / conv.groups, n = columns.points(), k = columns.rows();
  int64_t image_size = columns.channels() * columns.pixels();
  parallel_for(0, conv.batch * conv.groups, 1, [&](int64_t begin, int64_t end) {
    CpuBuffer buffer(size_t(k * n) * sizeof(T));
    T* matrix = static_cast<T*>(buffer.data());
    for (int64_t i = begin; i < end; ++i) {
      openblas::gemm(dtype_of<T>, true, false, k, n, m, 1, weight + i % conv.groups * m * k, k,
                     grad + i * m * n, n, 0, matrix, n);
      std::fill_n(grad_input + i * image_size, image_size, T(0));
      columns.scatter_add(matrix, grad_input + i * image_size);
    }
  });
}

template <class T>
void backward_weight(const Convolution& conv, const T* input, const T* grad, T* grad_weight,
                     T* grad_bias) {
  if (conv.is_depthwise())
    return depthwise_backward_weight(conv, dtype_of<T>, input, grad, grad_weight, grad_bias);
  Columns columns(conv);
  int64_t m = conv.out_channels / conv.groups, n = columns.points(), k = columns.rows();
  parallel_for(0, conv.groups, 1, [&](int64_t begin, int64_t end) {
    CpuBuffer buffer(size_t(k * n) * sizeof(T));
    T* matrix = static_cast<T*>(buffer.data());
    for (int64_t group = begin; group < end; ++group)
      for (int64_t image = 0; image < conv.batch; ++image) {
        int64_t i = image * conv.groups + group;
        columns.gather(input + i * columns.channels() * columns.pixels(), matrix);
        openblas::gemm(dtype_of<T>, false, true, m, k, n, 1, grad + i * m * n, n, matrix, n,
                       image ? 1 : 0, grad_weight + group * m * k, k);
      }
  });
  if (!grad_bias) return;
  for (int64_t c = 0; c < conv.out_channels; ++c) {
    double sum = 0;
    for (int64_t image = 0; image < conv.batch; ++image) {
      const T* points = grad + (image * conv.out_channels + c) * n;
      for (int64_t i = 0; i < n; ++i) sum += double(points[i]);
    }
    grad_bias[c] = T(sum);
  }
}

// Operands and results as the code for columns takes them: row-major, float32 for half types.
Tensor for_columns(const Tensor& tensor) {
  if (!tensor.defined()) return tensor;
  return to_contiguous(is_half(tensor.dtype()) ? to_dtype(tensor, DType::float32) : tensor);
}
Tensor result_for_columns(const Tensor& out) {
  if (!out.defined() || (out.is_contiguous() && !is_half(out.dtype()))) return out;
  return empty(out.sizes(), is_half(out.dtype()) ? DType::float32 : out.dtype());
}
void deliver(const Tensor& result, const Tensor& out) {
  if (!result.is(out)) copy_into(out, result);
}

template <class T>
T* data_or_null(const Tensor& tensor) {
  return tensor.defined() ? static_cast<T*>(tensor.data()) : nullptr;
}

// oneDNN's code for wide filters of single channels takes longer for halves than that for float32
// and both conversions do. Measured: 1.3 times as long for 7x7, channels last, and twice as long,
// channels first; for 5x5 or strides the conversions may take longer than is won.
bool is_faster_in_float32(const Convolution& conv) {
  return is_half(conv.dtype) && conv.is_depthwise() && conv.dims == 2 &&
         conv.kernel[0] * conv.kernel[1] >= 49 && conv.stride[0] == 1 && conv.stride[1] == 1;
}

void forward_in_float32(Convolution conv, const Tensor& input, const Tensor& weight,
                        const Tensor& bias, const Tensor& output) {
  conv.dtype = DType::float32;
  auto widened = [](const Tensor& tensor) {
    return tensor.defined() ? to_dtype(tensor, DType::float32) : tensor;
  };
  Tensor result = empty_after(output, DType::float32);
  conv_forward_on_cpu(conv, widened(input), widened(weight), widened(bias), result);
  copy_into(output, result);
}

}  // namespace

void conv_forward_on_cpu(const Convolution& conv, const Tensor& input, const Tensor& weight,
                         const Tensor& bias, const Tensor& output) {
  if (is_faster_in_float32(conv)) return forward_in_float32(conv, input, weight, bias, output);
  if (input.numel() != 0 && weight.numel() != 0) {
    Tensor x = in_layout(input, conv.layout, conv.dims);
    Tensor w = in_layout(weight, conv.weight_layout, conv.dims);
    Tensor b = bias.defined() ? to_contiguous(bias) : bias;
    Columns columns(conv);
    if (has_few_points(conv, columns))
      return forward_few_points(conv, columns, x.data<float>(), w.data<float>(),
                                data_or_null<float>(b), output.data<float>());
    if (joined_forward(conv, x, w, b, output) ||
        onednn::conv_forward(conv, x.data(), w.data(), data_or_null<void>(b), false, output.data()))
      return;
  }
  Tensor x = for_columns(input), w = for_columns(weight), b = for_columns(bias);
  Tensor result = result_for_columns(output);
  visit_columns_type(x.dtype(), [&]<class T>(Tag<T>) {
    forward(conv, x.data<T>(), w.data<T>(), data_or_null<T>(b), result.data<T>());
  });
  deliver(result, output);
}

void conv_backward_input_on_cpu(const Convolution& conv, const Tensor& grad, const Tensor& weight,
                                const Tensor& grad_input) {
  if (grad.numel() != 0 && weight.numel() != 0) {
    Tensor g = in_layout(grad, conv.layout, conv.dims);
    Tensor w = in_layout(weight, conv.weight_layout, conv.dims);
    if (joined_backward_input(conv, g, w, grad_input) ||
        onednn::conv_backward_input(conv, g.data(), w.data(), grad_input.data()))
      return;
  }
  Tensor g = for_columns(grad), w = for_columns(weight), result = result_for_columns(grad_input);
  visit_columns_type(g.dtype(), [&]<class T>(Tag<T>) {
    backward_input(conv, g.data<T>(), w.data<T>(), result.data<T>());
  });
  deliver(result, grad_input);
}

void conv_backward_weight_on_cpu(const Convolution& conv, const Tensor& input, const Tensor& grad,
                                 const Tensor& grad_weight, const Tensor& grad_bias) {
  if (grad.numel() == 0) {
    for (const Tensor& zero : {grad_weight, grad_bias})
      if (zero.defined()) std::memset(zero.data(), 0, size_t(zero.numel()) * zero.itemsize());
    return;
  }
  if (input.numel() != 0) {
    Tensor x = in_layout(input, conv.layout, conv.dims);
    Tensor g = in_layout(grad, conv.layout, conv.dims);
    if (joined_backward_weight(conv, x, g, grad_weight, grad_bias) ||
        onednn::conv_backward_weight(conv, x.data(), g.data(), grad_weight.data(),
                                     data_or_null<void>(grad_bias)))
      return;
  }
  Tensor x = for_columns(input), g = for_columns(grad);
  Tensor weight_result = result_for_columns(grad_weight);
  Tensor bias_result = result_for_columns(grad_bias);
  visit_columns_type(x.dtype(), [&]<class T>(Tag<T>) {
    backward_weight(conv, x.data<T>(), g.data<T>(), weight_result.data<T>(),
                    data_or_null<T>(bias_result));
  });
  deliver(weight_result, grad_weight);
  if (grad_bias.defined()) deliver(bias_result, grad_bias);
}

}  // namespace rushlight

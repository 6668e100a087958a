// Owns batch_norm, layer_norm, group_norm, instance_norm and rms_norm: shapes, dtypes, running
// statistics and gradients. The files named *_norm_cpu.cpp and *_norm_cuda.cpp have the kernels.
#include "core/ops/norm/norm.h"

#include <cmath>

#include "core/ops/joined_samples.h"
#include "core/ops/norm/by_channel.h"
#include "core/ops/op.h"
#include "core/ops/operands.h"
#include "core/ops/same_device.h"
#include "core/tensor/memory_order.h"

namespace rushlight {
namespace {

// The dtype of statistics, and of parameters in the kernels of the CPU.
DType kernel_dtype(const Tensor& input) { return compute_dtype(input.dtype()); }

void check_devices(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  check_same_device(input, weight, "weight");
  check_same_device(input, bias, "bias");
}

void check_channels(const Tensor& t, int64_t channels, const char* name) {
  CHECK(!t.defined() || (t.dim() == 1 && t.numel() == channels), name, " should contain ", channels,
        " elements, one per channel of input, but its shape is ", t.sizes());
}
// What batch_norm and its kernel, which SyncBatchNorm calls, ask of their arguments.
void check_batch(const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                 const Tensor& weight, const Tensor& bias, bool training) {
  CHECK(input.dim() >= 2, "input must have at least 2 dims (N, C, *), got shape ", input.sizes());
  int64_t channels = input.sizes()[1];
  check_channels(running_mean, channels, "running_mean");
  check_channels(running_var, channels, "running_var");
  check_channels(weight, channels, "weight");
  check_channels(bias, channels, "bias");
  CHECK(training || (running_mean.defined() && running_var.defined()),
        "running_mean and running_var must be given in evaluation mode. Pass training=True to "
        "use the batch's own.");
}

// channels_last memory keeps its order: it is rows of channels. So is what could be both.
bool is_rows_of_channels(const Tensor& t) {
  return t.is_contiguous(channels_last_for(t.dim())) || is_channels_last(t);
}
Tensor in_kernel_order(const Tensor& t, DType dtype, bool channels_last) {
  MemoryFormat format = channels_last ? channels_last_for(t.dim()) : MemoryFormat::contiguous;
  return in_format(to_dtype(t, dtype), format);
}
ChannelView view_of(const Tensor& t, bool channels_last, int64_t groups = 0) {
  int64_t samples = t.sizes()[0], channels = t.sizes()[1];
  int64_t inner = t.numel() == 0 ? 0 : t.numel() / (samples * channels);
  bool by_columns = (channels_last && channels > 1) || inner <= 1;
  if (by_columns && groups == 0) return {1, channels, samples * inner, groups, by_columns};
  return {samples, channels, inner, groups, by_columns};
}

// running = (1 - momentum) * running + momentum * value * scale
void update_running(const Tensor& running, const Tensor& value, double momentum, double scale) {
  if (!running.defined()) return;
  Tensor mixed = to_dtype(to_contiguous(running), value.dtype());
  if (mixed.is(running)) mixed = clone_dense(running);
  visit_dtype(value.dtype(), [&]<class T>(Tag<T>) {
    if constexpr (std::is_floating_point_v<T>)
      for (int64_t i = 0; i < value.numel(); ++i) {
        double old = double(mixed.data<T>()[i]);
        mixed.data<T>()[i] =
            T((1 - momentum) * old + momentum * scale * double(value.data<T>()[i]));
      }
  });
  copy_into(running, mixed);
  running.storage()->bump_version("batch_norm");
}

// What a kernel returns: (output, mean, rstd).
using Normalized = std::tuple<Tensor, Tensor, Tensor>;

Tensor layer_normalized(const Tensor& input, int64_t dims, const Tensor& weight, const Tensor& bias,
                        double eps) {
  return std::get<0>(call<"layer_norm_kernel", Normalized>(input, dims, weight, bias, eps));
}

// The gradient through z = (x - mean(x)) / std(x) over `dims`, of which h flows into z.
Tensor through_statistics(const Tensor& h, const Tensor& z, const Tensor& rstd, const Shape& dims) {
  return rstd * (h - mean(h, dims, true) - z * mean(h * z, dims, true));
}

// How the kernels of layer_norm and rms_norm see an input that is normalized over its last dims.
struct LastDims {
  Shape last, first;  // the dims
  Shape normalized;   // the sizes of the last ones
  Shape statistics;   // the sizes of what there is one of per row
  int64_t n = 1;      // elements of a row

  LastDims(const Tensor& input, int64_t dims) : statistics(input.sizes()) {
    for (int64_t d = 0; d < input.dim(); ++d) {
      if (d < input.dim() - dims) {
        first.push_back(d);
        continue;
      }
      last.push_back(d);
      normalized.push_back(input.sizes()[size_t(d)]);
      statistics[size_t(d)] = 1;
      n *= normalized.back();
    }
  }
  Tensor over_rows(const Tensor& t) const { return first.empty() ? t : sum(t, first); }
  Tensor shaped(const Tensor& t) const { return t.defined() ? reshape(t, normalized) : t; }
};

void check_normalized_shape(const Tensor& input, ShapeRef shape) {
  CHECK(!shape.empty(), "Expected normalized_shape to be at least 1-dimensional, got an empty one");
  CHECK(input.dim() >= int64_t(shape.size()) &&
            same_shape(ShapeRef(input.sizes()).last(shape.size()), shape),
        "Given normalized_shape=", ShapeText{shape}, ", expected input with shape [*, ",
        ShapeText{shape}, "], but got input of size ", input.sizes());
}
// layer_norm of rows, or rms_norm where `mean` is not defined.
void normalize_rows(const Tensor& x, int64_t n, const Tensor& weight, const Tensor& bias,
                    double eps, const Tensor& output, const Tensor& mean, const Tensor& rstd) {
  DType dtype = kernel_dtype(x);
  if (x.device().is_cpu())
    layer_norm_cpu(x, n, prepared(weight, dtype), prepared(bias, dtype), eps, output, mean, rstd);
  else if (x.device().is_cuda()) layer_norm_cuda(x, n, weight, bias, eps, output, mean, rstd);
}
Normalized normalized_rows_backward(const Tensor& grad, const Tensor& input, const LastDims& over,
                                    const Tensor& mean, const Tensor& rstd, const Tensor& weight,
                                    bool want_weight, bool want_bias) {
  DType dtype = kernel_dtype(input);
  Tensor x = prepared(input, input.dtype()), g = prepared(grad, x.dtype());
  if (x.device().is_meta()) {
    Tensor parameter = empty(over.normalized, dtype, x.device());
    return {x, parameter, parameter};
  }
  auto [grad_input, grad_weight, grad_bias] =
      x.device().is_cuda()
          ? layer_norm_backward_cuda(g, x, over.n, mean, rstd, weight, want_weight, want_bias)
          : layer_norm_backward_cpu(g, x, over.n, mean, rstd, prepared(weight, dtype), want_weight,
                                    want_bias);
  return {grad_input, over.shaped(grad_weight), over.shaped(grad_bias)};
}

void check_parameter(const Tensor& t, ShapeRef shape, const char* name) {
  CHECK(!t.defined() || same_shape(t.sizes(), shape), "Expected ", name,
        " to be of same shape as normalized_shape, but got ", name, " of shape ",
        t.defined() ? t.sizes() : Shape(), " and normalized_shape = ", ShapeText{shape});
}

}  // namespace

OP(batch_norm_kernel,
   "_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, "
   "Tensor? running_var, bool training, float momentum, float eps) -> "
   "(Tensor output, Tensor mean, Tensor rstd)", {
  .home    = "private",
  .doc     = R"(batch_norm with the statistics that its gradient needs.)",
  .dtypes  = floating,
  .node    = "native_batch_norm",
  .batch   = [](const Batch& batch, const Tensor&, const Tensor& weight, const Tensor& bias,
                const Tensor& running_mean, const Tensor& running_var, bool training,
                double momentum, double eps) {
    CHECK(!training || !running_mean.defined() || batch.has("running_mean"),
          "running_mean and running_var are the same for all samples of vmap, but each sample "
          "would update them. Use func.replace_all_batch_norm_modules_, or eval().");
    // Each channel of each sample is a channel of its own: (N, B * C, ...).
    int64_t samples = batch.size();
    Tensor x = transpose(batch.full("input"), 0, 1);
    Shape parts = x.sizes(), channels = parts;
    channels[1] *= channels[2];
    channels.erase(2);
    auto each = [&](const Tensor& t, std::string_view name) {
      return t.defined() ? reshape(batch.full(name), Shape{channels[1]}) : t;
    };
    auto [out, mean, rstd] = call<"batch_norm_kernel", std::tuple<Tensor, Tensor, Tensor>>(
        reshape(x, channels), each(weight, "weight"), each(bias, "bias"),
        each(running_mean, "running_mean"), each(running_var, "running_var"), training, momentum,
        eps);
    Shape stats{samples, parts[2]};
    return std::tuple(transpose(reshape(out, parts), 0, 1), reshape(mean, stats),
                      reshape(rstd, stats));
  },
  .forward = [](const Tensor& input, const Tensor& weight, const Tensor& bias,
                const Tensor& running_mean, const Tensor& running_var, bool training,
                double momentum, double eps) {
    check_devices(input, weight, bias);
    check_same_device(input, running_mean, "running_mean");
    check_same_device(input, running_var, "running_var");
    check_batch(input, running_mean, running_var, weight, bias, training);
    DType dtype = kernel_dtype(input);
    bool channels_last = is_rows_of_channels(input);
    Tensor x = in_kernel_order(input, input.dtype(), channels_last);
    ChannelView view = view_of(x, channels_last);
    Tensor output = empty_strided(x.sizes(), x.strides(), x.dtype(), x.device());
    Shape channels{view.channels};
    if (training && x.numel() == 0)  // says nothing: running statistics stay as they are
      return std::tuple(output, zeros(channels, dtype, x.device()),
                        zeros(channels, dtype, x.device()));
    if (!x.device().is_cpu()) {
      Tensor mean = empty(channels, dtype, x.device()), rstd = empty(channels, dtype, x.device());
      if (x.device().is_cuda())
        batch_norm_cuda(x, view, weight, bias, running_mean, running_var, training, momentum, eps,
                        output, mean, rstd);
      return std::tuple(output, mean, rstd);
    }
    // A result is not its own argument, so the running mean is a tensor of its own.
    Tensor mean = training ? empty(channels, dtype) : detach(prepared(running_mean, dtype));
    Tensor var = training ? empty(channels, dtype) : prepared(running_var, dtype);
    Tensor rstd = empty(channels, dtype);
    channel_norm_cpu(x, view, prepared(weight, dtype), prepared(bias, dtype), training, eps, mean,
                     var, rstd, output);
    if (training) {
      double count = double(view.numel_of_cell());
      update_running(running_mean, mean, momentum, 1);
      update_running(running_var, var, momentum, count / (count - 1));
    }
    return std::tuple(output, mean, rstd);
  },
  .saves   = saves<"input", "weight", "mean", "rstd">,
  .grads   = grads(
      d<"input", "weight", "bias">([](TensorList grads, const Tensor& input, const Tensor& weight,
                                      const Tensor& mean, const Tensor& rstd, bool training,
                                      double, double eps, GradMask<3>) {
        const Tensor& g = grads[0];
        if (gradients_as_ops()) {  // as ops, so that it can be differentiated again
          int64_t ndim = input.dim();
          Shape dims = all_but_channel(ndim);
          Tensor centered = input - (training ? rushlight::mean(input, dims, true)
                                             : by_channel(detach(mean), ndim));
          Tensor r = training ? rsqrt(rushlight::mean(centered * centered, dims, true) + eps)
                              : by_channel(detach(rstd), ndim);
          Tensor z = centered * r;
          Tensor h = weight.defined() ? g * by_channel(weight, ndim) : g;
          Tensor grad_input = training ? through_statistics(h, z, r, dims) : r * h;
          return std::tuple(grad_input, sum(g * z, dims), sum(g, dims));
        }
        DType dtype = kernel_dtype(input);
        bool channels_last = is_rows_of_channels(input);
        Tensor x = in_kernel_order(input, input.dtype(), channels_last);
        Tensor h = in_kernel_order(g, x.dtype(), channels_last);
        ChannelView view = view_of(x, channels_last);
        if (x.device().is_meta() || x.numel() == 0) {
          Tensor by_channel = zeros(Shape{view.channels}, dtype, x.device());
          return std::tuple(x, by_channel, by_channel);
        }
        if (x.device().is_cuda())
          return batch_norm_backward_cuda(h, x, view, mean, rstd, weight, training);
        return channel_norm_backward_cpu(h, x, view, mean, rstd, prepared(weight, dtype), training);
      }),
      no_grad<"running_mean">, no_grad<"running_var">),
})

OP(batch_norm,
   "(Tensor input, Tensor? running_mean, Tensor? running_var, Tensor? weight=None, "
   "Tensor? bias=None, bool training=False, float momentum=0.1, float eps=1e-5) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(Normalizes each channel: (x - mean) / sqrt(var + eps) * weight + bias.

In training the statistics are those of the batch (Ioffe and Szegedy 2015, algorithm 1), and the
running ones move towards them by momentum, the variance with Bessel's correction; otherwise the
running ones are used. A batch without elements moves nothing. input: (N, C, *). Raises RuntimeError
when a statistic or parameter does not have C elements, and ValueError when eps is negative, or in
training 0, or a channel has a single value in training.)",
  .dtypes  = floating,
  .forward = [](const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                const Tensor& weight, const Tensor& bias, bool training, double momentum,
                double eps) {
    check_batch(input, running_mean, running_var, weight, bias, training);
    CHECK(!(training ? eps <= 0 : eps < 0), ErrorKind::kValue, "eps must be ",
          training ? "positive during training" : "non-negative", ", but got ", eps);
    int64_t channels = input.sizes()[1];
    CHECK(!training || channels == 0 || input.numel() / channels != 1, ErrorKind::kValue,
          "Expected more than 1 value per channel when training, got input size ", input.sizes());
    return std::get<0>(call<"batch_norm_kernel", Normalized>(
        input, weight, bias, running_mean, running_var, training, momentum, eps));
  },
})

OP(layer_norm_kernel,
   "_layer_norm(Tensor input, int dims, Tensor? weight, Tensor? bias, float eps) -> "
   "(Tensor output, Tensor mean, Tensor rstd)", {
  .home    = "core",
  .doc     = R"(layer_norm over the last dims, with the statistics that its gradient needs.)",
  .dtypes  = floating,
  .node    = "native_layer_norm",
  .batch   = [](const Batch& batch, const Tensor& input, int64_t dims, const Tensor& weight,
                const Tensor& bias, double eps) {
    using Results = std::tuple<Tensor, Tensor, Tensor>;
    if (!batch.has("weight") && !batch.has("bias"))
      return call<"layer_norm_kernel", Results>(input, dims, weight, bias, eps);
    Tensor samples = batch.full("input");
    Results plain = call<"layer_norm_kernel", Results>(samples, dims, Tensor(), Tensor(), eps);
    Tensor& out = std::get<0>(plain);
    int64_t rank = samples.dim() - 1;
    if (weight.defined()) out = out * Batch::padded(batch.full("weight"), rank);
    if (bias.defined()) out = out + Batch::padded(batch.full("bias"), rank);
    return plain;
  },
  .forward = [](const Tensor& input, int64_t dims, const Tensor& weight, const Tensor& bias,
                double eps) {
    check_devices(input, weight, bias);
    DType dtype = kernel_dtype(input);
    Tensor x = prepared(input, input.dtype());
    LastDims over(x, dims);
    Tensor output = empty(x.sizes(), x.dtype(), x.device());
    Tensor mean = empty(over.statistics, dtype, x.device());
    Tensor rstd = empty(over.statistics, dtype, x.device());
    normalize_rows(x, over.n, weight, bias, eps, output, mean, rstd);
    return std::tuple(output, mean, rstd);
  },
  .saves   = saves<"input", "weight", "mean", "rstd">,
  .grads   = grads(d<"input", "weight", "bias">(
      [](TensorList grads, const Tensor& input, const Tensor& weight, const Tensor& mean,
         const Tensor& rstd, int64_t dims, double eps, GradMask<3> wants) {
        const Tensor& g = grads[0];
        LastDims over(input, dims);
        if (gradients_as_ops()) {  // as ops, so that it can be differentiated again
          Tensor centered = input - rushlight::mean(input, over.last, true);
          Tensor r = rsqrt(rushlight::mean(centered * centered, over.last, true) + eps);
          Tensor z = centered * r;
          Tensor h = weight.defined() ? g * weight : g;
          return std::tuple(through_statistics(h, z, r, over.last), over.over_rows(g * z),
                            over.over_rows(g));
        }
        return normalized_rows_backward(g, input, over, mean, rstd, weight, wants[1], wants[2]);
      })),
})

OP(layer_norm,
   "(Tensor input, int[] normalized_shape, Tensor? weight=None, Tensor? bias=None, "
   "float eps=1e-5) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(Normalizes over the last dims: (x - mean) / sqrt(var + eps) * weight + bias.

From Ba et al. 2016. weight and bias have the shape normalized_shape. Raises RuntimeError when
input does not end in it.)",
  .dtypes  = floating,
  .autocast = autocast::on_cuda(autocast::single),
  .forward = [](const Tensor& input, ShapeRef shape, const Tensor& weight, const Tensor& bias,
                double eps) {
    check_normalized_shape(input, shape);
    check_parameter(weight, shape, "weight");
    check_parameter(bias, shape, "bias");
    return layer_normalized(input, int64_t(shape.size()), weight, bias, eps);
  },
})

OP(group_norm_kernel,
   "_group_norm(Tensor input, int groups, Tensor? weight, Tensor? bias, float eps) -> "
   "(Tensor output, Tensor mean, Tensor rstd)", {
  .home    = "core",
  .doc     = R"(group_norm with the statistics that its gradient needs, of shape (N, groups).)",
  .dtypes  = floating,
  .node    = "native_group_norm",
  .batch   = [](const Batch& batch, const Tensor&, int64_t groups, const Tensor& weight,
                const Tensor& bias, double eps) {
    Tensor samples = batch.full("input");
    int64_t each = samples.sizes()[1], rank = samples.dim() - 1;
    bool own = batch.has("weight") || batch.has("bias");
    auto [out, mean, rstd] = call<"group_norm_kernel", Normalized>(
        joined_samples(samples), groups, own ? Tensor() : weight, own ? Tensor() : bias, eps);
    auto parted = [&](const Tensor& t) { return parted_samples(t, batch.size(), each); };
    Tensor result = parted(out);
    auto by_sample = [&](std::string_view name) {
      Shape sizes(size_t(rank + 1), 1);
      sizes[0] = batch.size();
      sizes[2] = samples.sizes()[2];
      return reshape(batch.full(name), sizes);
    };
    if (own && weight.defined()) result = result * by_sample("weight");
    if (own && bias.defined()) result = result + by_sample("bias");
    return std::tuple(result, parted(mean), parted(rstd));
  },
  .forward = [](const Tensor& input, int64_t groups, const Tensor& weight, const Tensor& bias,
                double eps) {
    check_devices(input, weight, bias);
    DType dtype = kernel_dtype(input);
    bool channels_last = is_rows_of_channels(input);
    Tensor x = in_kernel_order(input, input.dtype(), channels_last);
    Tensor output = empty_strided(x.sizes(), x.strides(), x.dtype(), x.device());
    Shape stats{x.sizes()[0], groups};
    if (x.numel() == 0)
      return std::tuple(output, zeros(stats, dtype, x.device()), zeros(stats, dtype, x.device()));
    Tensor mean = empty(stats, dtype, x.device()), rstd = empty(stats, dtype, x.device());
    if (x.device().is_cpu()) {
      channel_norm_cpu(x, view_of(x, channels_last, groups), prepared(weight, dtype),
                       prepared(bias, dtype), true, eps, mean, empty(stats, dtype), rstd, output);
    } else if (x.device().is_cuda()) {
      output = in_kernel_order(group_norm_cuda(x, weight, bias, eps, mean, rstd), x.dtype(),
                               channels_last);
    }
    return std::tuple(output, mean, rstd);
  },
  .saves   = saves<"input", "weight", "mean", "rstd">,
  .grads   = grads(d<"input", "weight", "bias">(
      [](TensorList grads, const Tensor& input, const Tensor& weight, const Tensor& mean,
         const Tensor& rstd, int64_t groups, double eps, GradMask<3>) {
        const Tensor& g = grads[0];
        DType dtype = kernel_dtype(input);
        if (input.numel() == 0 || input.device().is_meta()) {
          Tensor by_channel = zeros(Shape{input.sizes()[1]}, dtype, input.device());
          return std::tuple(zeros_like(input), by_channel, by_channel);
        }
        if (gradients_as_ops()) {  // as ops, so that it can be differentiated again
          Shape sizes = input.sizes(), rows{sizes[0], groups, -1}, last{2};
          Tensor x = reshape(input, rows), centered = x - rushlight::mean(x, last, true);
          Tensor r = rsqrt(rushlight::mean(centered * centered, last, true) + eps);
          Tensor z = centered * r;
          Tensor h = weight.defined() ? g * by_channel(weight, input.dim()) : g;
          Tensor grad_input = through_statistics(reshape(h, rows), z, r, last);
          Shape dims = all_but_channel(input.dim());
          return std::tuple(reshape(grad_input, sizes), sum(g * reshape(z, sizes), dims),
                            sum(g, dims));
        }
        if (input.device().is_cuda())
          return group_norm_backward_cuda(cast(g, input.dtype()), input, mean, rstd, weight);
        bool channels_last = is_rows_of_channels(input);
        Tensor x = in_kernel_order(input, input.dtype(), channels_last);
        Tensor h = in_kernel_order(g, x.dtype(), channels_last);
        return channel_norm_backward_cpu(h, x, view_of(x, channels_last, groups), mean, rstd,
                                         prepared(weight, dtype), true);
      })),
})

OP(group_norm,
   "(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1e-5) -> "
   "Tensor", {
  .home    = "nn.functional",
  .doc     = R"(Normalizes each group of channels of each sample (Wu and He 2018).

input: (N, C, *). Raises RuntimeError when num_groups does not divide C.)",
  .dtypes  = floating,
  .autocast = autocast::on_cuda(autocast::single),
  .forward = [](const Tensor& input, int64_t groups, const Tensor& weight, const Tensor& bias,
                double eps) {
    CHECK(input.dim() >= 2, "Expected at least 2 dimensions for input tensor but received ",
          input.dim());
    int64_t channels = input.sizes()[1];
    CHECK(groups > 0 && channels % groups == 0,
          "Expected number of channels in input to be divisible by num_groups, but got input of ",
          "shape ", input.sizes(), " and num_groups=", groups);
    CHECK(input.numel() != groups, ErrorKind::kValue, "Expected more than 1 value per channel ",
          "when training, got input size ", input.sizes(), " for ", groups, " groups.");
    check_channels(weight, channels, "weight");
    check_channels(bias, channels, "bias");
    return std::get<0>(call<"group_norm_kernel", Normalized>(input, groups, weight, bias, eps));
  },
})

OP(instance_norm,
   "(Tensor input, Tensor? running_mean=None, Tensor? running_var=None, Tensor? weight=None, "
   "Tensor? bias=None, bool use_input_stats=True, float momentum=0.1, float eps=1e-5) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(Normalizes each channel of each sample (Ulyanov et al. 2016).

(x - mean) / sqrt(var + eps) * weight + bias, for input of shape (N, C, *). With use_input_stats,
running statistics move towards the mean over the samples by momentum, the variance with Bessel's
correction; without, they are used. Raises ValueError when a channel of a sample has a single
value.)",
  .dtypes  = floating,
  .forward = [](const Tensor& input, const Tensor& running_mean, const Tensor& running_var,
                const Tensor& weight, const Tensor& bias, bool use_input_stats, double momentum,
                double eps) {
    CHECK(input.dim() >= 2, "input must have at least 2 dims (N, C, *), got shape ", input.sizes());
    if (!use_input_stats) {
      CHECK(running_mean.defined() && running_var.defined(),
            "Expected running_mean and running_var to be defined when use_input_stats=False");
      return call<"batch_norm", Tensor>(input, running_mean, running_var, weight, bias, false,
                                        momentum, eps);
    }
    int64_t samples = input.sizes()[0], channels = input.sizes()[1];
    CHECK(samples * channels == 0 || input.numel() / (samples * channels) > 1, ErrorKind::kValue,
          "Expected more than 1 spatial element when training, got input size ", input.sizes());
    check_channels(running_mean, channels, "running_mean");
    check_channels(running_var, channels, "running_var");
    check_channels(weight, channels, "weight");
    check_channels(bias, channels, "bias");
    if (input.numel() == 0)
      return cast(scaled_by_channel(clone(input), weight, bias), input.dtype());
    // Each channel of each sample is a channel of one sample to batch_norm.
    auto for_each_sample = [&](const Tensor& t) {
      return t.defined() ? reshape(expand(t, Shape{samples, channels}), Shape{samples * channels})
                         : t;
    };
    Shape sizes = input.sizes();
    sizes[0] = 1;
    sizes[1] = samples * channels;
    Tensor means = for_each_sample(running_mean), vars = for_each_sample(running_var);
    if (means.defined()) means = clone(means);
    if (vars.defined()) vars = clone(vars);
    Tensor output = std::get<0>(call<"batch_norm_kernel", Normalized>(
        reshape(input, sizes), for_each_sample(weight), for_each_sample(bias), means, vars, true,
        momentum, eps));
    auto keep_mean = [&](const Tensor& running, const Tensor& moved) {
      if (running.defined())
        copy_(running, mean(reshape(moved, Shape{samples, channels}), Shape{0}, false));
    };
    keep_mean(running_mean, means);
    keep_mean(running_var, vars);
    return reshape(output, input.sizes());
  },
})

OP(rms_norm_kernel,
   "_rms_norm(Tensor input, int dims, Tensor? weight, float eps) -> (Tensor output, Tensor rstd)", {
  .home    = "core",
  .doc     = R"(rms_norm over the last dims, with the scales that its gradient needs.)",
  .dtypes  = floating,
  .node    = "fused_rms_norm",
  .batch   = [](const Batch& batch, const Tensor& input, int64_t dims, const Tensor& weight,
                double eps) {
    using Results = std::tuple<Tensor, Tensor>;
    if (!batch.has("weight")) return call<"rms_norm_kernel", Results>(input, dims, weight, eps);
    Tensor samples = batch.full("input");
    Results plain = call<"rms_norm_kernel", Results>(samples, dims, Tensor(), eps);
    Tensor& out = std::get<0>(plain);
    out = cast(out * Batch::padded(batch.full("weight"), samples.dim() - 1), out.dtype());
    return plain;
  },
  .forward = [](const Tensor& input, int64_t dims, const Tensor& weight, double eps) {
    check_devices(input, weight, Tensor());
    Tensor x = prepared(input, input.dtype());
    LastDims over(x, dims);
    Tensor output = empty(x.sizes(), x.dtype(), x.device());
    Tensor rstd = empty(over.statistics, kernel_dtype(x), x.device());
    normalize_rows(x, over.n, weight, Tensor(), eps, output, Tensor(), rstd);
    return std::tuple(output, rstd);
  },
  .saves   = saves<"input", "weight", "rstd">,
  .grads   = grads(d<"input", "weight">(
      [](TensorList grads, const Tensor& input, const Tensor& weight, const Tensor& rstd,
         int64_t dims, double eps, GradMask<2> wants) {
        const Tensor& g = grads[0];
        LastDims over(input, dims);
        if (gradients_as_ops()) {  // as ops, so that it can be differentiated again
          Tensor x = cast(input, kernel_dtype(input));
          Tensor r = rsqrt(mean(x * x, over.last, true) + eps), z = x * r;
          Tensor h = weight.defined() ? g * weight : g;
          return std::tuple(r * (h - z * mean(h * z, over.last, true)), over.over_rows(g * z));
        }
        auto [grad_input, grad_weight, none] = normalized_rows_backward(
            g, input, over, Tensor(), rstd, weight, wants[1], false);
        return std::tuple(grad_input, grad_weight);
      })),
})

OP(rms_norm,
   "(Tensor input, int[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor", {
  .home    = "nn.functional",
  .doc     = R"(Divides by the root mean square of the last dims: x / sqrt(mean(x^2) + eps) * w.

From Zhang and Sennrich 2019. eps is the smallest step of the dtype when None, of float32 for half
types, which are computed in it. The result has the dtype of input.)",
  .dtypes  = floating_or_complex,
  .forward = [](const Tensor& input, ShapeRef shape, const Tensor& weight,
                std::optional<double> eps) {
    check_normalized_shape(input, shape);
    check_parameter(weight, shape, "weight");
    double smallest = eps ? *eps : real_dtype(input.dtype()) == DType::float64 ? 0x1p-52 : 0x1p-23;
    int64_t dims = int64_t(shape.size());
    if (!is_complex(input.dtype()) && !(weight.defined() && is_complex(weight.dtype())))
      return std::get<0>(call<"rms_norm_kernel", std::tuple<Tensor, Tensor>>(input, dims, weight,
                                                                           smallest));
    Tensor z = input * rsqrt(mean(input * input, LastDims(input, dims).last, true) + smallest);
    return cast(weight.defined() ? z * weight : z, input.dtype());
  },
})

}  // namespace rushlight

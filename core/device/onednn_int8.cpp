#include "core/device/onednn_int8.h"

#if RUSHLIGHT_ONEDNN

#include <mutex>

#include "core/device/onednn_desc.h"
#include "core/device/threads.h"

namespace rushlight::onednn {
namespace {

constexpr int kScale = DNNL_ARG_ATTR_SCALES, kZeroPoint = DNNL_ARG_ATTR_ZERO_POINTS;

// The formats that weights of this process were packed into; a format's number is its place + 1.
// They are few, and stay as long as the process.
class Formats {
 public:
  int64_t number_of(const_dnnl_memory_desc_t desc) {
    std::lock_guard lock(mutex_);
    for (size_t i = 0; i < list_.size(); ++i) {
      if (functions()->dnnl_memory_desc_equal(list_[i].get(), desc)) return int64_t(i) + 1;
    }
    list_.push_back(make<MemoryDesc>(functions()->dnnl_memory_desc_clone, desc));
    return int64_t(list_.size());
  }

  // A copy of a format; null when there is none of that number.
  MemoryDesc copy(int64_t number) {
    std::lock_guard lock(mutex_);
    if (number < 1 || size_t(number) > list_.size()) return nullptr;
    const_dnnl_memory_desc_t desc = list_[size_t(number) - 1].get();
    return make<MemoryDesc>(functions()->dnnl_memory_desc_clone, desc);
  }

 private:
  std::mutex mutex_;
  std::vector<MemoryDesc> list_;
};

Formats& formats() {
  static auto& all = *new Formats;  // other threads may outlive the statics
  return all;
}

bool is_linear(const Int8Convolution& p) { return p.conv.dims == 0; }

bool has_scales(const Int8Convolution& p) { return p.output != DType::int32; }

// (out, in) of a linear layer becomes the (in, out) of a matrix product.
Dims weight_dims(const Int8Convolution& p, const ConvDims& dims) {
  return is_linear(p) ? Dims{dims.weight[1], dims.weight[0]} : dims.weight;
}
MemoryDesc plain_weight(const Int8Convolution& p, const ConvDims& dims) {
  if (is_linear(p)) return strided(DType::int8, weight_dims(p, dims), {1, p.conv.in_channels});
  return dense(DType::int8, dims.weight, ImageLayout::channels_first, 0);
}

Attributes attributes_of(const Int8Convolution& p) {
  const Functions& f = *functions();
  Attributes attributes = make_attributes();
  if (p.relu) fuse_relu(attributes);
  int per_channel = is_linear(p) ? 1 << 1 : p.conv.groups > 1 ? 1 << 0 | 1 << 1 : 1 << 0;
  if (has_scales(p)) {
    check(f.dnnl_primitive_attr_set_scales_mask(attributes.get(), DNNL_ARG_SRC, 0));
    check(f.dnnl_primitive_attr_set_scales_mask(attributes.get(), DNNL_ARG_WEIGHTS,
                                                p.scale_per_channel ? per_channel : 0));
  }
  if (p.has_zero_point)
    check(f.dnnl_primitive_attr_set_zero_points_mask(attributes.get(), DNNL_ARG_SRC, 0));
  if (p.output == DType::uint8) {
    check(f.dnnl_primitive_attr_set_scales_mask(attributes.get(), DNNL_ARG_DST, 0));
    check(f.dnnl_primitive_attr_set_zero_points_mask(attributes.get(), DNNL_ARG_DST, 0));
  }
  return attributes;
}

MemoryDesc bias_desc(const Int8Convolution& p) {
  int64_t n = p.conv.out_channels;
  return is_linear(p) ? strided(DType::float32, {1, n}, {n, 1}) : strided(DType::float32, {n}, {1});
}

PrimitiveDesc describe_product(const Int8Convolution& p, const ConvDims& dims, bool has_bias,
                               const_dnnl_memory_desc_t weight) {
  const Functions& f = *functions();
  MemoryDesc input = dense(DType::uint8, dims.input, ImageLayout::channels_last, 1);
  MemoryDesc output = dense(p.output, dims.output, ImageLayout::channels_last, 1);
  MemoryDesc bias = has_bias ? bias_desc(p) : nullptr;
  Attributes attributes = attributes_of(p);
  if (is_linear(p)) {
    return describe(f.dnnl_matmul_primitive_desc_create, engine(), input.get(), weight, bias.get(),
                    output.get(), attributes.get());
  }
  return describe(f.dnnl_convolution_forward_primitive_desc_create, engine(),
                  dnnl_forward_inference, dnnl_convolution_direct, input.get(), weight, bias.get(),
                  output.get(), dims.stride.data(), dims.dilation.data(),
                  dims.padding_before.data(), dims.padding_after.data(), attributes.get());
}

// The operands stand in the order in which int8_convolution() passes their arrays.
std::unique_ptr<Plan> plan_product(const Int8Convolution& p, bool has_bias, MemoryDesc packed) {
  ConvDims dims(p.conv);
  bool is_packed = packed != nullptr;
  MemoryDesc any = any_format(DType::int8, weight_dims(p, dims));
  PrimitiveDesc desc = describe_product(p, dims, has_bias, is_packed ? packed.get() : any.get());
  if (!desc) return nullptr;
  std::vector<Operand> operands;
  auto add = [&](int argument, MemoryDesc outer) {
    operands.push_back({argument, argument == DNNL_ARG_DST, std::move(outer)});
  };
  int64_t scales = p.scale_per_channel ? p.conv.out_channels : 1;
  add(DNNL_ARG_SRC, dense(DType::uint8, dims.input, ImageLayout::channels_last, 1));
  add(DNNL_ARG_WEIGHTS, is_packed ? std::move(packed) : plain_weight(p, dims));
  add(DNNL_ARG_DST, dense(p.output, dims.output, ImageLayout::channels_last, 1));
  if (has_scales(p)) {
    add(kScale | DNNL_ARG_SRC, strided(DType::float32, {1}, {1}));
    add(kScale | DNNL_ARG_WEIGHTS, strided(DType::float32, {scales}, {1}));
  }
  if (has_bias) add(DNNL_ARG_BIAS, bias_desc(p));
  if (p.has_zero_point) add(kZeroPoint | DNNL_ARG_SRC, strided(DType::int32, {1}, {1}));
  if (p.output == DType::uint8) {
    add(kScale | DNNL_ARG_DST, strided(DType::float32, {1}, {1}));
    add(kZeroPoint | DNNL_ARG_DST, strided(DType::int32, {1}, {1}));
  }
  return std::make_unique<Plan>(desc, std::move(operands));
}

PlanKey key_of(const Int8Convolution& p, PlanKind kind, int64_t threads) {
  PlanKey key{kind, threads, int64_t(p.output), p.has_zero_point, p.scale_per_channel, p.relu};
  add_to_key(key, p.conv);
  return key;
}

// A thread multiplies bytes about eight times as fast as floats.
LibraryThreads threads_for(const Int8Convolution& p) {
  return LibraryThreads(is_worth_threads(multiplications(p.conv) / 8));
}

}  // namespace

bool int8_convolution(const Int8Convolution& p, const Int8Arrays& a) {
  if (!available()) return false;
  LibraryThreads threads = threads_for(p);
  bool has_bias = a.bias != nullptr;
  auto plan_with = [&](int64_t format) {
    PlanKey key = key_of(p, kBytes, threads.count());
    key.push_back(has_bias);
    key.push_back(format);
    return plan_for(key, [&]() -> std::unique_ptr<Plan> {
      MemoryDesc packed = formats().copy(format);
      if (format && !packed) return nullptr;
      return plan_product(p, has_bias, std::move(packed));
    });
  };
  Plan* plan = a.packed ? plan_with(a.format) : nullptr;
  bool is_packed = plan != nullptr;
  if (!plan) plan = plan_with(0);
  if (!plan) return false;

  SmallVector<void*, 12> arrays;
  auto add = [&](const void* array) { arrays.push_back(const_cast<void*>(array)); };
  add(a.input);
  add(is_packed ? a.packed : a.weight);
  add(a.output);
  if (has_scales(p)) {
    add(&a.input_scale);
    add(a.weight_scales);
  }
  if (has_bias) add(a.bias);
  if (p.has_zero_point) add(&a.input_zero_point);
  if (p.output == DType::uint8) {
    add(&a.output_scale);
    add(&a.output_zero_point);
  }
  plan->run({arrays.data(), arrays.size()});
  return true;
}

int64_t packed_format(const Int8Convolution& p) {
  if (!available()) return 0;
  LibraryThreads threads = threads_for(p);
  ConvDims dims(p.conv);
  MemoryDesc any = any_format(DType::int8, weight_dims(p, dims));
  PrimitiveDesc desc = describe_product(p, dims, true, any.get());
  if (!desc) return 0;
  return formats().number_of(
      functions()->dnnl_primitive_desc_query_md(desc.get(), dnnl_query_weights_md, 0));
}

size_t packed_bytes(int64_t format) {
  MemoryDesc desc = available() ? formats().copy(format) : nullptr;
  return desc ? functions()->dnnl_memory_desc_get_size(desc.get()) : 0;
}

void pack(const Int8Convolution& p, const void* weight, int64_t format, void* packed) {
  const Functions& f = *functions();
  MemoryDesc from = plain_weight(p, ConvDims(p.conv)), to = formats().copy(format);
  ASSERT(to);
  PrimitiveDesc desc = make<PrimitiveDesc>(f.dnnl_reorder_primitive_desc_create, from.get(),
                                           engine(), to.get(), engine(), nullptr);
  Primitive reorder = make<Primitive>(f.dnnl_primitive_create, desc.get());
  Stream stream = make<Stream>(f.dnnl_stream_create, engine(), dnnl_stream_default_flags);
  Memory source =
      make<Memory>(f.dnnl_memory_create, from.get(), engine(), const_cast<void*>(weight));
  Memory target = make<Memory>(f.dnnl_memory_create, to.get(), engine(), packed);
  dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, source.get()}, {DNNL_ARG_TO, target.get()}};
  check(f.dnnl_primitive_execute(reorder.get(), stream.get(), 2, arguments));
}

}  // namespace rushlight::onednn

#else

namespace rushlight::onednn {

bool int8_convolution(const Int8Convolution&, const Int8Arrays&) { return false; }
int64_t packed_format(const Int8Convolution&) { return 0; }
size_t packed_bytes(int64_t) { return 0; }
void pack(const Int8Convolution&, const void*, int64_t, void*) {}

}  // namespace rushlight::onednn

#endif

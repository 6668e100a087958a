#if RUSHLIGHT_ONEDNN

#include "core/device/onednn_desc.h"

#include "core/device/threads.h"

namespace rushlight::onednn {

dnnl_data_type_t data_type(DType dtype) {
  switch (dtype) {
    case DType::float32: return dnnl_f32;
    case DType::bfloat16: return dnnl_bf16;
    case DType::float16: return dnnl_f16;
    case DType::int8: return dnnl_s8;
    case DType::uint8: return dnnl_u8;
    case DType::int32: return dnnl_s32;
    default: return dnnl_data_type_undef;
  }
}

MemoryDesc strided(DType dtype, const Dims& dims, const Dims& strides) {
  dnnl_memory_desc_t desc = nullptr;
  dnnl_status_t status = functions()->dnnl_memory_desc_create_with_strides(
      &desc, int(dims.size()), dims.data(), data_type(dtype), strides.data());
  if (status == dnnl_invalid_arguments) return nullptr;
  check(status);
  return MemoryDesc(desc);
}

MemoryDesc any_format(DType dtype, const Dims& dims) {
  return make<MemoryDesc>(functions()->dnnl_memory_desc_create_with_tag, int(dims.size()),
                          dims.data(), data_type(dtype), dnnl_format_tag_any);
}

MemoryDesc dense(DType dtype, const Dims& dims, ImageLayout layout, size_t channels) {
  Dims strides(dims.size());
  int64_t stride = 1;
  if (layout == ImageLayout::channels_last) {
    strides[channels] = 1;
    stride = dims[channels];
  }
  for (size_t i = dims.size(); i-- > 0;) {
    if (layout == ImageLayout::channels_last && i == channels) continue;
    strides[i] = stride;
    stride *= dims[i];
  }
  return strided(dtype, dims, strides);
}

Attributes make_attributes() {
  Attributes attributes = make<Attributes>(functions()->dnnl_primitive_attr_create);
  check(functions()->dnnl_primitive_attr_set_scratchpad_mode(attributes.get(),
                                                             dnnl_scratchpad_mode_user));
  return attributes;
}

void fuse_relu(const Attributes& attributes) {
  PostOps post_ops = make<PostOps>(functions()->dnnl_post_ops_create);
  check(functions()->dnnl_post_ops_append_eltwise(post_ops.get(), dnnl_eltwise_relu, 0, 0));
  check(functions()->dnnl_primitive_attr_set_post_ops(attributes.get(), post_ops.get()));
}

void fuse_scaling(const Attributes& attributes, float alpha, float beta) {
  const Functions& f = *functions();
  PostOps post_ops = make<PostOps>(f.dnnl_post_ops_create);
  if (alpha != 1)
    check(f.dnnl_post_ops_append_eltwise(post_ops.get(), dnnl_eltwise_linear, alpha, 0));
  if (beta != 0) check(f.dnnl_post_ops_append_sum(post_ops.get(), beta, 0, dnnl_data_type_undef));
  check(f.dnnl_primitive_attr_set_post_ops(attributes.get(), post_ops.get()));
}

bool is_worth_threads(double multiplications) {
  return multiplications >= 2 * kMultiplicationsPerThread;
}

double multiplications(const Convolution& c) {
  double count = double(c.batch) * c.out_channels * (c.in_channels / c.groups);
  for (int i = 0; i < c.dims; ++i) count *= double(c.out_size(i)) * c.kernel[i];
  return count;
}

ConvDims::ConvDims(const Convolution& c) {
  input = {c.batch, c.in_channels};
  output = {c.batch, c.out_channels};
  if (c.groups > 1) weight.push_back(c.groups);
  weight.push_back(c.out_channels / c.groups);
  weight.push_back(c.in_channels / c.groups);
  bias = {c.out_channels};
  for (int i = 0; i < c.dims; ++i) {
    input.push_back(c.size[i]);
    output.push_back(c.out_size(i));
    weight.push_back(c.kernel[i]);
    stride.push_back(c.stride[i]);
    dilation.push_back(c.dilation[i] - 1);  // oneDNN counts the gaps
    padding_before.push_back(c.padding_before[i]);
    padding_after.push_back(c.padding_after[i]);
  }
}

void add_to_key(PlanKey& key, const Convolution& c) {
  for (int64_t size : {int64_t(c.dims), c.batch, c.groups, c.in_channels, c.out_channels}) {
    key.push_back(size);
  }
  for (const auto* list :
       {&c.size, &c.kernel, &c.stride, &c.dilation, &c.padding_before, &c.padding_after}) {
    for (int i = 0; i < c.dims; ++i) key.push_back((*list)[i]);
  }
}

}  // namespace rushlight::onednn

#endif

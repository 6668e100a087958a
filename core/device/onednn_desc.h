// Owns how arrays, convolutions and attributes are described to oneDNN: what the wrappers for
// floats (onednn.cpp) and for 8-bit integers (onednn_int8.cpp) share.
#pragma once

#include "core/device/onednn.h"
#include "core/device/onednn_plan.h"

namespace rushlight::onednn {

// The first word of each key.
enum PlanKind : int64_t { kMatmul, kForward, kBackwardInput, kBackwardWeight, kBytes };

using Dims = SmallVector<int64_t, 6>;

// dnnl_data_type_undef for dtypes that oneDNN does not know.
dnnl_data_type_t data_type(DType dtype);

// Null when the strides make elements overlap, which oneDNN refuses.
MemoryDesc strided(DType dtype, const Dims& dims, const Dims& strides);

// The primitive chooses the format.
MemoryDesc any_format(DType dtype, const Dims& dims);

// A dense array of these dims that lies in memory with dim `channels` last.
MemoryDesc dense(DType dtype, const Dims& dims, ImageLayout layout, size_t channels);

// Scratchpads come from our allocator, so that their pages stay warm.
Attributes make_attributes();
void fuse_relu(const Attributes& attributes);
// The result becomes alpha * result + beta * what its memory held.
void fuse_scaling(const Attributes& attributes, float alpha, float beta);

// Either one thread or all: a primitive runs with as many threads as it was made for.
bool is_worth_threads(double multiplications);
double multiplications(const Convolution& conv);

// The dims of a convolution as oneDNN counts them.
struct ConvDims {
  explicit ConvDims(const Convolution& conv);

  Dims input, weight, bias, output, stride, dilation, padding_before, padding_after;
};

// Adds to a plan's key what makes two convolutions the same, but for dtypes and layouts.
void add_to_key(PlanKey& key, const Convolution& conv);

}  // namespace rushlight::onednn

// Owns how operands are made ready for kernels that compute in one dtype, mostly float or double.
#pragma once

#include "core/tensor/pointwise.h"
#include "core/tensor/tile_loop.h"

namespace rushlight {

// What kernels compute in: half types in float32.
inline DType compute_dtype(DType dtype) { return dtype_of_compute(compute_of(dtype)); }

// A row-major operand of a dtype; one that is not given stays so.
inline Tensor prepared(const Tensor& t, DType dtype) {
  return t.defined() ? to_contiguous(to_dtype(t, dtype)) : t;
}

// An operand as PyTorch's loops read it next to another one of halves: a number is rounded to them.
inline Tensor rounded_next_to(const Tensor& other, const Tensor& operand) {
  bool rounds = is_half(other.dtype()) && operand.impl()->wrapped_number;
  return rounds ? to_dtype(operand, other.dtype()) : operand;
}

// f(Tag<T>{}) for float or double.
template <class F>
decltype(auto) by_type(DType dtype, F&& f) {
  ASSERT(dtype == DType::float32 || dtype == DType::float64);
  return dtype == DType::float32 ? f(Tag<float>{}) : f(Tag<double>{});
}

}  // namespace rushlight

// Defines promotion, result shape and result layout of pointwise formulas.
#include "core/tensor/pointwise.h"

#include "core/tensor/tile_loop.h"

namespace rushlight {
namespace {

int category(DType t) { return is_complex(t) ? 3 : is_floating(t) ? 2 : is_integral(t) ? 1 : 0; }

DType number_dtype(DType wrapped) {
  if (is_complex(wrapped)) return complex_dtype(default_dtype());
  return is_floating(wrapped) ? default_dtype() : wrapped;
}

// Promotion within one priority: tensors with dims, then 0-d tensors, then numbers.
struct Promotion {
  bool seen[3] = {};
  DType dtype[3] = {};

  void add(const Tensor& tensor) {
    const TensorImpl& impl = *tensor.impl();
    int priority = impl.wrapped_number ? 2 : impl.sizes.empty() ? 1 : 0;
    DType t = impl.wrapped_number ? number_dtype(impl.dtype) : impl.dtype;
    dtype[priority] = seen[priority] ? promote(dtype[priority], t) : t;
    seen[priority] = true;
  }
  DType result() const {
    int first = seen[0] ? 0 : seen[1] ? 1 : 2;
    DType result = dtype[first];
    for (int p = first + 1; p < 3; ++p) {
      if (!seen[p] || category(dtype[p]) <= category(result)) continue;
      // A complex number makes a real tensor complex without widening it.
      result = is_complex(dtype[p]) && is_floating(result) ? complex_dtype(result) : dtype[p];
    }
    return result;
  }
};

struct Typing {
  DType common;   // of the operands, after int-to-float where the formula needs floats
  DType compute;  // what the loop reads
  DType result;
  DType written;  // what the loop writes
  PointwiseLoop loop;
};

Typing typing_of(const Formula& formula, DType common) {
  bool floats_only = formula.counts.kind == 'T' || formula.counts.kind == 'C';
  Typing t;
  t.common = floats_only && !is_differentiable(common) ? default_dtype() : common;
  Compute compute = compute_of(t.common);
  t.compute = dtype_of_compute(compute);
  const PointwiseLoops* loops = formula.loops[active_isa_index()];
  if (!loops->run[int(compute)]) loops = formula.loops[0];  // complex: baseline only
  t.loop = loops->run[int(compute)];
  CHECK(t.loop, ErrorKind::kNotImplemented, "not implemented for ", dtype_name(common), ".",
        is_complex(common) ? " Use the real and imaginary parts." : "");
  switch (loops->stored[int(compute)]) {
    case Stored::same:
      t.result = t.common;
      t.written = t.compute;
      break;
    case Stored::boolean: t.result = t.written = DType::bool_; break;
    case Stored::real:
      t.result = real_dtype(t.common);
      t.written = real_dtype(t.compute);
      break;
  }
  return t;
}

// The strides of a fresh result: those of the first dense operand of full shape, so that
// channels_last stays channels_last.
Tensor empty_result(ShapeRef sizes, DType dtype, std::span<const Tensor* const> operands) {
  for (const Tensor* operand : operands) {
    if (!same_shape(operand->sizes(), sizes)) continue;
    if (operand->is_contiguous()) break;
    if (operand->is_dense()) return empty_strided(sizes, operand->strides(), dtype, operand->device());
  }
  return empty(sizes, dtype, operands[0]->device());
}

}  // namespace

DType result_dtype(std::span<const Tensor* const> operands) {
  Promotion promotion;
  for (const Tensor* operand : operands) promotion.add(*operand);
  return promotion.result();
}

Compute compute_of(DType dtype) {
  if (dtype == DType::float64) return Compute::f64;
  if (dtype == DType::complex64) return Compute::c64;
  if (dtype == DType::complex128) return Compute::c128;
  return is_floating(dtype) ? Compute::f32 : Compute::i64;
}

DType dtype_of_compute(Compute compute) {
  constexpr DType dtypes[] = {DType::float32, DType::float64, DType::int64, DType::complex64,
                              DType::complex128};
  return dtypes[int(compute)];
}

Tensor pointwise(const Formula& formula, std::span<const Tensor* const> operands,
                 std::span<const Scalar> scalars, const Tensor* into) {
  const FormulaParams& counts = formula.counts;
  ASSERT(int(operands.size()) == counts.operands && int(scalars.size()) == counts.scalars);

  Promotion promotion;
  Shape broadcast;
  const Shape* sizes = &operands[0]->sizes();
  for (size_t k = 0; k < operands.size(); ++k) {
    const Tensor& operand = *operands[k];
    if (!counts.is_mask[k]) promotion.add(operand);
    if (operand.sizes() == *sizes || operand.dim() == 0) continue;
    broadcast = broadcast_shapes(*sizes, operand.sizes());
    sizes = &broadcast;
  }
  Typing typing = typing_of(formula, promotion.result());

  alignas(16) char scalar_bytes[kMaxScalars * sizeof(std::complex<double>)];
  visit_dtype(typing.compute, [&]<class T>(Tag<T>) {
    if constexpr (!std::is_same_v<T, Half> && !std::is_same_v<T, BFloat16>)
      for (size_t j = 0; j < scalars.size(); ++j)
        reinterpret_cast<T*>(scalar_bytes)[j] = scalars[j].to<T>();
  });

  Tensor result;
  if (into) {
    CHECK(into->sizes() == *sizes, "output with shape ", into->sizes(),
          " doesn't match the broadcast shape ", *sizes);
    CHECK(can_cast(typing.result, into->dtype()), "result type ", dtype_name(typing.result),
          " can't be cast to the desired output type ", dtype_name(into->dtype()));
    check_writable(*into);
    result = *into;
  } else {
    result = empty_result(*sizes, typing.result, operands);
  }

  Tensor held[kMaxOperands];  // copies of operands that the result would overwrite too early
  TileOperand lanes[kMaxOperands];
  for (size_t k = 0; k < operands.size(); ++k) {
    const Tensor* operand = operands[k];
    if (into && operand->storage() == into->storage() && may_overlap(*operand, *into)) {
      bool same_window = operand->offset() == into->offset() && operand->dtype() == into->dtype() &&
                         operand->sizes() == into->sizes() && operand->strides() == into->strides();
      if (!same_window) operand = &(held[k] = clone_dense(*operand));
    }
    lanes[k] = {operand, counts.is_mask[k] ? DType::bool_ : typing.compute};
  }
  run_tile_loop({&result, typing.written}, {lanes, operands.size()}, typing.loop, scalar_bytes);
  return result;
}

}  // namespace rushlight

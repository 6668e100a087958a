// Owns the ops between complex numbers and their real and imaginary parts.
#include "core/ops/op.h"
#include "core/tensor/dims.h"

namespace rushlight {
namespace {

constexpr DTypeSet single_or_double([](DType t) {
  return t == DType::float32 || t == DType::float64;
});

// The same bytes in another dtype and layout.
Tensor reread(const Tensor& input, DType dtype, const Shape& sizes, const Shape& strides,
              int64_t offset) {
  checked_numel(sizes);
  Tensor view = shallow_copy(input);
  TensorImpl& impl = *view.impl();
  impl.dtype = dtype;
  impl.sizes = sizes;
  impl.strides = strides;
  impl.offset = offset;
  impl.layout_changed();
  return view;
}

// view_as_complex of parts in any layout.
Tensor joined(const Tensor& parts) { return call<"view_as_complex", Tensor>(contiguous(parts)); }

Tensor part(const Tensor& input, int64_t which) {
  return select(call<"view_as_real", Tensor>(input), -1, which);
}

}  // namespace

OP(view_as_real, "(Tensor input) -> Tensor", {
  .doc     = R"(Complex numbers seen as pairs (real, imaginary) in a new last dim, without a copy.

Example:
    >>> torch.view_as_real(torch.tensor([1 + 2j]))
    tensor([[1., 2.]]))",
  .variants = function,
  .is_view = true,
  .batch   = by_last_dims,
  .forward = [](const Tensor& input) {
    CHECK(is_complex(input.dtype()), "view_as_real is only supported for complex tensors, not ",
          dtype_name(input.dtype()), ".");
    Shape sizes = input.sizes(), strides = input.strides();
    for (int64_t& stride : strides) stride *= 2;
    sizes.push_back(2);
    strides.push_back(1);
    return reread(input, real_dtype(input.dtype()), sizes, strides, input.offset() * 2);
  },
  .grads   = grads(d<"input">([](const Tensor& g) { return joined(g); })),
})

OP(view_as_complex, "(Tensor input) -> Tensor", {
  .doc     = R"(Pairs (real, imaginary) in the last dim seen as complex numbers, without a copy.

Raises RuntimeError when the pairs do not lie in memory as complex numbers do.)",
  .dtypes  = single_or_double,
  .variants = function,
  .is_view = true,
  .autocast = autocast::on_cpu(autocast::single),
  .batch   = by_last_dims,
  .forward = [](const Tensor& input) {
    CHECK(input.dim() > 0 && input.size(-1) == 2,
          "Tensor must have a last dimension of size 2, got shape ", input.sizes(), ".");
    CHECK(input.stride(-1) == 1, "Tensor must have a last dimension with stride 1, got strides ",
          input.strides(), ".");
    Shape sizes(input.sizes().begin(), input.sizes().end() - 1);
    Shape strides(input.strides().begin(), input.strides().end() - 1);
    for (size_t d = 0; d < strides.size(); ++d) {
      int64_t& stride = strides[d];
      CHECK(stride % 2 == 0 || sizes[d] <= 1,
            "Tensor must have a stride divisible by 2 for all but last dimension, got strides ",
            input.strides(), ".");
      stride /= 2;
    }
    CHECK(input.offset() % 2 == 0, "Tensor must have a storage_offset divisible by 2, got ",
          input.offset(), ".");
    return reread(input, complex_dtype(input.dtype()), sizes, strides, input.offset() / 2);
  },
  .grads   = grads(d<"input">([](const Tensor& g) { return call<"view_as_real", Tensor>(g); })),
})

OP(real, "(Tensor input) -> Tensor", {
  .doc     = R"(The real part of complex numbers, a view; real tensors are returned as they are.)",
  .variants = function,
  .sparse  = by_entries,
  .forward = [](const Tensor& input) { return is_complex(input.dtype()) ? part(input, 0) : input; },
})

OP(imag, "(Tensor input) -> Tensor", {
  .doc     = R"(The imaginary part of complex numbers, a view.)",
  .variants = function,
  .sparse  = by_entries,
  .forward = [](const Tensor& input) {
    CHECK(is_complex(input.dtype()), "not implemented for tensors with non-complex dtypes, got ",
          dtype_name(input.dtype()), ".");
    return part(input, 1);
  },
})

OP(complex, "(Tensor real, Tensor imag) -> Tensor", {
  .doc     = R"(The complex numbers with these real and imaginary parts.

Example:
    >>> torch.complex(torch.tensor([1.0]), torch.tensor([2.0]))
    tensor([1.+2.j]))",
  .dtypes  = single_or_double,
  .forward = [](const Tensor& real, const Tensor& imag) {
    CHECK(real.dtype() == imag.dtype(), "Expected object of scalar type ", dtype_name(real.dtype()),
          " but got scalar type ", dtype_name(imag.dtype()), " for second argument.");
    Shape sizes = broadcast_shapes(real.sizes(), imag.sizes());
    const Tensor parts[] = {expand(real, sizes), expand(imag, sizes)};
    return call<"view_as_complex", Tensor>(stack(parts, -1));
  },
})

OP(polar, "(Tensor abs, Tensor angle) -> Tensor", {
  .doc     = R"(The complex numbers with these magnitudes and angles: abs * exp(1j * angle).

Example:
    >>> torch.polar(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 0.0]))
    tensor([1.+0.j, 2.+0.j]))",
  .dtypes  = single_or_double,
  .autocast = autocast::on_cpu(autocast::single),
  .forward = [](const Tensor& abs, const Tensor& angle) {
    CHECK(abs.dtype() == angle.dtype(), "Expected object of scalar type ", dtype_name(abs.dtype()),
          " but got scalar type ", dtype_name(angle.dtype()), " for second argument.");
    return call<"complex", Tensor>(abs * cos(angle), abs * sin(angle));
  },
})

}  // namespace rushlight

// Declares, for C++, the ops that other ops and the bindings call.
//
// call<"name", Result> reaches the OP block of that name; a signature that differs from the
// block's does not link. Python's names and defaults are those of the schemas.
#pragma once

#include <tuple>

#include "core/base/schema.h"
#include "core/ops/value.h"

namespace rushlight {

template <FixedString name, class Signature>
struct OpRef {
  static Signature* const call;
};

namespace detail {
template <class T>
struct Passed {
  using type = T;
};
template <>
struct Passed<Tensor> {
  using type = const Tensor&;
};
}  // namespace detail

template <FixedString name, class R, class... Args>
inline R call(const Args&... args) {
  return OpRef<name, R(typename detail::Passed<Args>::type...)>::call(args...);
}

// pointwise_unary.cpp
inline Tensor neg(const Tensor& input) { return call<"neg", Tensor>(input); }
inline Tensor abs(const Tensor& input) { return call<"abs", Tensor>(input); }
inline Tensor sgn(const Tensor& input) { return call<"sgn", Tensor>(input); }
inline Tensor sign(const Tensor& input) { return call<"sign", Tensor>(input); }
inline Tensor conj(const Tensor& input) { return call<"conj", Tensor>(input); }
inline Tensor exp(const Tensor& input) { return call<"exp", Tensor>(input); }
inline Tensor exp2(const Tensor& input) { return call<"exp2", Tensor>(input); }
inline Tensor expm1(const Tensor& input) { return call<"expm1", Tensor>(input); }
inline Tensor log(const Tensor& input) { return call<"log", Tensor>(input); }
inline Tensor log2(const Tensor& input) { return call<"log2", Tensor>(input); }
inline Tensor log10(const Tensor& input) { return call<"log10", Tensor>(input); }
inline Tensor log1p(const Tensor& input) { return call<"log1p", Tensor>(input); }
inline Tensor sqrt(const Tensor& input) { return call<"sqrt", Tensor>(input); }
inline Tensor rsqrt(const Tensor& input) { return call<"rsqrt", Tensor>(input); }
inline Tensor reciprocal(const Tensor& input) { return call<"reciprocal", Tensor>(input); }
inline Tensor sin(const Tensor& input) { return call<"sin", Tensor>(input); }
inline Tensor cos(const Tensor& input) { return call<"cos", Tensor>(input); }
inline Tensor tan(const Tensor& input) { return call<"tan", Tensor>(input); }
inline Tensor sinh(const Tensor& input) { return call<"sinh", Tensor>(input); }
inline Tensor cosh(const Tensor& input) { return call<"cosh", Tensor>(input); }
inline Tensor tanh(const Tensor& input) { return call<"tanh", Tensor>(input); }
inline Tensor erf(const Tensor& input) { return call<"erf", Tensor>(input); }
inline Tensor erfc(const Tensor& input) { return call<"erfc", Tensor>(input); }
inline Tensor floor(const Tensor& input) { return call<"floor", Tensor>(input); }
inline Tensor ceil(const Tensor& input) { return call<"ceil", Tensor>(input); }
inline Tensor trunc(const Tensor& input) { return call<"trunc", Tensor>(input); }
inline Tensor digamma(const Tensor& input) { return call<"digamma", Tensor>(input); }
inline Tensor trigamma(const Tensor& input) { return call<"_trigamma", Tensor>(input); }
inline Tensor sigmoid(const Tensor& input) { return call<"sigmoid", Tensor>(input); }
inline Tensor isnan(const Tensor& input) { return call<"isnan", Tensor>(input); }
inline Tensor xlogy(const Tensor& input, const Tensor& other) {
  return call<"xlogy", Tensor>(input, other);
}
inline Tensor isfinite(const Tensor& input) { return call<"isfinite", Tensor>(input); }
inline Tensor logical_not(const Tensor& input) { return call<"logical_not", Tensor>(input); }

// pointwise_binary.cpp
inline Tensor add(const Tensor& input, const Tensor& other, Scalar alpha = 1) {
  return call<"add", Tensor>(input, other, alpha);
}
inline Tensor sub(const Tensor& input, const Tensor& other, Scalar alpha = 1) {
  return call<"sub", Tensor>(input, other, alpha);
}
inline Tensor mul(const Tensor& input, const Tensor& other) {
  return call<"mul", Tensor>(input, other);
}
inline Tensor div(const Tensor& input, const Tensor& other) {
  return call<"div", Tensor>(input, other);
}
inline Tensor floor_divide(const Tensor& input, const Tensor& other) {
  return call<"floor_divide", Tensor>(input, other);
}
inline Tensor trunc_divide(const Tensor& input, const Tensor& other) {
  return call<"_trunc_divide", Tensor>(input, other);
}
inline Tensor remainder(const Tensor& input, const Tensor& other) {
  return call<"remainder", Tensor>(input, other);
}
inline Tensor pow(const Tensor& input, const Tensor& exponent) {
  return call<"pow", Tensor>(input, exponent);
}
// Refuses an integer division of which some divisor is zero.
void refuse_integer_division_by_zero(const Tensor& input, const Tensor& other);
// g times the conjugate of a number; g itself when that is one.
Tensor scaled(const Tensor& g, const Scalar& factor);
inline Tensor logical_and(const Tensor& input, const Tensor& other) {
  return call<"logical_and", Tensor>(input, other);
}
inline Tensor logical_or(const Tensor& input, const Tensor& other) {
  return call<"logical_or", Tensor>(input, other);
}

// pointwise_choice.cpp
inline Tensor maximum(const Tensor& input, const Tensor& other) {
  return call<"maximum", Tensor>(input, other);
}
inline Tensor minimum(const Tensor& input, const Tensor& other) {
  return call<"minimum", Tensor>(input, other);
}
// The neighbor of input towards other; both are of one half type.
Tensor next_half(const Tensor& input, const Tensor& other);
inline Tensor where(const Tensor& condition, const Tensor& input, const Tensor& other) {
  return call<"where", Tensor>(condition, input, other);
}

// compare.cpp
inline Tensor eq(const Tensor& input, const Tensor& other) {
  return call<"eq", Tensor>(input, other);
}
inline Tensor ne(const Tensor& input, const Tensor& other) {
  return call<"ne", Tensor>(input, other);
}
inline Tensor lt(const Tensor& input, const Tensor& other) {
  return call<"lt", Tensor>(input, other);
}
inline Tensor le(const Tensor& input, const Tensor& other) {
  return call<"le", Tensor>(input, other);
}
inline Tensor gt(const Tensor& input, const Tensor& other) {
  return call<"gt", Tensor>(input, other);
}
inline Tensor ge(const Tensor& input, const Tensor& other) {
  return call<"ge", Tensor>(input, other);
}

// Whether all elements of a bool tensor are true: inside vmap of all samples, for checks of values.
bool all_true(const Tensor& input);

// activation.cpp
inline Tensor softplus(const Tensor& input) { return call<"softplus", Tensor>(input, 1.0, 20.0); }
inline Tensor tanh_softplus(const Tensor& input) { return tanh(softplus(input)); }

// loss_pointwise.cpp
// The losses themselves, their mean or their sum.
Tensor reduce_loss(const Tensor& losses, std::string_view reduction);
// The same of losses times a weight of the input's sizes; the mean is over the weights.
Tensor reduce_weighted_loss(const Tensor& losses, const Tensor& weight, const Tensor& input,
                            std::string_view reduction);

// creation.cpp
inline Tensor full(ShapeRef size, Scalar value, std::optional<DType> dtype = {},
                   Device device = {}) {
  return call<"full", Tensor>(size, value, dtype, std::optional<Device>(device));
}
inline Tensor zeros_like(const Tensor& input) {
  return call<"zeros_like", Tensor>(input, std::optional<DType>(), std::optional<Device>(),
                                    std::optional<MemoryFormat>());
}
inline Tensor ones_like(const Tensor& input) {
  return call<"ones_like", Tensor>(input, std::optional<DType>(), std::optional<Device>(),
                                   std::optional<MemoryFormat>());
}
inline Tensor zeros(ShapeRef size, DType dtype, Device device = {}) {
  return call<"zeros", Tensor>(size, std::optional<DType>(dtype), std::optional<Device>(device));
}

// Zeros of the dtype of input that may be written wherever input has samples: see ops/lift.h.
inline Tensor new_zeros(const Tensor& input, ShapeRef size) {
  return call<"new_zeros", Tensor>(input, size, std::optional<DType>(), std::optional<Device>());
}

// cast_copy.cpp
inline Tensor clone(const Tensor& input) {
  return call<"clone", Tensor>(input, std::optional<MemoryFormat>());
}
inline Tensor contiguous(const Tensor& input) {
  return call<"contiguous", Tensor>(input, std::optional<MemoryFormat>());
}
// A copy in another dtype, or the tensor itself; differentiable.
inline Tensor cast(const Tensor& input, DType dtype) {
  return call<"_cast", Tensor>(input, std::optional<DType>(dtype));
}
inline Tensor copy_(const Tensor& input, const Tensor& src) {
  return call<"copy_", Tensor>(input, src, false);
}

// reduce.cpp: an empty `dim` means all dims
inline Tensor sum(const Tensor& input, ShapeRef dim = {}, bool keepdim = false) {
  return call<"sum", Tensor>(input, std::optional<ShapeRef>(dim), keepdim, std::optional<DType>());
}
inline Tensor mean(const Tensor& input, ShapeRef dim = {}, bool keepdim = false) {
  return call<"mean", Tensor>(input, std::optional<ShapeRef>(dim), keepdim, std::optional<DType>());
}
// Sums over the dims that broadcasting added, so that the result has these sizes.
inline Tensor sum_to(const Tensor& input, ShapeRef size) {
  return call<"_sum_to", Tensor>(input, size);
}

// shape.cpp
inline Tensor reshape(const Tensor& input, ShapeRef shape) {
  return call<"reshape", Tensor>(input, shape);
}
inline Tensor view(const Tensor& input, ShapeRef size) { return call<"view", Tensor>(input, size); }
inline Tensor expand(const Tensor& input, ShapeRef size) {
  return call<"expand", Tensor>(input, size);
}
inline Tensor permute(const Tensor& input, ShapeRef dims) {
  return call<"permute", Tensor>(input, dims);
}
inline Tensor transpose(const Tensor& input, int64_t dim0, int64_t dim1) {
  return call<"transpose", Tensor>(input, dim0, dim1);
}
inline Tensor unsqueeze(const Tensor& input, int64_t dim) {
  return call<"unsqueeze", Tensor>(input, dim);
}
inline Tensor squeeze(const Tensor& input, int64_t dim) {
  return call<"squeeze_dim", Tensor>(input, dim);
}
inline Tensor slice(const Tensor& input, int64_t dim, int64_t start, int64_t end, int64_t step) {
  return call<"_slice", Tensor>(input, dim, start, end, step);
}
inline Tensor select(const Tensor& input, int64_t dim, int64_t index) {
  return call<"select", Tensor>(input, dim, index);
}
inline Tensor narrow(const Tensor& input, int64_t dim, int64_t start, int64_t length) {
  return call<"narrow", Tensor>(input, dim, start, length);
}
inline Tensor as_strided(const Tensor& input, ShapeRef size, ShapeRef stride,
                         std::optional<int64_t> offset = {}) {
  return call<"as_strided", Tensor>(input, size, stride, offset);
}
inline Tensor cat(TensorList tensors, int64_t dim) { return call<"cat", Tensor>(tensors, dim); }
inline Tensor stack(TensorList tensors, int64_t dim) { return call<"stack", Tensor>(tensors, dim); }

// softmax.cpp
inline Tensor softmax(const Tensor& input, int64_t dim) {
  return call<"softmax", Tensor>(input, std::optional<int64_t>(dim), std::optional<DType>(),
                                 int64_t(3));
}
inline Tensor log_softmax(const Tensor& input, int64_t dim) {
  return call<"log_softmax", Tensor>(input, std::optional<int64_t>(dim), std::optional<DType>(),
                                     int64_t(3));
}

// random.cpp, dropout.cpp
// Tensors of ones with probability p and zeros elsewhere.
inline Tensor bernoulli(const Tensor& like, double p) {
  return call<"bernoulli_p", Tensor>(like, p, static_cast<Generator*>(nullptr));
}

// matmul.cpp
inline Tensor mm(const Tensor& input, const Tensor& mat2) {
  return call<"mm", Tensor>(input, mat2);
}
inline Tensor bmm(const Tensor& input, const Tensor& mat2) {
  return call<"bmm", Tensor>(input, mat2);
}
inline Tensor matmul(const Tensor& input, const Tensor& other) {
  return call<"matmul", Tensor>(input, other);
}
inline Tensor dot(const Tensor& input, const Tensor& tensor) {
  return call<"dot", Tensor>(input, tensor);
}

// index.cpp, gather_scatter.cpp; an undefined index takes the whole dim
inline Tensor index(const Tensor& input, TensorList indices) {
  return call<"_index", Tensor>(input, indices);
}
inline Tensor index_put_(const Tensor& input, TensorList indices, const Tensor& values,
                         bool accumulate) {
  return call<"_index_put_", Tensor>(input, indices, values, accumulate);
}
inline Tensor gather(const Tensor& input, int64_t dim, const Tensor& index) {
  return call<"gather", Tensor>(input, dim, index, false);
}
inline Tensor nonzero(const Tensor& input) { return call<"nonzero", Tensor>(input); }

// ---- the vocabulary of formulas, for Tensors ---------------------------------------------------

inline Tensor operator-(const Tensor& a) { return neg(a); }
#define RUSHLIGHT_OPERATOR(symbol, op)                                                          \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { return op(a, b); }          \
  inline Tensor operator symbol(const Tensor& a, Scalar b) { return op(a, wrapped_number(b)); } \
  inline Tensor operator symbol(Scalar a, const Tensor& b) { return op(wrapped_number(a), b); }
RUSHLIGHT_OPERATOR(+, add)
RUSHLIGHT_OPERATOR(-, sub)
RUSHLIGHT_OPERATOR(*, mul)
RUSHLIGHT_OPERATOR(/, div)
RUSHLIGHT_OPERATOR(==, eq)
RUSHLIGHT_OPERATOR(!=, ne)
RUSHLIGHT_OPERATOR(<, lt)
RUSHLIGHT_OPERATOR(<=, le)
RUSHLIGHT_OPERATOR(>, gt)
RUSHLIGHT_OPERATOR(>=, ge)
RUSHLIGHT_OPERATOR(&, logical_and)
RUSHLIGHT_OPERATOR(|, logical_or)
#undef RUSHLIGHT_OPERATOR
inline Tensor operator!(const Tensor& a) { return logical_not(a); }

inline Tensor max(const Tensor& a, const Tensor& b) { return maximum(a, b); }
inline Tensor min(const Tensor& a, const Tensor& b) { return minimum(a, b); }
inline Tensor max(const Tensor& a, double b) { return maximum(a, wrapped_number(b)); }
inline Tensor min(const Tensor& a, double b) { return minimum(a, wrapped_number(b)); }
inline Tensor pow(const Tensor& a, Scalar b) { return pow(a, wrapped_number(b)); }
inline Tensor clamp(const Tensor& a, double low, double high) { return min(max(a, low), high); }
inline Tensor normal_density(const Tensor& a) { return exp(a * a * -0.5) * 0.3989422804014327; }
inline Tensor normal_cdf(const Tensor& a) { return erfc(a * -0.7071067811865476) * 0.5; }
inline Tensor select(const Tensor& condition, const Tensor& a, const Tensor& b) {
  return where(condition, a, b);
}
inline Tensor select(const Tensor& condition, const Tensor& a, double b) {
  return where(condition, a, wrapped_number(b));
}
inline Tensor select(const Tensor& condition, double a, const Tensor& b) {
  return where(condition, wrapped_number(a), b);
}

}  // namespace rushlight

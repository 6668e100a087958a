// Defines promotion, result shape and result layout of pointwise formulas.
#include "core/tensor/pointwise.h"

#include <algorithm>

#include "core/tensor/fusion.h"
#include "core/tensor/memory_order.h"

namespace rushlight {
namespace {

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
      if (!seen[p] || can_cast(dtype[p], result)) continue;
      // A complex number makes a real tensor complex without widening it.
      result = is_complex(dtype[p]) && is_floating(result) ? complex_dtype(result) : dtype[p];
    }
    return result;
  }
};

bool can_hold(DType narrow, int64_t number) {
  return visit_dtype(narrow, [&]<class T>(Tag<T>) {
    if constexpr (std::is_integral_v<T>) return int64_t(T(number)) == number;
    else return false;
  });
}

// Whether all numbers that come without promotion, 0-d tensors and scalars, are of a narrow dtype.
bool are_narrow(DType narrow, const FormulaParams& counts, std::span<const Tensor* const> operands,
                std::span<const Scalar> scalars) {
  for (size_t k = 0; k < operands.size(); ++k) {
    const Tensor& operand = *operands[k];
    if (operand.dim() || operand.dtype() == narrow || counts.is_mask[k]) continue;
    int64_t number;
    cast_loop(operand.dtype(), DType::int64)(operand.data(), &number, 1);
    if (!can_hold(narrow, number)) return false;
  }
  return std::ranges::all_of(
      scalars, [&](const Scalar& scalar) { return can_hold(narrow, scalar.to<int64_t>()); });
}

Typing typing_of(const Formula& formula, DType common) {
  bool floats_only = formula.counts.kind == 'T' || formula.counts.kind == 'C';
  Typing t;
  t.common = floats_only && !is_differentiable(common) ? default_dtype() : common;
  Compute compute = compute_of(t.common);
  t.read = t.compute = dtype_of_compute(compute);
  const PointwiseLoops* loops = formula.loops[active_isa_index()];
  // Functions of complex numbers, and uint64, have loops in the baseline set only.
  if (!loops->kernels[int(compute)].run) loops = formula.loops[0];
  t.kernel = loops->kernels[int(compute)];
  CHECK(t.kernel.run, ErrorKind::kNotImplemented, "not implemented for ", dtype_name(common), ".",
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

// The same with a loop that reads and writes a narrow dtype as it is, where there is one.
void make_narrow(Typing& typing, const Formula& formula) {
  const PointwiseKernel& kernel =
      formula.loops[active_isa_index()]->narrow[narrow_index(typing.common)];
  if (!kernel.run) return;
  typing.kernel = kernel;
  typing.compute = DType::int32;
  typing.read = typing.common;
  if (typing.written == DType::int64) typing.written = typing.common;
}

// Whether it is of a half dtype, or a number that it holds.
bool is_of_half(DType half, const Tensor& operand) {
  if (operand.dtype() == half) return true;
  if (operand.dim()) return false;
  double number, held;
  uint16_t rounded;
  cast_loop(operand.dtype(), DType::float64)(operand.data(), &number, 1);
  cast_loop(DType::float64, half)(&number, &rounded, 1);
  cast_loop(half, DType::float64)(&rounded, &held, 1);
  return held == number;
}

// The same with a loop that reads and writes float16 or bfloat16 as they are, where there is one.
void leave_half(Typing& typing, const Formula& formula, std::span<const Tensor* const> operands) {
  const PointwiseKernel& kernel =
      formula.loops[active_isa_index()]->halves[typing.common == DType::bfloat16];
  if (!kernel.run) return;
  for (size_t k = 0; k < operands.size(); ++k)
    if (!formula.counts.is_mask[k] && !is_of_half(typing.common, *operands[k])) return;
  typing.kernel = kernel;
  typing.read = typing.written = typing.common;
}

// The dtype that the operands compute in; masks have no part in it.
DType common_dtype(const FormulaParams& counts, std::span<const Tensor* const> operands) {
  const Tensor* first = nullptr;
  bool uniform = true;  // the usual case, decided without looking at priorities
  for (size_t k = 0; k < operands.size(); ++k) {
    if (counts.is_mask[k]) continue;
    if (!first) first = operands[k];
    uniform &= operands[k]->dtype() == first->dtype() && !operands[k]->impl()->wrapped_number;
  }
  if (!first) return DType::bool_;
  if (uniform) return first->dtype();
  Promotion promotion;
  for (size_t k = 0; k < operands.size(); ++k)
    if (!counts.is_mask[k]) promotion.add(*operands[k]);
  return promotion.result();
}

bool are_of_dtype(DType dtype, const FormulaParams& counts,
                  std::span<const Tensor* const> operands) {
  for (size_t k = 0; k < operands.size(); ++k)
    if (!counts.is_mask[k] && operands[k]->dtype() != dtype) return false;
  return true;
}

// Compares what all operands are in the dtype that they have in common: 0.1 equals the half number
// that it rounds to, though the loop would see more of its digits.
Tensor compare_rounded(const Formula& formula, DType common,
                       std::span<const Tensor* const> operands, std::span<const Scalar> scalars,
                       const Tensor* into) {
  Tensor rounded[kMaxOperands];
  const Tensor* all[kMaxOperands];
  for (size_t k = 0; k < operands.size(); ++k) {
    bool is_read_as_it_is = formula.counts.is_mask[k];
    if (!is_read_as_it_is) rounded[k] = to_dtype(*operands[k], common);
    all[k] = is_read_as_it_is ? operands[k] : &rounded[k];
  }
  return pointwise(formula, {all, operands.size()}, scalars, into);
}

void write_scalars(DType compute, std::span<const Scalar> scalars, char* to) {
  for (const Scalar& scalar : scalars) {
    CHECK(is_complex(compute) || !scalar.is_complex(),
          "For non-complex input tensors, a number argument must not be a complex number, got ",
          scalar);
    CHECK(!is_integral(compute) || scalar.is_whole(),
          "For integral input tensors, a number argument must not be a floating point number, got ",
          scalar);
  }
  visit_dtype(compute, [&]<class T>(Tag<T>) {
    for (size_t j = 0; j < scalars.size(); ++j) reinterpret_cast<T*>(to)[j] = scalars[j].to<T>();
  });
}

// Whether the loop could write memory of the operand before it has read it.
bool overwritten_early(const Tensor& operand, const Tensor& into) {
  if (!may_overlap(operand, into)) return false;
  bool same_window = operand.offset() == into.offset() && operand.dtype() == into.dtype() &&
                     operand.sizes() == into.sizes() && operand.strides() == into.strides();
  return !same_window;
}

bool are_row_major(std::span<const Tensor* const> operands) {
  return std::all_of(operands.begin(), operands.end(),
                     [](const Tensor* t) { return t->is_contiguous() || t->dim() == 0; });
}

void run(const Formula& formula, const Typing& typing, const TileOperand& result,
         std::span<const TileOperand> operands, const void* scalars) {
  switch (result.tensor->device().type) {
    case DeviceType::cpu: return run_tile_loop(result, operands, typing.kernel, scalars);
    case DeviceType::cuda:
      if (result.tensor->numel() == 0) return;
      return run_cuda_loop(formula, typing.compute, result, operands, scalars);
    case DeviceType::meta: return;
  }
}

}  // namespace

namespace {
std::vector<const Formula*>& formulas() {
  static std::vector<const Formula*> all;
  return all;
}
}  // namespace

FormulaListing::FormulaListing(const Formula& formula) { formulas().push_back(&formula); }
const std::vector<const Formula*>& all_formulas() { return formulas(); }

DType result_dtype(std::span<const Tensor* const> operands) {
  Promotion promotion;
  for (const Tensor* operand : operands) promotion.add(*operand);
  return promotion.result();
}

Device common_device(std::span<const Tensor* const> operands) {
  const Tensor* first = operands[0];
  for (const Tensor* operand : operands.subspan(1)) {
    if (operand->device() == first->device()) continue;
    auto follows = [](const Tensor& t) { return t.device().is_cpu() && t.dim() == 0; };
    if (follows(*first)) first = operand;
    else
      CHECK(follows(*operand),
            "Expected all tensors to be on the same device, but found at least two devices, ",
            first->device(), " and ", operand->device(), "!");
  }
  return first->device();
}

bool has_broadcast_shape(const Tensor& out, std::span<const Tensor* const> operands) {
  Shape sizes;
  for (const Tensor* operand : operands)
    if (operand && !same_shape(operand->sizes(), sizes))
      sizes = broadcast_shapes(sizes, operand->sizes());
  return out.sizes() == sizes;
}

Compute compute_of(DType dtype) {
  if (dtype == DType::float64) return Compute::f64;
  if (dtype == DType::complex64) return Compute::c64;
  if (dtype == DType::complex128) return Compute::c128;
  if (dtype == DType::uint64) return Compute::u64;
  return is_floating(dtype) || is_float8(dtype) ? Compute::f32 : Compute::i64;
}

DType dtype_of_compute(Compute compute) {
  constexpr DType dtypes[] = {DType::float32, DType::float64,   DType::int64,
                              DType::uint64,  DType::complex64, DType::complex128};
  return dtypes[int(compute)];
}

int narrow_index(DType dtype) {
  switch (dtype) {
    case DType::bool_: return 0;
    case DType::uint8: return 1;
    case DType::int8: return 2;
    case DType::int16: return 3;
    case DType::int32: return 4;
    default: return -1;
  }
}

Tensor pointwise(const Formula& formula, std::span<const Tensor* const> operands,
                 std::span<const Scalar> scalars, const Tensor* into) {
  const FormulaParams& counts = formula.counts;
  ASSERT(int(operands.size()) == counts.operands && int(scalars.size()) == counts.scalars);

  Shape broadcast;
  const Shape* sizes = &operands[0]->sizes();
  for (const Tensor* operand : operands.subspan(1)) {
    if (operand->dim() == 0 || operand->sizes() == *sizes) continue;
    broadcast = broadcast_shapes(*sizes, operand->sizes());
    sizes = &broadcast;
  }
  Device device = common_device(operands);
  Typing typing = typing_of(formula, common_dtype(counts, operands));
  if (typing.result == DType::bool_ && is_half(typing.common) &&
      !are_of_dtype(typing.common, counts, operands)) [[unlikely]]
    return compare_rounded(formula, typing.common, operands, scalars, into);
  if (device.is_cpu() && narrow_index(typing.common) >= 0 &&
      are_narrow(typing.common, counts, operands, scalars))
    make_narrow(typing, formula);
  if (device.is_cpu() && is_half(typing.common) && !is_fusing())
    leave_half(typing, formula, operands);
  alignas(16) char scalar_bytes[kMaxScalars * sizeof(std::complex<double>)];
  if (!scalars.empty()) write_scalars(typing.compute, scalars, scalar_bytes);
  TileOperand lanes[kMaxOperands];
  for (size_t k = 0; k < operands.size(); ++k)
    lanes[k] = {operands[k], counts.is_mask[k] ? DType::bool_ : typing.read};

  if (!into) {
    bool row_major = are_row_major(operands);
    if (is_fusing() && defers(checked_numel(*sizes), device)) [[unlikely]]
      return defer(formula, typing, device, *sizes,
                   row_major ? contiguous_strides(*sizes) : strides_after(*sizes, operands),
                   {lanes, operands.size()}, scalar_bytes);
    Tensor result =
        row_major ? empty(*sizes, typing.result, device)
                  : empty_strided(*sizes, strides_after(*sizes, operands), typing.result, device);
    run(formula, typing, {&result, typing.written}, {lanes, operands.size()}, scalar_bytes);
    return result;
  }
  CHECK(into->device() == device,
        "Expected all tensors to be on the same device, but the result is "
        "on ",
        into->device(), " and the operands are on ", device, ".");
  CHECK(into->sizes() == *sizes, "output with shape ", into->sizes(),
        " doesn't match the broadcast shape ", *sizes);
  CHECK(can_cast(typing.result, into->dtype()), "result type ", dtype_name(typing.result),
        " can't be cast to the desired output type ", dtype_name(into->dtype()),
        ". Convert the tensor with .to(", dtype_name(typing.result),
        ") first, or let the result be a new one.");
  check_writable(*into);
  // Loops may compute in more digits than the result has, which do not show in `into` either.
  if (into->dtype() != typing.result && typing.written != typing.result) {
    copy_into(*into, pointwise(formula, operands, scalars, nullptr));
    return *into;
  }
  Tensor copies[kMaxOperands];
  for (size_t k = 0; k < operands.size(); ++k)
    if (overwritten_early(*operands[k], *into))
      lanes[k].tensor = &(copies[k] = clone_dense(*operands[k]));
  run(formula, typing, {into, typing.written}, {lanes, operands.size()}, scalar_bytes);
  return *into;
}

}  // namespace rushlight

// Owns pointwise(): one formula over broadcast operands, and POINTWISE as host code reads it.
//
// Decides dtypes, shapes and memory order; tile_loop.h moves the data, formula.h compiles loops.
#pragma once

#include <array>
#include <span>

#include "core/base/scalar.h"
#include "core/tensor/loops.h"
#include "core/tensor/tensor.h"

namespace rushlight {

// One POINTWISE: its text, which CUDA compiles too, and its loops for every instruction set.
struct Formula {
  const char* name;
  const char* params;      // "(T input, S beta)"
  const char* expression;  // "input * beta"
  FormulaParams counts;
  bool is_cheap;  // no more than arithmetic: sooner computed again than stored and read
  IsaSets<PointwiseLoops> loops;
};

// Lists a formula among all_formulas().
struct FormulaListing {
  explicit FormulaListing(const Formula& formula);
};
const std::vector<const Formula*>& all_formulas();

struct TileOperand;
// Fills `result` on its CUDA device; operands are on it too, or 0-d on the CPU. See tile_loop.h for
// the rest; `scalars` are in the compute dtype.
void run_cuda_loop(const Formula& formula, DType compute, const TileOperand& result,
                   std::span<const TileOperand> operands, const void* scalars);

// The device that operands have in common: 0-d CPU tensors go with any. Raises when there is none.
Device common_device(std::span<const Tensor* const> operands);

// The dtype that operands have in common, by PyTorch's rule: a 0-d tensor or a Python number
// changes the result only when it is of a higher category (bool < int < float < complex).
DType result_dtype(std::span<const Tensor* const> operands);

// The compute type of a dtype: half types compute in float32, bool and integers other than uint64
// in int64.
Compute compute_of(DType dtype);
DType dtype_of_compute(Compute compute);
// Where the loops of a dtype stand among kNarrowCount ones; -1 when it is not narrow.
int narrow_index(DType dtype);

// Evaluates a formula. With `into`, the result is written there: its shape must be the broadcast
// shape, its dtype of no lower category than the result's.
Tensor pointwise(const Formula& formula, std::span<const Tensor* const> operands,
                 std::span<const Scalar> scalars, const Tensor* into = nullptr);

// Whether the operands (null for those that are not given) broadcast to the shape of `out`.
bool has_broadcast_shape(const Tensor& out, std::span<const Tensor* const> operands);

// pointwise_into<softplus_value>(into, input, beta, threshold): operands first, then scalars.
template <class F, class... Args>
Tensor pointwise_into(const Tensor* into, const Args&... args) {
  constexpr int count = F::formula.counts.operands;
  static_assert(sizeof...(Args) == count + F::formula.counts.scalars,
                "pointwise<F> takes one argument for each parameter of the formula");
  std::array<const Tensor*, count> operands;
  std::array<Scalar, sizeof...(Args) - count> scalars;
  size_t i = 0, j = 0;
  auto place = [&](const auto& arg) {
    if constexpr (std::is_convertible_v<decltype(arg), const Tensor&>) operands[i++] = &arg;
    else scalars[j++] = Scalar(arg);
  };
  (place(args), ...);
  return pointwise(F::formula, operands, scalars, into);
}
template <class F, class... Args>
Tensor pointwise(const Args&... args) {
  return pointwise_into<F>(nullptr, args...);
}

}  // namespace rushlight

// See Note [One formula, three readings] in ops/op.h.
#define POINTWISE(NAME, PARAMS, ...)                                                         \
  RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_DECLARE_TABLE, PointwiseLoops, NAME)                      \
  struct NAME {                                                                              \
    static constexpr Formula formula{                                                        \
        #NAME, #PARAMS, #__VA_ARGS__, read_params(#PARAMS),                                  \
        calls_only(#__VA_ARGS__, kCheapFunctions),                                           \
        {RUSHLIGHT_FOR_EACH_ISA(RUSHLIGHT_TABLE_ADDRESS, NAME)}};                            \
    template <class T, class S, class B, class R = T, class N = T, class C = T, class I = T> \
    static auto apply PARAMS {                                                               \
      return __VA_ARGS__;                                                                    \
    }                                                                                        \
  };                                                                                         \
  static const FormulaListing NAME##_listing(NAME::formula);

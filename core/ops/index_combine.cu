// Owns the kernel that combines values with the picked elements. DTYPE is the dtype; COMBINE(a, b)
// combines two of the type that it computes in. Values for one place come in their order, one
// thread after the other: the result is the same in every run.
#include "core/tensor/formula.cuh"

#include "core/ops/index_layout.cuh"
#include "core/tensor/convert.h"

namespace rushlight::on_cuda {

// Half sums are rounded once, at the end; integers wrap around.
template <class Type>
struct WiderOf {
  using type = Type;
};
template <>
struct WiderOf<Half> {
  using type = float;
};
template <>
struct WiderOf<BFloat16> {
  using type = float;
};
template <>
struct WiderOf<uint8_t> {
  using type = int32_t;
};
template <>
struct WiderOf<int8_t> {
  using type = int32_t;
};
template <>
struct WiderOf<uint16_t> {
  using type = int32_t;
};
template <>
struct WiderOf<int16_t> {
  using type = int32_t;
};
using Wide = WiderOf<DTYPE>::type;

template <class Type>
inline Type wrapped_sum(Type a, Type b) {
  if constexpr (detail::kSame<Type, bool>) return a || b;
  else if constexpr (detail::kSame<Type, int32_t>) return Type(uint32_t(a) + uint32_t(b));
  else if constexpr (detail::kSame<Type, int64_t>) return Type(uint64_t(a) + uint64_t(b));
  else return a + b;
}
template <class Type>
inline Type wrapped_product(Type a, Type b) {
  if constexpr (detail::kSame<Type, bool>) return a && b;
  else if constexpr (detail::kSame<Type, int32_t>) return Type(uint32_t(a) * uint32_t(b));
  else if constexpr (detail::kSame<Type, int64_t>) return Type(uint64_t(a) * uint64_t(b));
  else return a * b;
}
// NaN wins.
template <class Type>
inline Type larger(Type a, Type b) {
  return a != a || a > b ? a : b;
}
template <class Type>
inline Type smaller(Type a, Type b) {
  return a != a || a < b ? a : b;
}

// The offsets are sorted: the thread of the first of a run of equal ones takes the whole run.
extern "C" __global__ void combine_picked(PickedArgs args, const DTYPE* dense, bool single) {
  int64_t i = thread_number();
  if (i >= args.total) return;
  PickedElement element = element_of(args, i);
  int64_t j = element.j, offset = args.offsets[j];
  if (args.order && j > 0 && args.offsets[j - 1] == offset) return;
  DTYPE* target = reinterpret_cast<DTYPE*>(picked_at(args, element, offset));
  Wide combined = convert<Wide>(*target);
  do {
    int64_t position = args.order ? args.order[j] : j;
    Wide value = convert<Wide>(dense[single ? 0 : dense_number(args, element, position)]);
    combined = COMBINE(combined, value);
  } while (args.order && ++j < args.positions && args.offsets[j] == offset);
  *target = convert<DTYPE>(combined);
}

}  // namespace rushlight::on_cuda

// Owns how values are combined with the picked elements. DTYPE is the dtype; COMBINE(a, b) combines
// two of the type that it computes in. Values for one place come in their order and are grouped by
// their number only: the result is the same in every run.
#pragma once

#include "core/tensor/formula.cuh"

#include "core/ops/index/index_layout.cuh"
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

inline void combine_into(const PickedArgs& args, const PickedElement& element, int64_t offset,
                         Wide value) {
  DTYPE* target = reinterpret_cast<DTYPE*>(picked_at(args, element, offset));
  *target = convert<DTYPE>(COMBINE(convert<Wide>(*target), value));
}

// The offsets are sorted. The thread of the first of a run of equal ones takes the run up to the
// end of its chunk, as does the thread of the first in each further chunk. What they find goes to
// parts, two for each chunk: of the run that goes on behind it, and of the one from before it.
// value(element, position) is what comes from a position. The run of `nowhere` is left out.
template <class Value>
void combine_run(const PickedArgs& args, int64_t nowhere, Value value, Wide* parts,
                 int64_t chunks) {
  int64_t i = thread_number();
  if (i >= args.total) return;
  PickedElement element = element_of(args, i);
  int64_t j = element.j, chunk = j / kRunChunk, offset = args.offsets[j];
  bool first = !args.order || j == 0 || args.offsets[j - 1] != offset;
  if (offset == nowhere || (!first && j % kRunChunk)) return;
  auto value_at = [&](int64_t at) { return value(element, args.order ? args.order[at] : at); };
  Wide combined = value_at(j);
  auto goes_on = [&] { return j < args.positions && args.offsets[j] == offset; };
  ++j;
  for (; args.order && j % kRunChunk && goes_on(); ++j) combined = COMBINE(combined, value_at(j));
  bool more = args.order && goes_on();
  if (first && !more) return combine_into(args, element, offset, combined);
  parts[((element.before * chunks + chunk) * args.after_count + element.after) * 2 + !first] =
      combined;
}

// Combines the parts of runs that go on behind the chunk of their first; `by_chunk` has chunks in
// place of positions.
inline void combine_parts_of_runs(const PickedArgs& args, const PickedArgs& by_chunk,
                                  int64_t nowhere, const Wide* parts) {
  int64_t i = thread_number();
  if (i >= by_chunk.total) return;
  PickedElement element = element_of(by_chunk, i);
  int64_t chunk = element.j, begin = chunk * kRunChunk, end = begin + kRunChunk;
  if (end >= args.positions) return;
  int64_t offset = args.offsets[end];
  if (offset == nowhere) return;
  if (args.offsets[end - 1] != offset || (begin > 0 && args.offsets[begin - 1] == offset)) return;
  auto part = [&](int64_t c, int which) {
    return parts[((element.before * by_chunk.positions + c) * args.after_count + element.after) *
                     2 +
                 which];
  };
  Wide combined = part(chunk, 0);
  while (++chunk * kRunChunk < args.positions && args.offsets[chunk * kRunChunk] == offset)
    combined = COMBINE(combined, part(chunk, 1));
  combine_into(args, element, offset, combined);
}

}  // namespace rushlight::on_cuda

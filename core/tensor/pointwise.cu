// Owns the loops of formulas on CUDA. Each formula is compiled for the dtypes that it meets, which
// these macros name:
//   FORMULA_PARAMS, FORMULA_EXPRESSION   the two texts of POINTWISE
//   COMPUTE                              the type that the formula computes in
//   OPERANDS, RESULT                     the dtypes in memory
//   STRIDED                              defined for any layout, else all lie in one order
#include "core/tensor/formula.cuh"

#include "core/tensor/convert.h"
#include "core/tensor/lane_walk.cuh"
#include "core/tensor/pack.cuh"
#include "core/tensor/pointwise_args.h"

namespace rushlight::on_cuda {

#define TEXT_OF(...) #__VA_ARGS__
#define TEXT(...) TEXT_OF(__VA_ARGS__)

struct Formula {
  static constexpr FormulaParams params = read_params(TEXT(FORMULA_PARAMS));
  template <class T, class S, class B, class R = T, class N = T, class C = T, class I = T>
  static auto apply FORMULA_PARAMS {
    return FORMULA_EXPRESSION;
  }
};

template <int... I>
struct Indices {};
template <int n, int... I>
struct IndicesTo : IndicesTo<n - 1, n - 1, I...> {};
template <int... I>
struct IndicesTo<0, I...> {
  using type = Indices<I...>;
};
using Operands = IndicesTo<Formula::params.operands>::type;
using Scalars = IndicesTo<Formula::params.scalars>::type;

// The dtype of operand k in memory, and what the formula takes.
template <int k, class First, class... Rest>
struct TypeAt : TypeAt<k - 1, Rest...> {};
template <class First, class... Rest>
struct TypeAt<0, First, Rest...> {
  using type = First;
};
template <int k>
using Memory = typename TypeAt<k, OPERANDS>::type;
template <bool mask>
struct ParameterOf {
  using type = COMPUTE;
};
template <>
struct ParameterOf<true> {
  using type = bool;
};
template <int k>
using Parameter = typename ParameterOf<Formula::params.is_mask[k]>::type;

template <class... Operand, int... J>
RESULT evaluate(const PointwiseArgs& args, Indices<J...>, Operand... operands) {
  auto result = Formula::apply<COMPUTE, COMPUTE, bool>(
      operands..., *reinterpret_cast<const COMPUTE*>(args.scalars[J])...);
  // Copies compute in the dtype that they read, where an int is a number.
  if constexpr (detail::kSame<COMPUTE, int>) return convert<RESULT>(result);
  else return convert<RESULT>(typename detail::Given<decltype(result)>::type(result));
}

// Operand k where it is one element for all.
template <int k>
Parameter<k> single(const PointwiseArgs& args) {
  if (!args.operands[k]) return *reinterpret_cast<const Parameter<k>*>(args.numbers[k]);
  return convert<Parameter<k>>(*static_cast<const Memory<k>*>(args.operands[k]));
}

#ifndef STRIDED

template <class... T>
constexpr int largest_size() {
  int size = 1;
  ((size = int(sizeof(T)) > size ? int(sizeof(T)) : size), ...);
  return size;
}
// Elements that a thread moves at once: as many as fill kVectorBytes with the largest type.
constexpr int kVector = kVectorBytes / largest_size<OPERANDS, RESULT>();
template <class T>
using Vector = Pack<T, kVector>;
template <class T>
struct Loaded {
  T at[kVectors][kVector];
};

template <int k>
Loaded<Parameter<k>> load(const PointwiseArgs& args, int64_t first, int64_t step) {
  Loaded<Parameter<k>> loaded;
  if (args.single >> k & 1) {
    Parameter<k> value = single<k>(args);
    for (int v = 0; v < kVectors; ++v)
      for (int e = 0; e < kVector; ++e) loaded.at[v][e] = value;
    return loaded;
  }
  const Memory<k>* data = static_cast<const Memory<k>*>(args.operands[k]);
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    int64_t i = first + v * step;
    if (i + kVector <= args.numel) {
      auto vector = *reinterpret_cast<const Vector<Memory<k>>*>(data + i);
#pragma unroll
      for (int e = 0; e < kVector; ++e) loaded.at[v][e] = convert<Parameter<k>>(vector.at[e]);
    } else {
      for (int e = 0; e < kVector; ++e)
        if (i + e < args.numel) loaded.at[v][e] = convert<Parameter<k>>(data[i + e]);
    }
  }
  return loaded;
}

template <class... Operand>
void store(const PointwiseArgs& args, int64_t first, int64_t step, const Operand&... operands) {
  RESULT* data = static_cast<RESULT*>(args.result);
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    int64_t i = first + v * step;
    if (i + kVector <= args.numel) {
      Vector<RESULT> vector;
#pragma unroll
      for (int e = 0; e < kVector; ++e)
        vector.at[e] = evaluate(args, Scalars(), operands.at[v][e]...);
      *reinterpret_cast<Vector<RESULT>*>(data + i) = vector;
    } else {
      for (int e = 0; e < kVector; ++e)
        if (i + e < args.numel) data[i + e] = evaluate(args, Scalars(), operands.at[v][e]...);
    }
  }
}

template <int... I>
void run_flat(const PointwiseArgs& args, Indices<I...>) {
  int64_t step = int64_t(blockDim.x) * kVector;
  int64_t first = int64_t(blockIdx.x) * kVectors * step + int64_t(threadIdx.x) * kVector;
  if (first < args.numel) store(args, first, step, load<I>(args, first, step)...);
}

extern "C" __global__ void run(PointwiseArgs args) { run_flat(args, Operands()); }

#else

template <int k>
Parameter<k> at(const PointwiseArgs& args, int64_t offset) {
  if (args.single >> k & 1) return single<k>(args);
  return convert<Parameter<k>>(static_cast<const Memory<k>*>(args.operands[k])[offset]);
}

template <class T>
struct Scattered {
  T of[kScattered];
};

template <class... Operand>
void store_scattered(const PointwiseArgs& args, const int64_t* offsets, int64_t first,
                     const Operand&... operands) {
#pragma unroll
  for (int e = 0; e < kScattered; ++e)
    if (first + e * int64_t(blockDim.x) < args.numel)
      static_cast<RESULT*>(args.result)[offsets[e]] = evaluate(args, Scalars(), operands.of[e]...);
}

template <int k>
Scattered<Parameter<k>> load_scattered(const PointwiseArgs& args, const int64_t* offsets,
                                       int64_t first) {
  Scattered<Parameter<k>> loaded;
#pragma unroll
  for (int e = 0; e < kScattered; ++e)
    if (first + e * int64_t(blockDim.x) < args.numel) loaded.of[e] = at<k>(args, offsets[e]);
  return loaded;
}

template <class Index, int... I>
void run_strided(const PointwiseArgs& args, const PointwiseLayout& layout, Indices<I...>) {
  constexpr int kLanes = sizeof...(I) + 1;
  int64_t first = int64_t(blockIdx.x) * kScattered * blockDim.x + threadIdx.x;
  int64_t offsets[kLanes][kScattered] = {};
  Index numbers[kScattered];
#pragma unroll
  for (int e = 0; e < kScattered; ++e) numbers[e] = Index(first + e * int64_t(blockDim.x));
  find_elements(layout, numbers, offsets);
  store_scattered(args, offsets[kLanes - 1], first, load_scattered<I>(args, offsets[I], first)...);
}

extern "C" __global__ void run(const __grid_constant__ PointwiseArgs args,
                               const __grid_constant__ PointwiseLayout layout) {
  // Also those numbers are below 2^31 that a block has left over.
  if (args.numel < (int64_t(1) << 31) - kScattered * 1024)
    run_strided<uint32_t>(args, layout, Operands());
  else run_strided<uint64_t>(args, layout, Operands());
}

#endif

}  // namespace rushlight::on_cuda
